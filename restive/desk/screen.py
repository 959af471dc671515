"""What the desk shows in a terminal: a program at a glance, lists with their reasons, histories, reports.

Everything takes plain data, a `Status` or rows (a dictionary each), and prints. It fits 80 columns and narrower: no
number is ever cut, and columns that do not fit are left out, the last first. Names are shown as they are, never read as
markup.
"""

import math
import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from restive.desk.config import Words
from restive.desk.explanations import REACH, capital, rounded, things
from restive.desk.status import RoundRow, Status
from restive.types import Floats

Row = Mapping[str, object]
BARS = "▁▂▃▄▅▆▇█"
NOTHING = "–"
LAST = 8  # rounds in the table; the bars show more
FOLDED, GAP = 12, 2  # a column of text is folded to no less than this; columns are so far apart


def print_status(status: Status) -> None:
    """The page of a program: what to do, who is in, whether it works, the last rounds, what was learned."""
    console = _console()
    console.print(Text(status.title or status.name, style="bold"))
    console.print(Text(_about(status), style="dim"))
    for step in status.steps:
        console.print(Text(f"→ {step}"))
    console.print(Text(f"\n{_people(status)}"))
    _print_works(console, status)
    if status.rounds:
        _print_rounds(console, status)
    if status.learned:
        _print_learned(console, status)


def print_list(rows: Sequence[Row], words: Words, title: str = "") -> None:
    """A decision: rank, person, state, benefit, probability and, on a line of its own, why.

    Keys of a row: rank, person, state, benefit, error, probability, why; any but rank and person may be missing.
    """
    console = _console()
    if title:
        console.print(Text(title, style="bold"))
    lines = [
        {
            "rank": row.get("rank"),
            words.person: row.get("person"),
            "state": row.get("state"),
            "benefit (95%)": show_benefit(_number(row.get("benefit")), _number(row.get("error"))),
            "how sure": how_sure(_number(row.get("benefit")), _number(row.get("error"))),
            "probability": _percent(_number(row.get("probability"))),
        }
        for row in rows
    ]
    _print_table(console, lines, projection=(words.person, "state"), below=[str(row.get("why") or "") for row in rows])
    if rows:
        console.print(Text(f"Benefit: {things(words)} that {words.action} is expected to add.", style="dim"))


def print_history(rows: Sequence[Row], words: Words, person: str) -> None:
    """An agent's rounds. Keys: round, at, state, chosen, done, probability, reward, after, note."""
    console = _console()
    console.print(Text(f"{capital(words.person)} {person}", style="bold"))
    lines = [
        {
            "round": row.get("round"),
            "state": row.get("state"),
            "on the list": _yes(row.get("chosen")),
            "done": _yes(row.get("done")),
            "reward": _plain(row.get("reward")),
            "state after": row.get("after"),
            "probability": _percent(_number(row.get("probability"))),
            "at": _minute(row.get("at")),
            "note": row.get("note"),
        }
        for row in rows
    ]
    _print_table(console, lines, projection=("state", "state after", "note"))


def print_programs(rows: Sequence[Row]) -> None:
    """The programs of a store. Keys: name, people, rounds, waiting, policy, created, template, events, error."""
    names = ["name", "people", "rounds", "waiting", "policy", "created", "template", "events"]
    names += ["error"] if any(row.get("error") for row in rows) else []
    lines = [{name: _minute(row.get(name)) if name == "created" else row.get(name) for name in names} for row in rows]
    _print_table(_console(), lines, projection=("name", "template", "policy", "error"), none="No programs yet.")


def print_tokens(rows: Sequence[Row]) -> None:
    """The tokens of a store. Keys: name, id, grants, made, expires, revoked."""
    times = ("made", "expires", "revoked")
    lines = [
        {name: row.get(name) for name in ("name", "id", "grants")} | {name: _minute(row.get(name)) for name in times}
        for row in rows
    ]
    _print_table(_console(), lines, projection=("name", "grants"), none="No tokens yet.")


def print_templates(rows: Sequence[Row]) -> None:
    """Templates one below the other. Keys: name, title, about, states, signs (one for each state)."""
    console = _console()
    for row in rows:
        heading = Text(str(row["name"]), style="bold") + Text(f"  {row.get('title') or ''}", style="not bold")
        console.print(heading)
        console.print(Padding(Text(str(row.get("about") or "")), (0, 0, 0, 2)))
        if "budget" in row:
            usual = f"{row['budget']} a {row.get('every')}; states, worst first, with their {row['reward_unit']}:"
            console.print(Padding(Text(usual), (0, 0, 0, 2)))
        worth = [f" ({value:g})" if isinstance(value, float) else "" for value in _sequence(row.get("rewards"))]
        states, signs = _sequence(row.get("states")), _sequence(row.get("signs"))
        for state, sign, each in zip(states, signs, worth or [""] * len(states), strict=False):
            console.print(Padding(Text(f"{state}{each}: {sign}", style="dim"), (0, 0, 0, 4)))
        console.print()


def show_benefit(benefit: float, error: float) -> str:
    """A benefit with its 95% reach.

    >>> show_benefit(0.41, 0.1), show_benefit(0.41, math.nan), show_benefit(0.0, math.inf)
    ('0.4 ± 0.2', '0.41', '–')
    """
    if math.isnan(benefit) or math.isinf(error):
        return NOTHING
    value, reach = rounded(benefit, REACH * error)
    return f"{value} ± {reach}" if reach else value


def how_sure(benefit: float, error: float) -> str:
    """In words: a benefit beyond its 95% reach is clear.

    >>> [how_sure(benefit, 0.1) for benefit in (0.3, 0.1, -0.1, -0.3)], how_sure(0.2, math.inf)
    (['clear', 'unsure', 'unsure', 'clear loss'], 'not known')
    """
    if not math.isfinite(benefit) or not math.isfinite(error):
        return "not known"
    if abs(benefit) <= REACH * error:
        return "unsure"
    return "clear" if benefit > 0 else "clear loss"


def draw_bars(values: Floats, low: float, high: float) -> str:
    """Bars between two ends, one for each value, a dot where there is none.

    >>> draw_bars(np.array([0.0, 0.5, math.nan, 1.0]), 0.0, 1.0)
    '▁▅·█'
    """
    share = (np.clip(values, low, high) - low) / (high - low if high > low else 1.0)
    return "".join("·" if part != part else BARS[min(7, int(part * 8))] for part in share.tolist())


def _about(status: Status) -> str:
    ends = f" of {status.horizon:,}" if status.horizon else ""
    decided = len(status.rounds)
    rounds = "round" if decided == 1 and not ends else "rounds"
    return (
        f"{status.name}, {status.policy}, {decided:,}{ends} {rounds} decided, {status.store}, restive {status.version}"
    )


def _people(status: Status) -> str:
    people, words = status.people, status.words
    parts = [f"{people.active:,} {words.people if people.active != 1 else words.person}"]
    for number, what in ((people.control, "in the control group"), (people.new, "new"), (people.left, "left")):
        if number:
            parts.append(f"{number:,} {what}")
    if people.erased:
        parts.append(f"{people.erased:,} erased")
    unasked = sum(row.unasked for row in status.rounds)
    more = f", and {unasked:,} unasked" if unasked else ""
    done = f"{status.actions - unasked:,} done{more}"
    used = f" Of the budget {status.budget_used:.0%} was used ({done})." if status.actions else ""
    return f"{', '.join(parts)}.{used}"


def _print_works(console: Console, status: Status) -> None:
    """Whether it works, in bars and sentences."""
    reported = [status.lift.sentence, _total(status), status.caution] if status.lift else []
    if lines := [*_curves(status, console.width), *filter(None, reported)]:
        console.print(Text("\nDoes it work?" if reported else "\nReward", style="bold"))
        console.print(Text("\n".join(lines)))
    if status.shadow is not None:
        common = f" {status.shadow.overlap:.0%} of the list in common." if math.isfinite(status.shadow.overlap) else ""
        console.print(Text(f"\nShadow {status.shadow_policy or ''}".rstrip(), style="bold"))
        console.print(Text(status.shadow.sentence + common))


def _total(status: Status) -> str:
    """What the program added in all, and by each action, where that can be reported."""
    lift, what = status.lift, things(status.words)
    if lift is None or not math.isfinite(lift.extra_high):
        return ""
    reach = (lift.extra_high - lift.extra_low) / 2
    value, low, high = (rounded(number, reach / 10)[0] for number in (lift.extra, lift.extra_low, lift.extra_high))
    each, spread = lift.per_action(status.actions), ""
    if status.actions:
        value_each = rounded(each[0], (each[2] - each[1]) / 20)[0]
        spread = f", {value_each} for each time someone {status.words.acted}"
    return f"In all that makes {value} {what} (95% interval from {low} to {high}){spread}."


def _curves(status: Status, width: int) -> list[str]:
    """The reward of both sides round by round, on one scale; the last rounds where not all fit."""
    label = max(len("control group"), len("in the program"))
    rows = status.rounds[-max(1, width - label - 20) :]
    sides = [np.array([getattr(row, name) for row in rows]) for name in ("reward_mean", "control_mean")]
    known = np.concatenate(sides)
    known = known[np.isfinite(known)]
    if known.size == 0 or len(rows) < 2:
        return []
    low, high = float(known.min()), float(known.max())
    names = ("in the program", "control group")
    last = [next((value for value in side[::-1].tolist() if value == value), math.nan) for side in sides]
    lines = [
        f"{name:<{label}}  {draw_bars(side, low, high)}  {_plain(end)}"
        for name, side, end in zip(names, sides, last, strict=True)
        if end == end
    ]
    scale = f"{status.words.reward_unit} for each {status.words.person}"
    spans = f"rounds {rows[0].round} to {rows[-1].round}, bars from {_plain(low)} to {_plain(high)}"
    return [*lines, f"{capital(scale)}, {spans}; the number is the last."]


def _print_rounds(console: Console, status: Status) -> None:
    console.print(Text("\nRounds", style="bold"))
    # From the one that is kept longest to the one that a narrow terminal does without first.
    lines = [
        {
            "round": row.round,
            "on the list": row.advised,
            "done": row.done,
            "outcomes": f"{row.outcomes_in:,}/{row.present:,}",
            "reward": _plain(row.reward_mean),
            "control": _plain(row.control_mean),
            "expected each": _plain(row.expected_each),
            "by lot": row.explored,
            "failed": row.failed,
            **({"unasked": row.unasked} if any(each.unasked for each in status.rounds[-LAST:]) else {}),
            "budget": row.budget,
            "decided at": _minute(row.at),
        }
        for row in status.rounds[-LAST:]
    ]
    _print_table(console, lines)
    console.print(Text(_legend(status.rounds[-LAST:], status), style="dim"))


def _legend(rows: Sequence[RoundRow], status: Status) -> str:
    more = f"The last {len(rows)} of {len(status.rounds):,} rounds. " if len(rows) < len(status.rounds) else ""
    who = f"for each {status.words.person}"
    return f"{more}Reward {who} who could be on the list, control {who} who could not, in {status.words.reward_unit}."


def _print_learned(console: Console, status: Status) -> None:
    words = status.words
    span = f"over the {words.every}s to come" if status.ahead else f"in the next {words.every}"
    console.print(Text(f"\nWhat {words.action} is expected to bring, {things(words)} {span}", style="bold"))
    lines = [
        {
            "state": each.state,
            "mean": rounded(each.benefit)[0] if math.isfinite(each.benefit) else NOTHING,
            f"expected to help, of {words.people}": f"{each.helped:,} of {each.people:,}",
            "spread": rounded(each.spread)[0] if math.isfinite(each.spread) else NOTHING,
        }
        for each in status.learned
    ]
    _print_table(console, lines, projection=("state",))


def _print_table(
    console: Console,
    rows: Sequence[Row],
    projection: Iterable[str] = (),
    below: Sequence[str] = (),
    none: str = "Nothing to show.",
) -> None:
    """Columns in the order of their keys, without the last ones where the terminal is too narrow for them.

    A column without any content is left out. `below` has a sentence to print under each row.
    """
    if not rows:
        console.print(Text(none))
        return
    cells = {name: [_text(row.get(name)) for row in rows] for name in rows[0]}
    cells = {name: column for name, column in cells.items() if any(cell not in ("", NOTHING) for cell in column)}
    wanted = {name: max(map(cell_len, [name, *column])) for name, column in cells.items()}
    widths = _fit(wanted, set(projection) & set(wanted), console.width)
    right = {name for name in widths if not any(cell[:1].isalpha() for cell in cells[name]) and name not in projection}
    lines = [[Text(cells[name][place]) for name in widths] for place in range(len(rows))]
    if not below:
        console.print(_grid(widths, right, lines))
        return
    console.print(_grid(widths, right, []))
    for line, sentence in zip(lines, below, strict=True):
        console.print(_grid(widths, right, [line], header=False))
        console.print(Padding(Text(sentence, style="dim"), (0, 0, 0, 2)))


def _grid(widths: Mapping[str, int], right: set[str], lines: Sequence[Sequence[Text]], header: bool = True) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim", show_header=header)
    for name, width in widths.items():
        grid.add_column(Text(name), width=width, justify="right" if name in right else "left", overflow="fold")
    for line in lines:
        grid.add_row(*line)
    return grid


def _fit(wanted: Mapping[str, int], foldable: set[str], width: int) -> dict[str, int]:
    """The width of each column that is shown: whole, except that those that can be folded share what is left."""
    kept = list(wanted)
    least = {name: min(wanted[name], FOLDED) if name in foldable else wanted[name] for name in kept}
    while len(kept) > 1 and sum(least[name] + GAP for name in kept) - GAP > width:
        kept.pop()
    spare = width - sum(least[name] + GAP for name in kept) + GAP
    widths = {}
    for name in kept:
        more = min(max(0, spare), wanted[name] - least[name])
        widths[name], spare = min(width, least[name] + more), spare - more
    return widths


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NOTHING
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _plain(value: object) -> object:
    """Numbers with three digits that mean something, and everything else as it is."""
    if isinstance(value, bool) or not isinstance(value, float):
        return value
    if not math.isfinite(value):
        return NOTHING
    decimals = max(0, 2 - math.floor(math.log10(abs(value)))) if value else 0
    return f"{value:,.{decimals}f}"


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan


def _percent(probability: float) -> str:
    if math.isnan(probability):
        return NOTHING
    return "<1%" if 0 < probability < 0.01 else ">99%" if 0.99 < probability < 1 else f"{probability:.0%}"


def _yes(value: object) -> str:
    return NOTHING if value is None else "yes" if value else "no"


def _minute(value: object) -> str:
    """A time to the minute; it is UTC, and more is in the records.

    >>> _minute("2026-03-02T08:15:59.123456+00:00")
    '2026-03-02 08:15'
    """
    return str(value)[:16].replace("T", " ") if value else NOTHING


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _console() -> Console:
    """Wide enough for every table where there is no terminal to ask."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(width=120, highlight=False)
