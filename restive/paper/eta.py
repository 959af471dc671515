"""The paper's ablation of eta, the guess of the gap that sets how fast eps-GT stops exploring."""

from restive.paper.claims import Claim, Range, measured
from restive.paper.curves import CEILING, FLOOR, Board, family_scenes
from restive.paper.experiment import Experiment, Findings, Results, Size
from restive.paper.panels import draw_board
from restive.paper.standings import SHARE, standings
from restive.paper.work import Work

ETAS = (0.1, 0.5, 1.0, 1.5)
USUAL = "egt"
POLICIES = tuple(USUAL if eta == 1.0 else f"egt:eta={eta:g}" for eta in ETAS)


def plan(size: Size) -> list[Work]:
    """eps-GT with every eta, and the two ends of the gap."""
    return [work for scene in family_scenes(size).values() for work in scene.works((*POLICIES, FLOOR, CEILING))]


def examine(size: Size, results: Results) -> Findings:
    """How much eta matters."""
    boards = {family: Board(scene, results) for family, scene in family_scenes(size).items()}
    return Findings(
        claims=tuple(_insensitive(board, family) for family, board in boards.items()),
        figures={
            f"eta-{family}": draw_board(board, (*POLICIES, CEILING, FLOOR), f"eps-GT with four values of eta, {family}")
            for family, board in boards.items()
        },
        tables=tuple(
            standings(board, POLICIES)._replace(title=f"{family}: reward per step after 1000 steps")
            for family, board in boards.items()
        ),
    )


def _insensitive(board: Board, family: str) -> Claim:
    parts = tuple(
        measured(f"{policy}, {board.scene.name(*setting)}", board.lead(policy, USUAL, *setting))
        for policy in POLICIES
        if policy != USUAL
        for setting in board.scene.settings()
    )
    return Claim(
        name=f"eta-insensitive-{family}",
        sentence=f"What eps-GT collects hardly depends on eta ({family}).",
        place="section 4.1; appendix, ablation of eta",
        quantity=f"egt with another eta less egt with eta = 1, {SHARE}",
        agreement=Range(-0.05, 0.05),
        parts=parts,
        remark="eta enters as min(eta², 1/2), so that 1 and 1.5 are the same policy, and 0.5 explores twice as much.",
    )


EXPERIMENT = Experiment(
    name="eta",
    title="How much eta matters",
    place="appendix, ablation of eta",
    about="eps-GT with eta = 0.1, 0.5, 1 and 1.5 on the three families; all else as in their own experiments.",
    plan=plan,
    examine=examine,
)
