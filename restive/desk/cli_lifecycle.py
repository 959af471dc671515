"""`restive desk templates`, `calendar`, `replay`, `export`, `archive`, `backup` and the like: about a program or store as a whole."""

from pathlib import Path
from typing import Annotated

import typer

from restive.desk.cli import DryRunOption, JsonOption, OverwriteOption, ProgramName, open_program, open_store
from restive.desk.cli_options import StoreOption
from restive.errors import Hint, InputError


def replay(name: ProgramName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Rebuild a program from its events and check that every decision comes out the same."""
    from restive.console import progress_bar
    from restive.desk.output import print_replay
    from restive.desk.replay import replay as replay_program

    with open_program(name, store) as program, progress_bar("replaying") as progress:
        found = replay_program(program, progress)
    print_replay(found, as_json)
    if not found.proven:
        raise typer.Exit(1)


def export(
    name: ProgramName,
    out: Annotated[Path, typer.Option(help="A folder for agents, rounds and records as Parquet.", show_default=False)],
    display: Annotated[bool, typer.Option("--display", help="Also write the display columns, such as names.")] = False,
    store: StoreOption = None,
) -> None:
    """Write all of a program to Parquet files, for analysis elsewhere."""
    from restive.console import progress_bar
    from restive.desk.export import export as export_program

    with open_program(name, store) as program, progress_bar("writing") as progress:
        files = export_program(program, out, progress, display)
    print(f"{len(files):,} files in {out}: {files[0].name}, {files[1].name} and records/.")


def templates(as_json: JsonOption = False) -> None:
    """List the templates that a program can start from."""
    from restive.desk.config import TEMPLATES
    from restive.desk.output import print_templates

    print_templates([*TEMPLATES.values()], as_json)


def calendar(
    name: ProgramName,
    out: Annotated[Path, typer.Option(help="A .ics file for a calendar app.", show_default=False)],
    overwrite: OverwriteOption = False,
    store: StoreOption = None,
) -> None:
    """Write the due dates of lists as a calendar file with reminders."""
    from restive.desk.status import write_calendar

    with open_program(name, store) as program:
        if out.exists() and not overwrite:
            raise InputError(f"{out} already exists.", code="file_exists", hint=Hint.OVERWRITE)
        out.write_bytes(write_calendar(program).encode())
    print(f"wrote {out}; open it with your calendar app.")


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


def backup(
    target: Annotated[str, typer.Argument(help="A new FILE.db, or postgresql://user@host/database that is empty.")],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the whole store while it is in use, and verify the copy; with another kind of store, move it."""
    from restive.console import print_json, progress_bar
    from restive.desk.backup import back_up
    from restive.desk.store import Store

    with open_store(store) as opened, Store.open(target) as copy, progress_bar("copying") as progress:
        events = back_up(opened.store, copy, progress)
    if as_json:
        print_json({"store": copy.address, "programs": events})
    else:
        copied = f"{len(events):,} program{'' if len(events) == 1 else 's'} with {sum(events.values()):,} events"
        print(f"Copied {copied} to {copy.address}; no event is missing.")


def verify(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Check the log of every program of a store: no event is missing or changed."""
    from restive.console import print_json
    from restive.desk.database import StoreError

    with open_store(store) as opened:
        found: list[dict[str, str | int | None]] = []
        for row in opened.store.programs():
            try:
                found.append({"program": row.name, "events": opened.store.verify(row.id), "error": None})
            except StoreError as error:
                found.append({"program": row.name, "events": None, "error": error.message})
    if as_json:
        print_json({"store": opened.store.address, "programs": found})
    else:
        for each in found:
            complete = "" if each["error"] else f"{each['events']:,} events, complete"
            print(f"{each['program']}: {each['error'] or complete}")
    if any(each["error"] for each in found):
        raise typer.Exit(1)


def migrate(
    store: StoreOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; the exit code is 1 if there is something to do.")
    ] = False,
    contract: Annotated[
        bool, typer.Option("--contract", help="Remove what only older versions need, once none of them runs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring the tables of a store to this version, while servers of the version before go on."""
    from restive.console import print_json
    from restive.desk import migrations
    from restive.desk.desk import default_store

    found = migrations.migrate(store or str(default_store()), contract, dry_run=check)
    steps = found.contractions if contract else found.expansions
    if as_json:
        listed = [{"number": each.number, "about": each.about} for each in steps]
        print_json({"version": found.newest, "oldest": found.oldest, "steps": listed, "done": not check})
    else:
        for each in steps:
            print(f"{'to do' if check else 'done'}: {each.number}, {each.about}")
        rest = "; when no older version runs, --contract removes what only it needs" if found.contractions else ""
        after = f"; now they have version {migrations.VERSION}" if steps and not (check or contract) else ""
        had = "had" if after else "have"
        print(
            f"The tables {had} version {found.newest}{after}{'' if steps else ', nothing to do'}{'' if contract else rest}."
        )
    if check and steps:
        raise typer.Exit(1)


VERBS = (templates, calendar, replay, export, archive, restore, delete, backup, verify, migrate)
