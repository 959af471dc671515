"""The paper's ablation of gamma, the threshold above which an agent counts as worth acting on."""

from restive.paper.claims import Claim, Range, above, measured
from restive.paper.curves import CEILING, FLOOR, HORIZON, Board, Scene, family_scenes
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import draw_board
from restive.paper.standings import EARLY, SHARE, standings
from restive.paper.work import Work

# The same shares of the reward range on every family; the lowest is the default, just above minus the range.
SHARES = (-0.5, 0.0, 0.25, 0.5)
RANGE = {"two-state-v1": 1.0, "many-state-v1": 9.0, "wireless-v1": 0.1}
LOWEST = "egt"
PLACE = "section 4.1, remark on the threshold; appendix, ablation of gamma"


def policies(scene: Scene) -> tuple[str, ...]:
    """eps-GT with rising thresholds."""
    return (LOWEST, *(f"egt:gamma={share * RANGE[scene.family]:g}" for share in SHARES))


def plan(size: Size) -> list[Work]:
    """eps-GT with every gamma, and the two ends of the gap."""
    return [work for scene in family_scenes(size).values() for work in scene.works((*policies(scene), FLOOR, CEILING))]


def examine(size: Size, results: Results) -> Findings:
    """Whether a higher threshold learns more slowly, and a low one is best."""
    boards = {family: Board(scene, results) for family, scene in family_scenes(size).items()}
    return Findings(
        claims=tuple(
            claim(board, family) for family, board in boards.items() for claim in (_slower, _lower, _low_is_best)
        ),
        figures={
            f"gamma-{family}": draw_board(
                board, (*policies(board.scene), CEILING, FLOOR), f"eps-GT with five thresholds, {family}"
            )
            for family, board in boards.items()
        },
        tables=tuple(
            standings(board, policies(board.scene))._replace(title=f"{family}: reward per step after 1000 steps")
            for family, board in boards.items()
        ),
    )


def _slower(board: Board, family: str) -> Claim:
    return _lowest_against_highest(board, family, EARLY, "slower", "learns more slowly: less is collected by step 100")


def _lower(board: Board, family: str) -> Claim:
    return _lowest_against_highest(board, family, HORIZON, "lower", "ends lower: less is collected over 1000 steps")


def _lowest_against_highest(board: Board, family: str, step: int, name: str, says: str) -> Claim:
    _, *others, highest = policies(board.scene)
    nearby = tuple(
        measured(f"{other}, {board.scene.name(*setting)}, t = {step}", board.lead(LOWEST, other, *setting, step))
        for other in reversed(others)
        for setting in board.scene.settings()
    )
    return Claim(
        name=f"gamma-higher-is-{name}-{family}",
        sentence=f"eps-GT with a higher threshold {says} ({family}).",
        place=PLACE,
        quantity=f"egt with the lowest gamma less {highest}, {SHARE}",
        agreement=above(0),
        parts=tuple(
            measured(f"{board.scene.name(*setting)}, t = {step}", board.lead(LOWEST, highest, *setting, step))
            for setting in board.scene.settings()
        ),
        nearby=nearby,
        remark="Only the two ends are compared here; the table has the thresholds between them.",
    )


def _low_is_best(board: Board, family: str) -> Claim:
    _, *others = policies(board.scene)
    return Claim(
        name=f"gamma-low-is-best-{family}",
        sentence=f"A low threshold does as well as any other ({family}).",
        place=PLACE,
        quantity=f"egt with the lowest gamma less egt with another, {SHARE}",
        agreement=Range(-0.01, float("inf")),
        parts=tuple(
            measured(f"{other}, {board.scene.name(*setting)}", board.lead(LOWEST, other, *setting))
            for other in others
            for setting in board.scene.settings()
        ),
        remark=(
            "The paper speaks of a low threshold under which assumption 4.2 holds. The lowest one here always is such "
            "a one; a quarter and a half of the range as a rule are not, and the largest differs between instances."
        ),
    )


EXPERIMENT = Experiment(
    name="gamma",
    title="How much gamma matters",
    place="appendix, ablation of gamma",
    about=(
        "eps-GT with five thresholds on the three families: just above minus the reward range (the default, -8.9 with "
        "ten states as in the paper), then minus a half, none, a quarter and a half of the range. The paper does not "
        "print the thresholds that it tried."
    ),
    plan=plan,
    examine=examine,
)
