"""Claims about who is ahead of whom, which the paper makes for each of its families, and the table behind them."""

from restive.paper.claims import OURS, Claim, Part, Range, above, measured
from restive.paper.curves import BUDGETS, CEILING, FLOOR, HORIZON, Board, read_curve
from restive.report.tables import Table
from restive.stats import Band, band

EARLY = 100
OTHER_STEPS = (500, 200, 100, 50, 20)
TITLES = {"egt": "eps-GT", "wiql": "WIQL", "ucwhittle": "UCWhittle", "rma2b": "R(MA)²B", "random": "random choice"}
SHARE = "share of the gap from random to the Whittle oracle, in running mean reward"


def leads(
    board: Board, ahead: str, behind: str, step: int = HORIZON, noises: tuple[float, ...] | None = None
) -> tuple[Part, ...]:
    """How far one policy is ahead of another in every setting."""
    chosen = (0.0, board.scene.noise) if noises is None else noises
    return tuple(
        measured(_at(board, budget, noise, step), board.lead(ahead, behind, budget, noise, step))
        for budget, noise in board.scene.settings()
        if noise in chosen
    )


def earlier(board: Board, ahead: str, behind: str, noises: tuple[float, ...] | None = None) -> tuple[Part, ...]:
    """The same at other steps, the latest first."""
    return tuple(part for step in OTHER_STEPS for part in leads(board, ahead, behind, step, noises))


def _at(board: Board, budget: int, noise: float, step: int) -> str:
    return f"{board.scene.name(budget, noise)}, t = {step}"


def outdoes(
    board: Board, family: str, place: str, behind: str, step: int = HORIZON, remark: str = "", ahead: str = "egt"
) -> Claim:
    """One policy is ahead of another, in all settings, at one step."""
    when = "early, by step 100," if step == EARLY else "over 1000 steps"
    nearby = () if step == EARLY else earlier(board, ahead, behind)
    return Claim(
        name=f"{family}-{ahead}-above-{behind}{'-early' if step == EARLY else ''}",
        sentence=_ahead_of(ahead, behind, f"{when} at every budget, with and without noise", family),
        place=place,
        quantity=f"lead of {ahead} over {behind}, {SHARE}",
        agreement=above(0),
        parts=leads(board, ahead, behind, step),
        nearby=nearby,
        remark=remark,
    )


def outdoes_by_noise(
    board: Board, family: str, place: str, behind: str, noisy_place: str = OURS, ahead: str = "egt"
) -> tuple[Claim, Claim]:
    """The same as two claims, without noise and with it, where the paper makes but one of them."""
    halves = (("noiseless", 0.0, place), ("noisy", board.scene.noise, noisy_place))
    noiseless, noisy = (
        Claim(
            name=f"{family}-{ahead}-above-{behind}-{half}",
            sentence=_ahead_of(ahead, behind, f"over 1000 steps at every budget, {half}", family),
            place=where,
            quantity=f"lead of {ahead} over {behind}, {SHARE}",
            agreement=above(0),
            parts=leads(board, ahead, behind, noises=(noise,)),
            nearby=earlier(board, ahead, behind, noises=(noise,)),
        )
        for half, noise, where in halves
    )
    return noiseless, noisy


def _ahead_of(ahead: str, behind: str, when: str, family: str) -> str:
    return f"{TITLES[ahead]} collects more than {TITLES[behind]} {when} ({family})."


def near_random(board: Board, family: str, place: str, policy: str) -> Claim:
    """A learner does no better than random."""
    noiseless = (0.0,)
    return Claim(
        name=f"{family}-{policy}-near-random",
        sentence=f"{TITLES[policy]} does about as well as random over 1000 steps ({family}).",
        place=place,
        quantity=f"gap closed by {policy}, {SHARE}",
        agreement=Range(-0.1, 0.1),
        parts=leads(board, policy, FLOOR, noises=noiseless),
        nearby=earlier(board, policy, FLOOR, noises=noiseless),
    )


def under_the_bound(board: Board, family: str, runs: int | None = None) -> Claim:
    """A check on ourselves: nobody can be above the fluid bound; `runs` are those of the oracle, if not the scene's."""
    parts = []
    for budget in BUDGETS:
        played = read_curve(board.results[board.scene.work(CEILING, budget, 0.0, runs)])
        bound = read_curve(board.results[board.scene.bound(budget)])
        over = band(played.mean(board.scene.horizon) - bound.mean(board.scene.horizon))
        parts.append(measured(f"B = {budget}", over))
    return Claim(
        name=f"{family}-under-the-bound",
        sentence=f"Not even the Whittle oracle collects more than the fluid bound ({family}).",
        place=OURS,
        quantity="running mean of the Whittle oracle less the fluid bound, reward per step",
        agreement=Range(float("-inf"), 0.0),
        parts=tuple(parts),
    )


def standings(board: Board, policies: tuple[str, ...]) -> Table:
    """Reward and gap closed of every policy in every setting."""
    settings = list(board.scene.settings())
    heads = ("policy", *(board.scene.name(*setting) for setting in settings))
    rows = tuple((policy, *(_cell(board, policy, *setting) for setting in settings)) for policy in policies)
    bounds = tuple(f"{board.bound(budget)[-1]:.3f}" for budget, _ in settings)
    return Table(
        "Reward per step after 1000 steps, and the gap closed",
        heads,
        (*rows, ("fluid bound", *bounds)),
        "Mean reward per step, summed over agents, ± half of its 95% interval over instances; then the share of the "
        "gap from random to the Whittle oracle that is closed after 100 and after 1000 steps.",
    )


def _cell(board: Board, policy: str, budget: int, noise: float) -> str:
    reward = board.reward(policy, budget, noise)
    early, late = (board.gap_closed(policy, budget, noise, step) for step in (EARLY, HORIZON))
    return f"{with_reach(reward)}; {early.mean:.2f}, {late.mean:.2f}"


def with_reach(interval: Band, decimals: int = 3) -> str:
    """A mean ± half of its interval.

    >>> with_reach(Band(*np.array([5.0, 1.0, 3.0, 7.0])), 1)
    '5.0 ± 2.0'
    """
    return f"{interval.mean:.{decimals}f} ± {interval.high - interval.mean:.{decimals}f}"
