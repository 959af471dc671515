"""`restive desk archive`, `restore` and `delete`: the end of a program."""

from typing import Annotated

import typer

from restive.desk.cli import DryRunOption, ProgramName, open_program, open_store
from restive.desk.cli_options import StoreOption


def archive(name: ProgramName, store: StoreOption = None, dry_run: DryRunOption = False) -> None:
    """Make a program read-only, but for erasing ids, and hide it from the first page of the server."""
    with open_program(name, store) as program:
        program.archive(dry_run)
    print(f"{name} {'would be' if dry_run else 'is'} archived.")


def restore(name: ProgramName, store: StoreOption = None, dry_run: DryRunOption = False) -> None:
    """Let an archived program be used again."""
    with open_program(name, store) as program:
        program.restore(dry_run)
    print(f"{name} {'would be' if dry_run else 'is'} restored.")


def delete(
    name: ProgramName,
    confirm: Annotated[
        str, typer.Option(help="The name again.", prompt="Type the name of the program to delete it for good")
    ],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Delete a program for good: its log, ids and audit log; the store keeps the fact."""
    with open_store(store) as opened:
        events = opened.delete(name, confirm, dry_run)
    print(f"{name} {'would be' if dry_run else 'is'} deleted, with {events:,} events.")


VERBS = (archive, restore, delete)
