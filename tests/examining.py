"""Experiments of the paper in their quick form, run in this process."""

from restive.paper.claims import Claim
from restive.paper.jobs import Results, Size, run_job
from restive.paper.reproduction import EXPERIMENTS

QUICK = Size(quick=True)


def examine(name: str) -> dict[str, Claim]:
    """Run the jobs of an experiment and return its claims by name."""
    experiment = EXPERIMENTS[name]
    columns = {job.digest(): run_job(job.task, job.settings).columns for job in experiment.list_jobs(QUICK)}
    return {claim.name: claim for claim in experiment.examine(QUICK, Results(columns)).claims}
