"""The paper's appendix: Figure 1 again with ten states worth 0 to 9."""

from restive.paper.claims import OURS, Claim, above, measured
from restive.paper.curves import CEILING, EVERYONE, FLOOR, Board, ten_state_scene, two_state_scene
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import draw_board
from restive.paper.standings import EARLY, SHARE, outdoes, standings, under_the_bound
from restive.paper.work import Work
from restive.stats import difference

FIGURE = "appendix, ten states"


def plan(size: Size) -> list[Work]:
    """All policies, and of the two-state scene what the comparison with it needs."""
    two, ten = two_state_scene(size), ten_state_scene(size)
    compared = [two.work(policy, *setting) for setting in two.settings() for policy in ("egt", "wiql", FLOOR, CEILING)]
    return [*ten.works(players(size)), *compared]


def players(size: Size) -> tuple[str, ...]:
    """Everyone, but in the quick form not the one that takes half of the time and is not in the paper."""
    return tuple(policy for policy in EVERYONE if not (size.quick and policy == "thompson-whittle"))


def examine(size: Size, results: Results) -> Findings:
    """Who is ahead of whom, and whether by more than with two states."""
    board, simpler = Board(ten_state_scene(size), results), Board(two_state_scene(size), results)
    claims = (
        outdoes(board, "ten-state", FIGURE, "wiql"),
        outdoes(board, "ten-state", FIGURE, "wiql", EARLY),
        outdoes(board, "ten-state", OURS, FLOOR),
        outdoes(board, "ten-state", OURS, "ucwhittle"),
        outdoes(board, "ten-state", OURS, "rma2b"),
        _larger_lead(board, simpler),
        under_the_bound(board, "ten-state"),
    )
    figure = draw_board(board, players(size), "Random ten-state agents")
    return Findings(claims, {"ten-state": figure}, (standings(board, players(size)),))


def _larger_lead(ten: Board, two: Board) -> Claim:
    parts = [
        measured(
            f"B = {many[0]}, {'noisy' if many[1] else 'noiseless'}",
            difference(ten.lead("egt", "wiql", *many), two.lead("egt", "wiql", *few)),
        )
        for many, few in zip(ten.scene.settings(), two.scene.settings(), strict=True)
    ]
    return Claim(
        name="ten-state-larger-lead",
        sentence="The lead of eps-GT over WIQL is larger with ten states than with two.",
        place=FIGURE,
        quantity=f"lead with ten states less lead with two, {SHARE}",
        agreement=above(0),
        parts=tuple(parts),
    )


EXPERIMENT = Experiment(
    name="ten-state",
    title="Random ten-state agents",
    place=FIGURE,
    about=(
        "50 agents with ten states worth 0 to 9, every row of every agent uniform on the simplex (the paper says only "
        "that they are random), 1000 steps, eps-GT with gamma = -8.9. The noisy half adds a Gaussian of variance 0.1. "
        "thompson-whittle, which is not in the paper and takes very long here, plays one run of each instance, and "
        "none in the quick form."
    ),
    plan=plan,
    examine=examine,
)
