"""`restive desk results`, `unreached`, `table` and `report`: what a program's people went through."""

from pathlib import Path
from typing import Annotated

import typer

from restive.desk.cli import JsonOption, OverwriteOption, ProgramName, open_program
from restive.desk.cli_options import StoreOption


def results(name: ProgramName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show who is in which state, the groups, and how many people were reached."""
    from restive.console import print_json
    from restive.desk.output_results import print_results
    from restive.desk.results import get_results

    with open_program(name, store) as program:
        found = get_results(program)
    if as_json:
        print_json(found)
    else:
        print_results(found)


def unreached(name: ProgramName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Show the people for whom the action was never done, for how long, and why."""
    from restive.console import print_json
    from restive.desk.output_results import print_unreached
    from restive.desk.results import describe_unreached, find_unreached

    with open_program(name, store) as program:
        rows, words = describe_unreached(program, find_unreached(program)), program.config.words
    if as_json:
        print_json(rows)
    else:
        print_unreached(rows, words)


def table(
    name: ProgramName,
    what: Annotated[
        str,
        typer.Argument(
            help="rounds, people, states, rewards, groups, effects, unreached or audit.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Option(help="A .csv, .xlsx or .parquet file.", show_default=False)],
    overwrite: OverwriteOption = False,
    store: StoreOption = None,
) -> None:
    """Write a table of a program to a file."""
    from restive.desk.table_files import write_table_file
    from restive.desk.tables import make_table
    from restive.formats import show_count

    with open_program(name, store, out, overwrite) as program:
        frame = make_table(program, what)
        write_table_file(frame, out)
    print(f"{show_count(frame.height, 'row')} in {out}.")


def report(
    name: ProgramName,
    out: Annotated[Path | None, typer.Option(help="Write one page to an .html file.", show_default=False)] = None,
    overwrite: OverwriteOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a program on one page, for a funder: no ids, no names; print it from a browser as a PDF."""
    from restive.console import print_json
    from restive.desk.output_results import print_report
    from restive.desk.report import make_report, render_page
    from restive.files import write_atomic

    if out is not None:
        _check_page(out, overwrite)
    with open_program(name, store) as program:
        found = make_report(program)
    if out is not None:
        write_atomic(out, render_page(found).encode())
    if as_json:
        print_json(found)
    elif out is not None:
        print(f"One page in {out}.")
    else:
        print_report(found)


def _check_page(out: Path, overwrite: bool) -> None:
    from restive.errors import Hint, InputError

    if out.suffix.lower() != ".html":
        raise InputError(f"{out.name}: a report is an .html file.", location="out")
    if out.exists() and not overwrite:
        raise InputError(f"{out} already exists.", code="file_exists", hint=Hint.OVERWRITE)


VERBS = (results, unreached, table, report)
