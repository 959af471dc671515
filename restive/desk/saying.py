"""What the verbs of `restive desk` say: lists, configs, notes and bars. Libraries are loaded late."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restive.errors import InputError

if TYPE_CHECKING:
    from restive.desk.recommendation import Advice


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
    from restive.desk.table_files import write_table_file

    if out and not dry_run:
        try:
            write_table_file(advice.table, out)
        except OSError as error:
            once_more = f"restive desk round {advice.program} {advice.round} --out FILE"
            raise InputError(f"{out}: {error.strerror}; the list is recorded all the same: {once_more}") from None
    if as_json:
        print_json(advice.as_json() | {"recorded": not dry_run})
    else:
        rows = [
            {"rank": f"+{row['rank']}" if row["list"] == "spare" else row["rank"], "person": row["agent"],
             "state": row["state_now"], "benefit": row["benefit"], "error": row["error"], "probability": row["probability"],
             "why": row["reason"]}
            for row in advice.table.head(most).to_dicts()
        ]  # fmt: skip
        chosen, words = len(advice.chosen), advice.config.words
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
    from restive.desk.explanations import things

    left_out = advice.left_out()
    if left_out:
        yield "Not on the list: " + ", ".join(f"{number:,} by {why}" for why, number in left_out.items()) + "."
    priced = {rule: price for rule, price in advice.prices.items() if price is not None}
    if priced:
        words = advice.config.words
        unit = f"{things(words)} over the {words.every}s to come" if advice.ahead else words.reward_unit
        yield f"What rules cost, in {unit}: " + ", ".join(f"{rule} {price:.2g}" for rule, price in priced.items()) + "."


def say_config(name: str, config: Mapping[str, Any], what: str, as_json: bool) -> None:
    """A config in a few sentences."""
    from restive.desk.desk import name_store

    if as_json:
        print_json({"program": name, **config})
        return
    worth = (
        "reported with each outcome"
        if config["rewards"] is None
        else ", ".join(f"{each:g}" for each in config["rewards"])
    )
    print(f"Program {name} {what}.")
    print(f"States: {', '.join(config['states'])}; worth: {worth}.")
    print(f"Budget: {config['budget']:,} a round. Policy: {config['policy']}.")
    if config["control"]:
        print(f"About {config['control']:.0%} of the people are never treated, so that the effect can be seen.")
    for rule in _config_rules(config):
        print(rule)
    if "store" in config:
        print(f"Store: {config['store']}")
        print(f"Next: restive desk decide {name} --states STATES.csv --out list.csv{name_store(config['store'])}")


def _config_rules(config: Mapping[str, Any]) -> Iterator[str]:
    """What else was settled, as far as it is anything."""
    if config["shadow"]:
        yield f"Shadow, which decides nothing: {config['shadow']}."
    if config["cool_down"] > 1:
        yield f"Nobody twice in {config['cool_down']:,} rounds."
    if config["shares"]:
        shares = ", ".join(f"{group} {share:.0%}" for group, share in config["shares"].items())
        yield f"Least share of the list: {shares}."
    if config["horizon"]:
        yield f"Rounds in all: {config['horizon']:,}."
    if config["pseudonyms"]:
        from restive.desk.pseudonyms import keys_folder

        yield f"Names are kept as codes; their key: {keys_folder() / config['pseudonyms']}.key, keep a copy of it."


def print_json(record: object) -> None:
    """Data on one line."""
    print(json.dumps(record, allow_nan=False), flush=True)


def note(notes: list[str]) -> None:
    """Remarks, on standard error."""
    for remark in notes:
        print(f"restive: {remark}", file=sys.stderr)
