"""The lemmas behind theorem 4.4: how fast estimated benefits concentrate, and how the regret falls apart into steps."""

from math import log

import numpy as np

from restive.paper.claims import Part, exact, measured
from restive.paper.experiment import Measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.tasks.concentration import corrected_width, exceeding
from restive.policies.egt import theory_scale
from restive.report.tables import Table
from restive.stats import band

VISITS = ((100, 0.1), (100, 0.2), (100, 0.5), (1000, 0.01))  # visits, and the probability of acting at each
ALPHAS = (0.05, 0.01, 0.001)
LONG, ALPHA = 1000, 0.05  # of the simulated runs
AGENTS, BUDGET, GAP = 2, 1, 0.3
LARGER_SCALE = 64
PROOF_VISITS, LATE_VISITS = (10**3, 10**4, 10**6), (10**6, 10**9, 10**12)


def concentration_jobs(size: Size) -> list[Job]:
    """Exact probabilities at some numbers of visits, and simulated runs over many."""
    shares = dict.fromkeys(share for _, share in VISITS)
    return [*(_exact_job(*each) for each in VISITS), *(_long_job(size, share) for share in shares)]


def _exact_job(visits: int, share: float) -> Job:
    settings = {"visits": visits, "share": share, "alphas": list(ALPHAS)}
    return Job("concentration", f"concentration n={visits} share={share:g}", settings, 0.01)


def _long_job(size: Size, share: float) -> Job:
    settings = {"visits": LONG, "share": share, "alpha": ALPHA, "runs": size.pick(4000, 400), "seed": size.seed}
    return Job("excursions", f"excursions share={share:g}", settings, size.pick(1.0, 0.1))


def measure_concentration(size: Size, results: Results) -> Measured:
    """How often each width is reached, and what the proof of theorem 4.4 gets out of it."""
    found = {each: results[_exact_job(*each)] for each in VISITS}
    printed, corrected = (
        [
            exact(_describe(*each, alpha), columns[name][row] / alpha)
            for each, columns in found.items()
            for row, alpha in enumerate(ALPHAS)
        ]
        for name in ("printed", "corrected")
    )
    for share in dict.fromkeys(share for _, share in VISITS):
        reached = band(results[_long_job(size, share)]["corrected"] / ALPHA)
        corrected.append(measured(f"{_describe(LONG, share, ALPHA)}, at any visit", reached))
    parts = {
        "concentration-as-printed": printed,
        "concentration-corrected": corrected,
        "concentration-in-the-proof": [_proof_step(visits) for visits in PROOF_VISITS],
        "concentration-proof-with-larger-D": [_corrected_step(visits) for visits in LATE_VISITS],
    }
    rows = tuple(
        (_describe(*each, alpha), f"{columns['printed'][row]:.4f}", f"{columns['corrected'][row]:.1e}")
        for each, columns in found.items()
        for row, alpha in enumerate(ALPHAS)
    )
    heads = ("visits", "printed width reached", "corrected width reached")
    table = Table("How often an error reaches its bound", heads, rows, "Exact, for Gaussian rewards of variance 1.")
    return Measured(parts, tables=(table,), values={"larger": LARGER_SCALE})


def _describe(visits: int, share: float, alpha: float) -> str:
    return f"{visits} visits, {share:.0%} acting, alpha = {alpha:g}"


def secured_visits(visits: int, scale: float = 1.0) -> float:
    """The visits under either action that the proof secures among k: B / 2N · D log k / (2 min(Δ², 1/2)).

    Exploration is certain at first, so there are no more than k visits at random.
    """
    explored = scale * theory_scale(AGENTS, BUDGET) * log(visits) / (2 * min(GAP**2, 0.5))
    return BUDGET / (2 * AGENTS) * min(explored, visits)


def _proof_step(visits: int) -> Part:
    """k² times the probability of an error of half the gap, if all visits but the secured ones are of the other action."""
    rare = np.array(secured_visits(visits))
    probability = exceeding(np.array(GAP / 2), rare, visits - rare)
    return exact(f"k = {visits:.0e}, gap {GAP:g}", float(probability) * visits**2)


def _corrected_step(visits: int) -> Part:
    """The corrected width at alpha = 1/k² as a share of half the gap, with a larger D."""
    each = np.array(secured_visits(visits, LARGER_SCALE))
    return exact(f"k = {visits:.0e}, gap {GAP:g}", float(corrected_width(each, each, visits**-2.0)) / (GAP / 2))


def decomposition_jobs(size: Size) -> list[Job]:
    """Random instances, all in one job."""
    settings = {"instances": size.pick(1000, 100), "seed": size.seed}
    return [Job("decomposition", "regret decomposition", settings, size.pick(2.0, 0.2))]


def measure_decomposition(size: Size, results: Results) -> Measured:
    """How far the sums over steps are from the regret."""
    (job,) = decomposition_jobs(size)
    found = results[job]
    meant, printed = (np.abs(found[name] - found["regret"]).max() for name in ("meant", "printed"))
    where = "two agents, B = 1, four steps"
    parts = {
        "regret-decomposes": [exact(where, meant)],
        "regret-decomposition-as-printed": [exact(where, printed)],
    }
    return Measured(parts, values={"instances": found["regret"].size})
