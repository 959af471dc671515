"""What the verbs of `restive desk` say: lists, plans, notes and bars. Libraries are loaded late."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restive.errors import InputError

if TYPE_CHECKING:
    from restive.desk.advice import Advice


@contextmanager
def bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, if somebody is looking."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def say_advice(advice: "Advice", out: Path | None, as_json: bool, dry_run: bool, most: int = 60) -> None:
    """A list, to read, to write or as data; to read, the first `most` lines of it."""
    from restive.desk.screen import print_list
    from restive.desk.sheets import write_sheet

    if out and not dry_run:
        try:
            write_sheet(advice.table, out)
        except OSError as error:
            once_more = f"restive desk round {advice.program} {advice.round} --out FILE"
            raise InputError(f"{out}: {error.strerror}; the list is recorded all the same: {once_more}") from None
    if as_json:
        print_json(advice.as_json() | {"recorded": not dry_run})
    else:
        rows = [
            {"rank": f"+{row['rank']}" if row["list"] == "spare" else row["rank"], "person": row["agent"],
             "state": row["state_now"], "benefit": row["benefit"], "error": row["error"], "chance": row["probability"],
             "why": row["reason"]}
            for row in advice.table.head(most).to_dicts()
        ]  # fmt: skip
        chosen, words = len(advice.chosen), advice.plan.words
        would = " (dry run, nothing recorded)" if dry_run else ""
        whom = words.person if chosen == 1 else words.people
        title = f"{advice.program}, round {advice.round}{would}: {chosen:,} {whom} to {words.verb}, then spares"
        print_list(rows, words, title)
        if advice.table.height > most:
            print(f"... and {advice.table.height - most:,} more; --out writes all of them to a file.")
        for sentence in _rules(advice):
            print(sentence)
    note([*advice.notes, *([f"wrote {out}"] if out and not dry_run else [])])


def _rules(advice: "Advice") -> Iterator[str]:
    from restive.desk.reasons import things

    left_out = advice.left_out()
    if left_out:
        yield "Not on the list: " + ", ".join(f"{number:,} by {why}" for why, number in left_out.items()) + "."
    priced = {rule: price for rule, price in advice.prices.items() if price is not None}
    if priced:
        words = advice.plan.words
        unit = f"{things(words)} over the {words.every}s to come" if advice.ahead else words.reward_unit
        yield f"What rules cost, in {unit}: " + ", ".join(f"{rule} {price:.2g}" for rule, price in priced.items()) + "."


def say_plan(name: str, plan: dict[str, Any], what: str, as_json: bool) -> None:
    """A plan in a few sentences."""
    from restive.desk.desk import name_store

    if as_json:
        print_json({"program": name, **plan})
        return
    worth = (
        "reported with each outcome" if plan["rewards"] is None else ", ".join(f"{each:g}" for each in plan["rewards"])
    )
    print(f"Program {name} {what}.")
    print(f"States: {', '.join(plan['states'])}; worth: {worth}.")
    print(f"Budget: {plan['budget']:,} a round. Policy: {plan['policy']}.")
    if plan["control"]:
        print(f"About {plan['control']:.0%} of the people are never treated, so that the effect can be seen.")
    for rule in _plan_rules(plan):
        print(rule)
    if "store" in plan:
        print(f"Store: {plan['store']}")
        print(f"Next: restive desk decide {name} --states STATES.csv --out list.csv{name_store(plan['store'])}")


def _plan_rules(plan: dict[str, Any]) -> Iterator[str]:
    """What else was settled, as far as it is anything."""
    if plan["shadow"]:
        yield f"Shadow, which decides nothing: {plan['shadow']}."
    if plan["cool_down"] > 1:
        yield f"Nobody twice in {plan['cool_down']:,} rounds."
    if plan["shares"]:
        shares = ", ".join(f"{group} {share:.0%}" for group, share in plan["shares"].items())
        yield f"Least share of the list: {shares}."
    if plan["horizon"]:
        yield f"Rounds in all: {plan['horizon']:,}."
    if plan["pseudonyms"]:
        from restive.desk.pseudonyms import keys_folder

        yield f"Names are kept as codes; their key: {keys_folder() / plan['pseudonyms']}.key, keep a copy of it."


def print_json(record: object) -> None:
    """Data on one line."""
    print(json.dumps(record, allow_nan=False), flush=True)


def note(notes: list[str]) -> None:
    """Remarks, on standard error."""
    for remark in notes:
        print(f"restive: {remark}", file=sys.stderr)
