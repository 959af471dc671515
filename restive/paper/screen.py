"""What `reproduce` and `compare` show in a terminal: bars with the time left, lists, tables, verdicts."""

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from restive.benchmark.contest import Contest
from restive.benchmark.scores import LATE
from restive.benchmark.tables import tabulate_costs, tabulate_ranks
from restive.paper.agenda import Agenda
from restive.paper.agenda import Progress as Told
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim
from restive.paper.experiment import Experiment
from restive.paper.experiment import Table as Shown
from restive.paper.summary import key_number, tally, worst_first
from restive.paper.work import Work

STYLES = {HOLDS: "green", FAILS: "bold red", UNDECIDED: "yellow"}


def print_experiments(experiments: Iterable[Experiment], as_json: bool) -> None:
    """One line each: name, what it is, where it stands in the paper."""
    print_names([{"experiment": each.name, "title": each.title, "place": each.place} for each in experiments], as_json)


def print_names(listed: Sequence[Mapping[str, str]], as_json: bool) -> None:
    """One line each: the name, what it is, and more if there is."""
    if as_json:
        print(json.dumps(listed))
        return
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    for each in listed:
        words = zip(each.values(), ("bold", "", "dim"), strict=False)
        table.add_row(*(Text(word, style=style) for word, style in words))
    _console().print(table)


@contextmanager
def experiment_bars(agenda: Agenda) -> Iterator[Told]:
    """A bar for each experiment that has something to do, and one for all with the time left, on standard error.

    Where standard error is no terminal, a line is printed as each experiment is done.
    """
    works = {name: len(missing) for name, missing in agenda.missing.items() if missing}
    weights = {name: sum(work.weight for work in agenda.missing[name]) for name in works}
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(works, weights)
        return
    percent = TextColumn("{task.percentage:3.0f}%")
    columns = (TextColumn("{task.description}"), BarColumn(), percent, TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=120) as progress:
        bars = {name: progress.add_task(name, total=weight) for name, weight in weights.items()}
        kept = f" ({len(agenda.found)} of the results were there)" if agenda.found else ""
        whole = progress.add_task(f"all{kept}", total=sum(weights.values()))

        def move(name: str, work: Work, seconds: float) -> None:
            progress.advance(bars[name], work.weight)
            progress.advance(whole, work.weight)

        yield move


def _lines(works: dict[str, int], weights: dict[str, float]) -> Told:
    open_works, begun, done = dict(works), time.monotonic(), 0.0

    def tell(name: str, work: Work, seconds: float) -> None:
        nonlocal done
        done += work.weight
        open_works[name] -= 1
        if open_works[name] == 0:
            spent = time.monotonic() - begun
            left = max(0.0, spent * (sum(weights.values()) - done) / done)
            print(f"restive: {name} done after {spent:.0f} s, about {left:.0f} s left", file=sys.stderr, flush=True)

    return tell


def print_claims(claims: Sequence[Claim], counted: str) -> None:
    """Every claim with its verdict and the part that is worst off, then how many hold."""
    console = _console()
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("verdict", "claim", "where", "number", "worst at"):
        table.add_column(name, overflow="fold", no_wrap=name == "verdict")
    for claim in claims:
        verdict = Text(claim.verdict, style=STYLES[claim.verdict])
        place = worst_first(claim)[0].setting if claim.parts else ""
        words = (claim.sentence, claim.place, key_number(claim), place)
        table.add_row(verdict, *(Text(word, style="dim" if word == claim.place else "") for word in words))
    console.print(table)
    console.print(f"{counted}.", highlight=False)


def print_table(shown: Shown) -> None:
    """A table of a report, its title above and its note below."""
    console, table = _console(), Table(box=box.SIMPLE_HEAD)
    for number, name in enumerate(shown.heads):
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in shown.rows:
        table.add_row(*map(Text, row))
    console.print(Text(shown.title, style="bold"))
    console.print(table)
    console.print(Text(shown.note, style="dim"))


def print_contest(contest: Contest) -> None:
    """Ranks, costs, which policy when, and the claims."""
    console = _console()
    if contest.scores.matches:
        print_table(tabulate_ranks(contest.scores, LATE))
    if contest.costs:
        print_table(tabulate_costs(contest.costs, contest.about["machine"]))
    for sentence in contest.advice:
        console.print(Text(f"- {sentence}"))
    print_claims(contest.claims, f"{len(contest.claims)} claims: {tally(claim.verdict for claim in contest.claims)}")


def tell(line: str) -> None:
    """What is going on, on standard error."""
    print(f"restive: {line}", file=sys.stderr, flush=True)


def _console() -> Console:
    """Wide enough for every table where there is no terminal to ask."""
    return Console() if sys.stdout.isatty() else Console(width=140)
