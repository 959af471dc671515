"""How far results reach: greedy beyond its theorem, regret on slow chains, R(MA)²B with what it has, changing rewards."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from restive.paper.claims import exact, measured
from restive.paper.curves import (
    AGENTS,
    CEILING,
    FLOOR,
    HORIZON,
    Scoreboard,
    Setup,
    growth,
    read_curve,
    share,
    two_state_setup,
)
from restive.paper.experiment import Measured
from restive.paper.jobs import Job, Results, Size
from restive.paper.regret import BUDGET, FROM_STEP, INSTANCES, SECONDS_PER_STEP, logarithmic
from restive.paper.tasks.robustness import slow_problems
from restive.report.tables import Table
from restive.solvers.myopic import benefit
from restive.stats import ratio
from restive.types import Floats

HORIZONS = (4, 16, 64)


def greedy_job(size: Size, horizon: int) -> Job:
    """The search for the pair of agents on which greedy collects the smallest share of the best."""
    settings = {"horizon": horizon, "starts": size.pick(200, 20), "rounds": size.pick(150, 20), "seed": size.seed}
    return Job("worst_greedy_share", f"worst share of greedy T={horizon}", settings, size.pick(0.06, 0.008) * horizon)


def greedy_jobs(size: Size) -> list[Job]:
    """Every horizon."""
    return [greedy_job(size, horizon) for horizon in HORIZONS]


def measure_greedy(size: Size, results: Results) -> Measured:
    """How the worst share falls with the horizon."""
    found = {horizon: results[greedy_job(size, horizon)] for horizon in HORIZONS}
    worst = {horizon: min(columns["share"][0], columns["lasting"][0]) for horizon, columns in found.items()}
    parts = {
        "greedy-constant-factor": [
            exact(f"T = {long} against {short}: {worst[long]:.3f} of the best", worst[long] / worst[short])
            for short, long in pairwise(HORIZONS)
        ],
        "greedy-share-falls-like-root": [
            exact(f"T = {horizon}", columns["lasting"][0] * horizon**0.5) for horizon, columns in found.items()
        ],
    }
    rows = tuple(
        (str(horizon), f"{columns['share'][0]:.4f}", f"{columns['lasting'][0]:.4f}", _show_pair(columns["good"]))
        for horizon, columns in found.items()
    )
    heads = (
        "T",
        "worst share found",
        "share of the lasting pair",
        "probabilities of reaching state 1 in the worst pair",
    )
    note = "Of each agent: waiting in 0 and 1, then acting in 0 and 1. Exact."
    return Measured(parts, tables=(Table("What greedy collects of the best", heads, rows, note),))


def _show_pair(good: Floats) -> str:
    return "; ".join(" ".join(f"{each:.2f}" for each in agent) for agent in good.reshape(2, 4))


LEAVES = (0.5, 0.1, 0.01, 0.001)
SHARE = 0.5  # where the threshold lies between the two benefits of the weaker agent


def slow_job(size: Size, leave: float) -> Job:
    """The regret of eps-GT if contexts change with this probability."""
    horizon = size.pick(20_000, 2_000)
    settings = {
        "leave": leave,
        "share": SHARE,
        "instances": INSTANCES,
        "horizon": horizon,
        "runs": size.pick(20, 5),
        "seed": size.seed,
    }
    return Job("slow_regret", f"regret with slow contexts leave={leave:g}", settings, SECONDS_PER_STEP * horizon)


def slow_jobs(size: Size) -> list[Job]:
    """From contexts that are drawn at every step to very slow ones."""
    return [slow_job(size, leave) for leave in LEAVES]


def measure_slow(size: Size, results: Results) -> Measured:
    """The regret against a bound that does not depend on how slow contexts are, and against that of the fastest."""
    curves = {leave: read_curve(results[slow_job(size, leave)]) for leave in LEAVES}
    fastest, *slower = LEAVES
    within, least = [], {}
    for leave, curve in curves.items():
        problems = slow_problems(leave, INSTANCES, size.seed)
        gains = np.stack([benefit(problem.transition, problem.reward) for problem in problems])
        late = curve.steps >= FROM_STEP
        taken = curve.cost[:, late] / logarithmic(gains, SHARE, curve.steps[late])
        least[leave] = min(float(problem.transition.min()) for problem in problems)
        within.append(exact(f"smallest transition probability {least[leave]:.0e}", taken.max()))
    parts = {
        "slow-regret-within-the-bound": within,
        "slow-regret-does-not-grow": [
            measured(
                f"contexts change with probability {leave:g}",
                ratio(curves[leave].cost[:, -1], curves[fastest].cost[:, -1]),
            )
            for leave in slower
        ],
    }
    rows = tuple(
        (f"{leave:g}", f"{least[leave]:.0e}", f"{curve.cost[:, -1].mean():.1f}") for leave, curve in curves.items()
    )
    heads = ("probability of leaving a context", "smallest transition probability", "regret at the last step")
    return Measured(parts, tables=(Table("Regret with slow contexts", heads, rows, "Means over instances."),))


EXPLORATION = 100
EXPLORED = {
    f"rma2b:explore={EXPLORATION}": f"{EXPLORATION} steps of exploration",
    "rma2b": "a tenth of the steps explored",
}
PLANNER = "omr-oracle"


def planner_setups(size: Size) -> tuple[Setup, Setup]:
    """The two-state instances over some steps, and over ten times as many."""
    setup, short = two_state_setup(size), size.pick(500, 200)
    first, last = (replace(setup, horizon=horizon, runs=1) for horizon in (short, 10 * short))
    return first, last


def planner_jobs(size: Size) -> list[Job]:
    """R(MA)²B with both lengths of exploration, and its oracle."""
    return [setup.job(policy, BUDGET, 0.0) for setup in planner_setups(size) for policy in (*EXPLORED, PLANNER)]


def measure_planner(size: Size, results: Results) -> Measured:
    """How the regret of R(MA)²B against its oracle grows with the horizon."""
    boards = [Scoreboard(setup, results) for setup in planner_setups(size)]
    regret = {policy: [_planner_regret(board, policy) for board in boards] for policy in EXPLORED}
    fixed, *_ = EXPLORED
    later = [
        each[:, -1] - each[:, board.curve(fixed, BUDGET, 0.0).place(EXPLORATION)]
        for board, each in zip(boards, regret[fixed], strict=True)
    ]
    name = "rma2b-linear-without-restarts"
    parts = [measured(EXPLORED[policy], growth(long[:, -1], short[:, -1])) for policy, (short, long) in regret.items()]
    nearby = [measured(f"{EXPLORED[fixed]}, regret after them", growth(later[1], later[0]))]
    rows = tuple((EXPLORED[policy], *(f"{each[:, -1].mean():.1f}" for each in both)) for policy, both in regret.items())
    heads = ("R(MA)²B", *(f"T = {board.setup.horizon:,}" for board in boards))
    note = f"Reward of {PLANNER} less that of R(MA)²B, all agents and steps, B = {BUDGET}, noiseless."
    return Measured({name: parts}, {name: nearby}, tables=(Table("Regret of R(MA)²B", heads, rows, note),))


def _planner_regret(board: Scoreboard, policy: str) -> Floats:
    """What the oracle has collected more, up to each recorded step, [I, G]."""
    behind: Floats = board.curve(PLANNER, BUDGET, 0.0).reward - board.curve(policy, BUDGET, 0.0).reward
    return behind


DRIFTING = ("egt", "wiql", "ucwhittle")
PERIOD = 200


def drift_job(size: Size, policy: str) -> Job:
    """A learner where the variance of the noise drifts."""
    steady = two_state_setup(size).job(policy, BUDGET, 1.0)
    settings = {**steady.settings, "period": PERIOD}
    return Job("drift", f"drifting noise {policy}", settings, steady.weight)


def drift_jobs(size: Size) -> list[Job]:
    """The learners with drifting and with steady noise, and the two ends of the gap."""
    setup = two_state_setup(size)
    steady = [setup.job(policy, BUDGET, 1.0) for policy in (*DRIFTING, FLOOR, CEILING)]
    return [*(drift_job(size, policy) for policy in DRIFTING), *steady]


def measure_drift(size: Size, results: Results) -> Measured:
    """What drifting noise costs compared with steady noise of the same mean variance."""
    board = Scoreboard(two_state_setup(size), results)
    floor, ceiling = (board.curve(policy, BUDGET, 1.0) for policy in (FLOOR, CEILING))
    lost = {}
    for policy in DRIFTING:
        drifting, steady = read_curve(results[drift_job(size, policy)]), board.curve(policy, BUDGET, 1.0)
        lost[policy] = share(drifting, steady, floor, ceiling, HORIZON)
    parts = [measured(f"{policy}, B = {BUDGET}, period {PERIOD}", each) for policy, each in lost.items()]
    return Measured({"drifting-noise-harmless": parts[:1], "drifting-noise-others": parts[1:]})


CHANGED = ("egt", "wiql", "thompson-whittle")
CHANGE, LATER = 500, 250  # the step of the change, and the steps after which a learner is looked at
EARLY_CHANGE = 100  # of learners with less to forget


def change_job(size: Size, policy: str, change: int) -> Job:
    """A policy where rewards are passed on to other agents after so many steps."""
    instances, runs = size.pick(50, 5), size.pick(4, 1)
    settings = {
        "family": "own-rewards-v1",
        "sizes": {"instances": instances, "agents": AGENTS, "budget": BUDGET, "seed": size.seed},
        "policy": size.reading.specify(policy),
        "horizon": HORIZON,
        "runs": runs,
        "seed": size.seed,
        "change": change,
    }
    return Job("change", f"changed rewards at {change} {policy}", settings, 60e-9 * instances * runs * AGENTS * HORIZON)


def change_jobs(size: Size) -> list[Job]:
    """Learners that meet the change, those that start with it, and the two ends of the gap."""
    learners = [change_job(size, policy, change) for policy in CHANGED for change in (CHANGE, EARLY_CHANGE, 0)]
    return [*learners, *(change_job(size, policy, 0) for policy in (FLOOR, CEILING))]


def measure_change(size: Size, results: Results) -> Measured:
    """What learners collect some time after a change, compared with those that start at the change."""

    def collect(policy: str, change: int, first: int) -> Floats:
        return read_curve(results[change_job(size, policy, change)]).between(first, first + LATER)

    def measure(policy: str, change: int) -> tuple[Floats, Floats]:
        floor, top = (collect(end, 0, change + LATER) for end in (FLOOR, CEILING))
        return collect(policy, change, change + LATER) - floor, top - floor

    parts, nearby, rows = [], [], []
    for policy in CHANGED:
        fresh = collect(policy, 0, LATER) - collect(FLOOR, 0, LATER)
        (after, gap), (sooner, its_gap) = (measure(policy, change) for change in (CHANGE, EARLY_CHANGE))
        parts.append(measured(policy, ratio(after, fresh)))
        nearby.append(measured(f"{policy}, change at {EARLY_CHANGE}", ratio(sooner, fresh)))
        shares = (ratio(after, gap), ratio(sooner, its_gap), ratio(fresh, gap))
        rows.append((policy, *(f"{each.mean:.3f}" for each in shares)))
    heads = ("policy", f"after a change at {CHANGE}", f"after one at {EARLY_CHANGE}", "started at the change")
    note = (
        f"Reward per step from {LATER} to {2 * LATER} steps after the change, as a share of the gap from random to the "
        "Whittle oracle of the new rewards."
    )
    table = Table("After a change of expected rewards", heads, tuple(rows), note)
    return Measured({"changed-rewards-recovery": parts}, {"changed-rewards-recovery": nearby}, tables=(table,))
