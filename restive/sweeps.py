"""Many problems and policies at once, on any engine: a table of everything, and a comparison for each problem.

Each problem with each policy is a job of its own, a pure function of its arguments, so results do not depend on the engine
or on the number of workers. With a folder the traces are kept as files that are named by a digest of what was simulated
and of the code: the same call continues where an earlier one ended.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import polars as pl

from restive.comparison import CEILING, FLOOR, Comparison, make_row
from restive.display import Displayed
from restive.errors import InputError
from restive.paper.engines import open_engine, result_of
from restive.paper.jobs import code_digest
from restive.policies import make_policy
from restive.policies.base import Policy
from restive.problem import Problem
from restive.simulation import simulate
from restive.trace import Trace, fingerprint


@dataclass(frozen=True, repr=False)
class Sweep(Displayed):
    """The results of `sweep`.

    Parameters
    ----------
    comparisons
        The policies on each problem, by the name of the problem.

    Examples
    --------
    >>> from restive import make_problems
    >>> sweep({"small": make_problems("two-state-v1", instances=2, agents=6, budget=2)}, ["random", "egt"], horizon=50)
    Sweep(problems=1, policies=2, best=egt)
    """

    comparisons: Mapping[str, Comparison]

    def facts(self) -> dict[str, object]:
        """The numbers of problems and policies, and the policies that are best on a problem."""
        best = dict.fromkeys(found.reference.label for found in self.comparisons.values())
        policies = len(next(iter(self.comparisons.values())).rows)
        return {"problems": len(self.comparisons), "policies": policies, "best": " or ".join(best)}

    def to_frame(self) -> pl.DataFrame:
        """One row for each problem and policy, with the columns of `Comparison.to_frame` but the speed."""
        frames = [
            found.to_frame().drop("speed").select(pl.lit(name).alias("problem"), pl.all())
            for name, found in self.comparisons.items()
        ]
        return pl.concat(frames)


def sweep(
    problems: Mapping[str, Problem | Sequence[Problem]],
    policies: Sequence[str | Policy[Any]],
    horizon: int,
    runs: int = 1,
    seed: int = 0,
    noise: float = 0.0,
    engine: str = "threads",
    workers: int | None = None,
    folder: str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Sweep:
    """Simulate every policy on every problem, with `random` and `whittle-oracle` beside them.

    Parameters
    ----------
    problems
        Problems by name, or several instances of one shape and budget under a name.
    policies
        Policies, or their names with settings; see `make_policy`.
    horizon
        The number of steps.
    runs
        The number of runs on each problem.
    seed
        The seed of all random numbers; every policy meets the same ones.
    noise
        The variance of the Gaussian noise added to each observed reward.
    engine
        Where the jobs run: `threads`, `processes`, `dask` or `dask://host:port` of a scheduler.
    workers
        The number of workers; by default one for each processor.
    folder
        Where traces are kept; a later call with the same arguments and the same code reads them.
    progress
        Called with the number of finished jobs and of all jobs.

    Returns
    -------
    Sweep
        The results; `to_frame` has a row for each problem and policy.

    Raises
    ------
    InputError
        If there is no problem or policy, or an argument is not valid.

    Examples
    --------
    >>> from restive import make_problems
    >>> sizes = {f"N={n}": make_problems("two-state-v1", instances=2, agents=n, budget=2) for n in (6, 12)}
    >>> sweep(sizes, ["random", "egt"], horizon=50).to_frame().select("problem", "policy").rows()
    [('N=6', 'random'), ('N=6', 'egt'), ('N=12', 'random'), ('N=12', 'egt')]
    """
    if not problems or not policies:
        raise InputError("sweep needs at least one problem and one policy.")
    instances = {name: [given] if isinstance(given, Problem) else list(given) for name, given in problems.items()}
    chosen = {policy if isinstance(policy, str) else repr(policy): make_policy(policy) for policy in policies}
    known = {FLOOR: make_policy(FLOOR), CEILING: make_policy(CEILING)} | chosen
    settings: dict[str, Any] = {"horizon": horizon, "runs": runs, "seed": seed, "noise": noise}
    files = {
        (name, label): _file(folder, given, policy, settings)
        for name, given in instances.items()
        for label, policy in known.items()
    }
    traces = {key: Trace.load(path) for key, path in files.items() if path is not None and path.exists()}
    progress(len(traces), len(files))
    with open_engine(engine, workers) as executor:
        jobs = {
            executor.submit(simulate, instances[name], known[label], **settings, threads=1): (name, label)
            for name, label in files
            if (name, label) not in traces
        }
        for job in as_completed(jobs):
            key = jobs[job]
            traces[key] = result_of(job, " ".join(key))
            if (path := files[key]) is not None:
                traces[key].save(path)
            progress(len(traces), len(files))
    return Sweep({name: _compare(name, chosen, traces) for name in instances})


def _compare(name: str, chosen: Mapping[str, Policy[Any]], traces: Mapping[tuple[str, str], Trace]) -> Comparison:
    floor, ceiling = traces[name, FLOOR], traces[name, CEILING]
    rows = [make_row(label, traces[name, label], floor, ceiling, float("nan")) for label in chosen]
    return Comparison(tuple(rows), rows[0].trace.spec)


def _file(
    folder: str | PathLike[str] | None, problems: Sequence[Problem], policy: Policy[Any], settings: Mapping[str, Any]
) -> Path | None:
    """Where the trace of a job is kept."""
    if folder is None:
        return None
    budgets = [[float(problem.budget), problem.spend] for problem in problems]
    simulated = {"policy": policy.name, "settings": policy.settings(), "budgets": budgets, **settings}
    spec = json.dumps(simulated, sort_keys=True, default=str)
    digest = hashlib.sha256(f"{fingerprint(problems)} {code_digest()} {spec}".encode()).hexdigest()[:16]
    Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) / f"{policy.name}-{digest}.parquet"
