"""What `reproduce` and `compare` show in a terminal: bars with the time left, lists, tables, verdicts."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.text import Text

from restive.benchmark.contest import Contest
from restive.benchmark.scores import LATE
from restive.benchmark.tables import tabulate_costs, tabulate_ranks
from restive.console import make_console, print_notices, print_report_table, print_table, print_text, progress_bars
from restive.paper.agenda import Agenda
from restive.paper.agenda import Progress as Told
from restive.paper.claims import FAILS, HOLDS, UNDECIDED, Claim
from restive.paper.summary import key_number, tally, worst_first
from restive.paper.work import Work

STYLES = {HOLDS: "green", FAILS: "bold red", UNDECIDED: "yellow"}


@contextmanager
def experiment_bars(agenda: Agenda) -> Iterator[Told]:
    """A bar for each experiment that has something to do, and one for all with the time left, on standard error.

    Where standard error is no terminal, a line is printed as each experiment is done.
    """
    works = {name: len(missing) for name, missing in agenda.missing.items() if missing}
    weights = {name: sum(work.weight for work in agenda.missing[name]) for name in works}
    if not make_console(stderr=True).is_terminal:
        yield _lines(works, weights)
        return
    kept = f" ({len(agenda.found)} of the results were there)" if agenda.found else ""
    with progress_bars(weights, overall=f"all{kept}") as advance:
        yield lambda name, work, seconds: advance(name, work.weight)


def _lines(works: dict[str, int], weights: dict[str, float]) -> Told:
    open_works, begun, done = dict(works), time.monotonic(), 0.0

    def tell(name: str, work: Work, seconds: float) -> None:
        nonlocal done
        done += work.weight
        open_works[name] -= 1
        if open_works[name] == 0:
            spent = time.monotonic() - begun
            left = max(0.0, spent * (sum(weights.values()) - done) / done)
            print_notices(f"{name} done after {spent:.0f} s, about {left:.0f} s left")

    return tell


def print_claims(claims: Sequence[Claim], counted: str) -> None:
    """Every claim with its verdict and the part that is worst off, then how many hold."""
    rows = [
        {
            "verdict": Text(claim.verdict, style=STYLES[claim.verdict]),
            "claim": claim.sentence,
            "where": Text(claim.place, style="dim"),
            "number": key_number(claim),
            "worst at": worst_first(claim)[0].setting if claim.parts else "",
        }
        for claim in claims
    ]
    print_table(rows, ("claim", "where", "number", "worst at"), drop=())
    print_text(f"{counted}.")


def print_contest(contest: Contest) -> None:
    """Ranks, costs, which policy when, and the claims."""
    if contest.scores.matches:
        print_report_table(tabulate_ranks(contest.scores, LATE))
    if contest.costs:
        print_report_table(tabulate_costs(contest.costs, contest.about["machine"]))
    print_text(*(f"- {sentence}" for sentence in contest.advice))
    print_claims(contest.claims, f"{len(contest.claims)} claims: {tally(claim.verdict for claim in contest.claims)}")
