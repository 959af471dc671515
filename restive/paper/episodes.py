"""Appendix B: the regret against Whittle's policy when time is cut into episodes, and when it is one."""

from matplotlib.figure import Figure

from restive.paper.claims import Claim, Range, below, measured
from restive.paper.curves import (
    AGENTS,
    CEILING,
    FLOOR,
    LEARNERS,
    Board,
    Curve,
    growth,
    read_curve,
    two_state_scene,
)
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import LOOKS, Line, draw_lines
from restive.paper.work import Work
from restive.report.tables import Table
from restive.stats import Band, band, ratio
from restive.types import Floats

PLACE = "appendix B, regret over episodes"
LENGTH, EPISODES, BUDGET = 100, 20, 10
# The learners that tend to Whittle's policy; eps-GT and R(MA)²B tend to others.
TOWARDS_WHITTLE = ("wiql", "ucwhittle", "thompson-whittle")


def work(size: Size, policy: str) -> Work:
    """A policy over episodes, on the instances of the two-state experiment."""
    instances, runs = size.pick(50, 13), size.pick(2, 1)
    settings = {
        "family": "two-state-v1",
        "sizes": {"instances": instances, "agents": AGENTS, "budget": BUDGET, "seed": size.seed},
        "policy": policy,
        "length": LENGTH,
        "episodes": EPISODES,
        "runs": runs,
        "seed": size.seed,
    }
    return Work("episodes", f"episodes {policy}", settings, 60e-9 * instances * runs * AGENTS * LENGTH * EPISODES)


def plan(size: Size) -> list[Work]:
    """All learners over episodes, and over one long one."""
    scene = two_state_scene(size)
    once = [scene.work(policy, BUDGET, 0.0) for policy in (*LEARNERS, FLOOR, CEILING)]
    return [*(work(size, policy) for policy in (*LEARNERS, FLOOR, CEILING)), *once]


def examine(size: Size, results: Results) -> Findings:
    """How the regret falls with episodes, and how it grows with the length of one."""
    curves = {policy: read_curve(results[work(size, policy)]) for policy in (*LEARNERS, FLOOR, CEILING)}
    board = Board(two_state_scene(size), results)
    claims = (_falls(curves), _linear_in_one(board))
    return Findings(claims, {"episodes": _draw(curves)}, (_table(curves, board),))


def regret_per_episode(curves: dict[str, Curve], policy: str) -> Floats:
    """(1 / K) Σ over K episodes of what Whittle's policy collects more, [I, K], for K = 1, 2, …"""
    behind: Floats = (curves[CEILING].reward - curves[policy].reward) / (curves[policy].steps / LENGTH)
    return behind


def regret_growth(board: Board, policy: str, first: int) -> Band:
    """The exponent with which the regret against Whittle's policy grows up to ten times the `first` step."""
    curve, ceiling = (board.curve(each, BUDGET, 0.0) for each in (policy, CEILING))
    behind = ceiling.reward - curve.reward
    return growth(behind[:, curve.place(10 * first)], behind[:, curve.place(first)])


def _falls(curves: dict[str, Curve]) -> Claim:
    parts = []
    for policy in TOWARDS_WHITTLE:
        regret = regret_per_episode(curves, policy)
        parts.append(measured(f"{policy}, {EPISODES} episodes of {LENGTH}", ratio(regret[:, -1], regret[:, 0])))
    return Claim(
        name="episodes-regret-falls",
        sentence="Over many episodes the regret per episode of a learner of Whittle's policy falls.",
        place=PLACE,
        quantity=f"regret per episode over {EPISODES} episodes, as a share of that of the first",
        agreement=below(1),
        parts=tuple(parts),
    )


def _linear_in_one(board: Board) -> Claim:
    return Claim(
        name="episodes-one-is-linear",
        sentence="In one episode, learners of Whittle's policy have a regret that grows in line with its length.",
        place=f"section 2.3; {PLACE}",
        quantity="exponent of the growth of the regret against whittle-oracle from 100 to 1000 steps",
        agreement=Range(0.9, 1.1),
        parts=tuple(measured(policy, regret_growth(board, policy, 100)) for policy in TOWARDS_WHITTLE),
        nearby=tuple(
            measured(f"{policy}, from 10 to 100 steps", regret_growth(board, policy, 10)) for policy in TOWARDS_WHITTLE
        ),
        remark=(
            "The paper argues from bounds for the worst case over instances, which random instances cannot contradict: "
            "this says how the regret grows on its own random instances."
        ),
    )


def _table(curves: dict[str, Curve], board: Board) -> Table:
    rows = []
    for policy in (*LEARNERS, FLOOR):
        regret = regret_per_episode(curves, policy)
        cells = [f"{regret[:, k - 1].mean():.1f}" for k in (1, 5, 10, EPISODES)]
        rows.append((policy, *cells, f"{regret_growth(board, policy, 100).mean:.2f}"))
    heads = ("policy", *(f"K = {k}" for k in (1, 5, 10, EPISODES)), "growth in one episode")
    note = (
        f"Regret per episode of {LENGTH} steps against whittle-oracle, reward over all agents; growth from 100 to 1000."
    )
    return Table("Regret over K episodes", heads, tuple(rows), note)


def _draw(curves: dict[str, Curve]) -> Figure:
    lines = []
    for policy in LEARNERS:
        line = band(regret_per_episode(curves, policy))
        episodes = curves[policy].steps / LENGTH
        lines.append(Line(policy, episodes, line.mean, line.low, line.high, *LOOKS[policy]))
    title = f"Regret per episode of {LENGTH} steps against Whittle's policy, B = {BUDGET}"
    return draw_lines(lines, "episodes", "regret per episode", title)


EXPERIMENT = Experiment(
    name="episodes",
    title="Regret over episodes",
    place=PLACE,
    about=(
        f"The two-state instances with B = {BUDGET}, without noise, {EPISODES} episodes of {LENGTH} steps: after each "
        "all agents go back to where they started, and the learner keeps what it has learnt. The paper's own setting "
        "is one episode. R(MA)²B plans over all steps as if there were no resets."
    ),
    plan=plan,
    examine=examine,
)
