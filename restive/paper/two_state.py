"""Figure 1: random two-state agents, three budgets, with and without noise."""

from itertools import pairwise

from restive.paper.claims import Claim, above, measured
from restive.paper.curves import BUDGETS, EVERYONE, FLOOR, HORIZON, Board, two_state_scene
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import draw_board
from restive.paper.standings import (
    EARLY,
    SHARE,
    earlier,
    leads,
    near_random,
    outdoes,
    outdoes_by_noise,
    standings,
    under_the_bound,
)
from restive.paper.work import Work
from restive.stats import band

FIGURE = "Figure 1, section 5.1"
UNDISCOUNTED = "wiql:discount=1"


def plan(size: Size) -> list[Work]:
    """All policies, also those that the paper leaves out of its noisy half; and WIQL without a discount."""
    scene = two_state_scene(size)
    return [*scene.works(EVERYONE), *(scene.work(UNDISCOUNTED, *setting) for setting in scene.settings())]


def examine(size: Size, results: Results) -> Findings:
    """Who is ahead of whom."""
    board = Board(two_state_scene(size), results)
    claims = (
        outdoes(board, "two-state", FIGURE, "wiql"),
        outdoes(board, "two-state", FIGURE, "wiql", EARLY),
        *outdoes_by_noise(board, "two-state", FIGURE, "ucwhittle"),
        *outdoes_by_noise(board, "two-state", FIGURE, "rma2b"),
        outdoes(board, "two-state", FIGURE, FLOOR),
        *outdoes_by_noise(board, "two-state", FIGURE, "ucwhittle", ahead="wiql"),
        *outdoes_by_noise(board, "two-state", FIGURE, "rma2b", ahead="wiql"),
        _discount(board),
        _model_based_is_slow(board),
        near_random(board, "two-state", "appendix, ten states", "ucwhittle"),
        near_random(board, "two-state", FIGURE, "rma2b"),
        _whittle_above_greedy(board),
        _gap_narrows(board),
        _omr_lowest(board),
        under_the_bound(board, "two-state"),
    )
    figure = draw_board(board, EVERYONE, "Random two-state agents")
    return Findings(claims, {"two-state": figure}, (standings(board, EVERYONE),))


def _model_based_is_slow(board: Board) -> Claim:
    return Claim(
        name="two-state-model-based-is-slow",
        sentence="Learning the whole model of every agent is too slow: eps-GT collects more than such a learner.",
        place="abstract, section 2.3",
        quantity=f"lead of egt over thompson-whittle, {SHARE}",
        agreement=above(0),
        parts=leads(board, "egt", "thompson-whittle"),
        nearby=tuple(part for step in (100, 50, 20) for part in leads(board, "egt", "thompson-whittle", step)),
        remark="The paper compares with UCWhittle and R(MA)²B only; posterior sampling learns the model too.",
    )


def _discount(board: Board) -> Claim:
    return Claim(
        name="two-state-wiql-discount",
        sentence="WIQL collects more with a discount of 0.9 than with its original 1 (two-state).",
        place="appendix, benchmarks",
        quantity=f"wiql less {UNDISCOUNTED}, {SHARE}",
        agreement=above(0),
        parts=leads(board, "wiql", UNDISCOUNTED),
        nearby=earlier(board, "wiql", UNDISCOUNTED),
    )


def _whittle_above_greedy(board: Board) -> Claim:
    return Claim(
        name="two-state-whittle-above-greedy",
        sentence="With the model known, Whittle's indices collect more than greedy at every budget.",
        place="section 5.1",
        quantity=f"lead of whittle-oracle over greedy-oracle, {SHARE}",
        agreement=above(0),
        parts=leads(board, "whittle-oracle", "greedy-oracle", noises=(0.0,)),
    )


def _gap_narrows(board: Board) -> Claim:
    gaps = {
        budget: board.curve("whittle-oracle", budget, 0.0).mean(HORIZON)
        - board.curve("greedy-oracle", budget, 0.0).mean(HORIZON)
        for budget in BUDGETS
    }
    return Claim(
        name="two-state-whittle-greedy-gap-narrows",
        sentence="The lead of Whittle's indices over greedy shrinks as the budget grows.",
        place="section 5.1",
        quantity="lead at the smaller budget less lead at the larger, reward per step over all agents",
        agreement=above(0),
        parts=tuple(measured(f"B = {low} to {high}", band(gaps[low] - gaps[high])) for low, high in pairwise(BUDGETS)),
    )


def _omr_lowest(board: Board) -> Claim:
    rivals = [leads(board, rival, "omr-oracle", noises=(0.0,)) for rival in ("whittle-oracle", "greedy-oracle")]
    return Claim(
        name="two-state-omr-lowest",
        sentence="Of the three oracles OMR collects the least.",
        place="section 5.1",
        quantity=f"lead of the weaker of whittle-oracle and greedy-oracle over omr-oracle, {SHARE}",
        agreement=above(0),
        parts=tuple(min(pair, key=lambda part: part.value) for pair in zip(*rivals, strict=True)),
        remark="OMR is played here as the fluid plan of the agents as they are, one share for each agent and state.",
    )


EXPERIMENT = Experiment(
    name="two-state",
    title="Random two-state agents",
    place=FIGURE,
    about=(
        "50 agents, rewards 0 and 1, every chance of reaching state 1 uniform on [0, 1], 1000 steps. The noisy half "
        "adds a Gaussian of variance 1 to every reward that a learner sees; what is shown is the expected reward. "
        "Settings that the paper does not print (D, p, eta, gamma of eps-GT) are the defaults of `egt`."
    ),
    plan=plan,
    examine=examine,
)
