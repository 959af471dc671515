"""Figure 2: satellite channels from published measurements, rewards that hardly differ, with and without noise."""

from restive.experiments.claims import Claim, Part, Range, above, measured
from restive.experiments.curves import BUDGETS, CEILING, EVERYONE, FLOOR, Board, wireless_scene
from restive.experiments.experiment import Experiment, Findings, Results, Size
from restive.experiments.panels import draw_board
from restive.experiments.standings import EARLY, outdoes, standings, under_the_bound
from restive.experiments.work import Work
from restive.measure import Band, difference, ratio

FIGURE = "Figure 2, section 5.2"
LATE = (900, 1000)
ORACLE_RUNS = 20  # of each instance where the oracle is held against the bound, which is very near
ORACLE_OF = {"egt": "greedy-oracle", "wiql": CEILING, "ucwhittle": CEILING, "rma2b": "omr-oracle"}
MORE_EXPLORATION = ("egt:D=1", "egt:D=3", "egt:D=10")
LESS_NOISE = (0.03, 0.01, 0.003, 0.001)
NOISE_REMARK = (
    "The rewards of the two states differ by 0.1, a third of the standard deviation of the noise, and the benefits are "
    "a fraction of that: telling them apart takes thousands of visits."
)


def plan(size: Size) -> list[Work]:
    """All policies; eps-GT and WIQL with less noise and eps-GT with more exploration, to see where claims hold."""
    scene = wireless_scene(size)
    quieter = [
        scene.work(policy, budget, noise) for noise in LESS_NOISE for budget in BUDGETS for policy in ("egt", "wiql")
    ]
    bolder = [scene.work(policy, budget, 0.0) for policy in MORE_EXPLORATION for budget in BUDGETS]
    oracle = [scene.work(CEILING, budget, 0.0, ORACLE_RUNS) for budget in BUDGETS]
    return [*scene.works(EVERYONE), *quieter, *bolder, *oracle]


def examine(size: Size, results: Results) -> Findings:
    """Who is ahead of whom, and who has reached its oracle."""
    board = Board(wireless_scene(size), results)
    claims = (
        _outdoes_wiql(board),
        outdoes(board, "wireless", FIGURE, "wiql", EARLY),
        outdoes(board, "wireless", FIGURE, "ucwhittle"),
        outdoes(board, "wireless", FIGURE, "rma2b"),
        _reaches_its_oracle(board),
        _nearer_its_oracle(board),
        under_the_bound(board, "wireless", ORACLE_RUNS),
    )
    figure = draw_board(board, EVERYONE, "Satellite channels")
    return Findings(claims, {"wireless": figure}, (standings(board, EVERYONE),))


def _outdoes_wiql(board: Board) -> Claim:
    quieter = tuple(
        measured(board.scene.name(budget, noise) + ", t = 1000", board.lead("egt", "wiql", budget, noise))
        for noise in LESS_NOISE
        for budget in BUDGETS
    )
    claim = outdoes(board, "wireless", FIGURE, "wiql", remark=NOISE_REMARK)
    return Claim(**{**vars(claim), "nearby": quieter})


def reached(board: Board, policy: str, budget: int, noise: float) -> Band:
    """The share of the way from random to its own oracle that a learner goes in the last tenth of the steps."""
    oracle = ORACLE_OF[policy.partition(":")[0]]
    late, floor, ceiling = (board.curve(each, budget, noise).between(*LATE) for each in (policy, FLOOR, oracle))
    return ratio(late - floor, ceiling - floor)


def _reaches_its_oracle(board: Board) -> Claim:
    def parts(policy: str, noises: tuple[float, ...]) -> tuple[Part, ...]:
        return tuple(
            measured(f"{policy}, {board.scene.name(budget, noise)}", reached(board, policy, budget, noise))
            for noise in noises
            for budget in BUDGETS
        )

    bolder = tuple(part for policy in MORE_EXPLORATION for part in parts(policy, (0.0,)))
    return Claim(
        name="wireless-egt-reaches-its-oracle",
        sentence="Within 1000 steps eps-GT does as well as greedy with the model known.",
        place=FIGURE,
        quantity="share of the way from random to greedy-oracle, in reward per step of the last tenth",
        agreement=Range(0.95, float("inf")),
        parts=parts("egt", (0.0, board.scene.noise)),
        nearby=(*parts("egt", LESS_NOISE), *bolder),
        remark=NOISE_REMARK,
    )


def _nearer_its_oracle(board: Board) -> Claim:
    parts = []
    for rival in ("wiql", "ucwhittle", "rma2b"):
        for budget, noise in board.scene.settings():
            own, other = (reached(board, policy, budget, noise) for policy in ("egt", rival))
            parts.append(measured(f"{rival}, {board.scene.name(budget, noise)}", difference(own, other)))
    return Claim(
        name="wireless-egt-nearer-its-oracle",
        sentence="The other learners approach their oracles more slowly than eps-GT approaches greedy.",
        place=FIGURE,
        quantity="share that egt has gone to its oracle less the share that the other has gone to its own, last tenth",
        agreement=above(0),
        parts=tuple(parts),
    )


EXPERIMENT = Experiment(
    name="wireless",
    title="Satellite channels",
    place=FIGURE,
    about=(
        "50 agents, each one of five published two-state channels drawn at random, acting is an elevation of 60 "
        "degrees instead of 40, rewards 0.9 and 1, 1000 steps. The noisy half adds a Gaussian of variance 0.1. "
        "Each of the 100 repetitions draws its own assignment of channels to agents."
    ),
    plan=plan,
    examine=examine,
)
