"""The paper's ablations of eps-GT: eta, which sets how fast exploration fades, and gamma, the threshold for acting."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from restive.paper.claims import Part, measured
from restive.paper.curves import (
    CEILING,
    EARLY,
    FLOOR,
    HORIZON,
    Scoreboard,
    Setup,
    draw_scoreboard,
    family_setups,
    standings,
)
from restive.paper.experiment import Measured, Parts
from restive.paper.jobs import Job, Results, Size

DEFAULT = "egt"  # eta is 1, and gamma just above minus the range of the rewards
ETAS = (0.1, 0.5, 1.0, 1.5)
GAMMA_SHARES = (-0.5, 0.0, 0.25, 0.5)  # of the range of the rewards
ABLATION_RUNS = 6
QUICK_ETAS, QUICK_GAMMA_SHARES = (0.1, 1.0), (0.5,)

Policies = Callable[[Size, Setup], tuple[str, ...]]


def eta_policies(size: Size, setup: Setup) -> tuple[str, ...]:
    """eps-GT with every eta."""
    return tuple(DEFAULT if eta == 1.0 else f"egt:eta={eta:g}" for eta in size.pick(ETAS, QUICK_ETAS))


def gamma_policies(size: Size, setup: Setup) -> tuple[str, ...]:
    """eps-GT with rising thresholds."""
    reward_range = 0.1 if setup.family == "wireless-v1" else setup.states - 1.0
    shares: tuple[float, ...] = size.pick(GAMMA_SHARES, QUICK_GAMMA_SHARES)
    return (DEFAULT, *(f"egt:gamma={share * reward_range:g}" for share in shares))


def eta_jobs(size: Size) -> list[Job]:
    """eps-GT with every eta on the three families."""
    return _list_jobs(size, eta_policies)


def gamma_jobs(size: Size) -> list[Job]:
    """eps-GT with every threshold on the three families."""
    return _list_jobs(size, gamma_policies)


def _list_jobs(size: Size, policies: Policies) -> list[Job]:
    """The policies and the two ends of the gap."""
    return [
        job for setup in _list_setups(size).values() for job in setup.jobs((*policies(size, setup), FLOOR, CEILING))
    ]


def _list_setups(size: Size) -> dict[str, Setup]:
    """The families, with fewer runs of the settings that only an ablation has."""
    setups = family_setups(size)
    for family, setup in setups.items():
        own = {*eta_policies(size, setup), *gamma_policies(size, setup)} - {DEFAULT}
        setups[family] = replace(setup, fewer_runs={**setup.fewer_runs, **dict.fromkeys(own, ABLATION_RUNS)})
    return setups


def measure_eta(size: Size, results: Results) -> Measured:
    """Another eta against the default."""
    boards, parts = _read_boards(size, results), {}
    for family, board in boards.items():
        others = [policy for policy in eta_policies(size, board.setup) if policy != DEFAULT]
        parts[f"eta-insensitive-{family}"] = _list_leads(board, [(other, DEFAULT) for other in others])
    return _present(size, "eta", boards, eta_policies, parts)


def measure_gamma(size: Size, results: Results) -> Measured:
    """The lowest threshold, which is the default, against the highest and those between."""
    boards, highest = _read_boards(size, results), {}
    parts: dict[str, list[Part]] = {}
    nearby: dict[str, list[Part]] = {}
    for family, board in boards.items():
        _, *others, last = gamma_policies(size, board.setup)
        highest[f"highest-{family}"] = last
        for name, step in (("slower", EARLY), ("lower", HORIZON)):
            claim = f"gamma-higher-is-{name}-{family}"
            parts[claim] = [
                measured(f"{board.setup.name(*setting)}, t = {step}", board.lead(DEFAULT, last, *setting, step))
                for setting in board.setup.settings()
            ]
            pairs = [(DEFAULT, other) for other in reversed(others)]
            nearby[claim] = _list_leads(board, pairs, step, f", t = {step}")
        parts[f"gamma-low-is-best-{family}"] = _list_leads(board, [(DEFAULT, other) for other in (*others, last)])
    found = _present(size, "gamma", boards, gamma_policies, parts)
    return replace(found, nearby=nearby, values=highest)


def _read_boards(size: Size, results: Results) -> dict[str, Scoreboard]:
    return {family: Scoreboard(setup, results) for family, setup in _list_setups(size).items()}


def _list_leads(
    board: Scoreboard, pairs: Iterable[tuple[str, str]], step: int = HORIZON, suffix: str = ""
) -> list[Part]:
    """The leads of the first of each pair over the second in all settings, named after the one that is not the default."""
    return [
        measured(
            f"{behind if ahead == DEFAULT else ahead}, {board.setup.name(*setting)}{suffix}",
            board.lead(ahead, behind, *setting, step),
        )
        for ahead, behind in pairs
        for setting in board.setup.settings()
    ]


def _present(size: Size, name: str, boards: Mapping[str, Scoreboard], policies: Policies, parts: Parts) -> Measured:
    """The parts with a figure and a table for each family."""
    figures, tables = {}, []
    for family, board in boards.items():
        shown = policies(size, board.setup)
        figures[f"{name}-{family}"] = draw_scoreboard(
            board, (*shown, CEILING, FLOOR), f"eps-GT with {len(shown)} values of {name}, {family}"
        )
        tables.append(standings(board, shown)._replace(title=f"{family}: reward per step after 1000 steps"))
    return Measured(parts, figures=figures, tables=tuple(tables))
