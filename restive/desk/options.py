"""What all verbs of `restive desk` share: the options, and the way to a store."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from restive.desk.desk import Desk

Name = Annotated[str, typer.Argument(help="The program's name.", show_default=False)]
StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="RESTIVE_STORE",
        help="A FILE.db or postgresql://user@host/database.",
        show_default="a file in your data folder, see `restive desk list`",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, record nothing.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Write the list over a file that is there already.")]
Table = "a .csv, .xlsx or .parquet file"


def open_store(store: str | None, make: bool = False) -> "Desk":
    """The desk on the store that is named."""
    from restive.desk.desk import open_desk

    opened = open_desk(store, make)
    opened.store.by = "command"
    return opened


def check_out(out: Path | None, overwrite: bool) -> None:
    """Refuse a file that could not be written before anything is recorded."""
    if out is not None:
        from restive.desk.table_files import check_output_file

        check_output_file(out, overwrite)
