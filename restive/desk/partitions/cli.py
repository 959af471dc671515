"""`restive desk partition`: a program whose people are in partitions, in a folder or an object store, and its rounds."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.desk.cli import DryRunOption, JsonOption
from restive.desk.cli_options import ColumnOption, CoolDownOption, SpendOption, ValueOption
from restive.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from restive.desk.partitions.phases import Progress

partition = typer.Typer(
    name="partition",
    help="Programs with more people than fit on one machine, in partitions.",
    no_args_is_help=True,
)
FolderArgument = Annotated[
    str, typer.Argument(help="The program's folder, or a URL such as s3://bucket/program.", show_default=False)
]
EngineOption = Annotated[str, typer.Option(help="What runs the tasks: `threads`, `dask` or `dask://host:port`.")]
WorkersOption = Annotated[int, typer.Option(help="How many tasks at once, if it is not dask://host:port.")]


@contextmanager
def _open(engine: str, workers: int, label: str) -> "Iterator[tuple[Executor, Progress]]":
    """An engine and a progress bar."""
    from restive.console import progress_bar
    from restive.paper.engines import open_engine

    count = None if engine.startswith("dask://") else workers
    with open_engine(engine, count) as opened, progress_bar(label) as bar:
        yield opened, lambda phase, done, tasks: bar(done, tasks)


def _read_pairs(given: list[str] | None, option: str) -> dict[str, str]:
    """The pairs NAME=VALUE of an option that can be repeated."""
    pairs = {}
    for text in given or []:
        name, found, value = text.partition("=")
        if not found:
            raise InputError(f"--{option} {text}: write NAME=VALUE.", location=option)
        pairs[name] = value
    return pairs


def _read_shares(given: list[str] | None) -> dict[str, float]:
    try:
        return {name: float(share) for name, share in _read_pairs(given, "share").items()}
    except ValueError:
        raise InputError(
            f"--share {' '.join(given or [])}: a share is a number from 0 to 1.", location="share"
        ) from None


def _read_ids(file: Path | None) -> list[str]:
    """The ids of a must or never list."""
    from restive.desk.table_files import read_table_file
    from restive.desk.table_schema import read_agents

    return [] if file is None else read_agents(read_table_file(file), file.name).to_list()


@partition.command()
def init(
    folder: FolderArgument,
    people: Annotated[
        str,
        typer.Option(help="A Parquet file, or a folder of them: agent and, if you like, group.", show_default=False),
    ],
    states: Annotated[str, typer.Option(help="Names of the states, the worst first: low,high.", show_default=False)],
    rewards: Annotated[str, typer.Option(help="The reward of each state: 0,1.", show_default=False)],
    budget: Annotated[int, typer.Option(help="Actions per round, unless a round has its own.")] = 10,
    control: Annotated[float, typer.Option(help="The share of people in the control group.")] = 0.1,
    control_until: Annotated[
        int | None, typer.Option(help="The last round with a control group, which then joins the program.")
    ] = None,
    spend: SpendOption = None,
    cool_down: CoolDownOption = None,
    keep: Annotated[int, typer.Option(help="Rounds for which a missing state is carried over.")] = 0,
    share: Annotated[
        list[str] | None, typer.Option(help="A group's minimum share of the list: north=0.3; repeatable.")
    ] = None,
    policy: Annotated[str, typer.Option(help="`lagrange`, and its settings.")] = "lagrange",
    seed: Annotated[int, typer.Option(help="The seed of all random draws.")] = 0,
    column: ColumnOption = None,
    value: ValueOption = None,
    size: Annotated[int, typer.Option(help="People in a partition, a multiple of 1,024.")] = 1 << 20,
    engine: EngineOption = "threads",
    workers: WorkersOption = 1,
    as_json: JsonOption = False,
) -> None:
    """Number the people of a program and divide them into partitions."""
    from restive.console import print_json
    from restive.desk.config import Config
    from restive.desk.partitions.program import create

    try:
        worth = [float(text) for text in rewards.split(",")]
    except ValueError:
        raise InputError(f"--rewards {rewards}: write numbers, such as 0,1.", location="rewards") from None
    settings: dict[str, Any] = {
        "states": [name.strip() for name in states.split(",")], "rewards": worth, "budget": budget, "control": control,
        "control_until": control_until, "keep": keep, "shares": _read_shares(share), "policy": policy, "seed": seed,
        "columns": _read_pairs(column, "column"), "values": _read_pairs(value, "value"),
    }  # fmt: skip
    settings |= {name: given for name, given in (("spend", spend), ("cool_down", cool_down)) if given is not None}
    with _open(engine, workers, "writing people") as (opened, progress):
        program = create(folder, people, Config.from_json(settings), opened, size, progress)
    parts = program.partitions
    if as_json:
        print_json({"folder": folder, "people": program.agents, "partitions": len(parts), "size": size})
    else:
        print(f"{folder}: {program.agents:,} people in {len(parts):,} partitions of up to {size:,}.")


@partition.command()
def decide(
    folder: FolderArgument,
    states: Annotated[
        str,
        typer.Option(
            help="A Parquet file, or a folder with part-00000.parquet and so on, one for each partition, and newcomers.parquet.",
            show_default=False,
        ),
    ],
    budget: Annotated[int | None, typer.Option(help="Actions in this round.", show_default="the program's")] = None,
    must: Annotated[Path | None, typer.Option(help="A table of people who are on the list in any case.")] = None,
    never: Annotated[Path | None, typer.Option(help="A table of people who are not on it.")] = None,
    left: Annotated[
        Path | None, typer.Option(help="A table of people who left, whose states are not carried over.")
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Accept new ids that differ from known ones only by leading zeros or by case.")
    ] = False,
    round: Annotated[int | None, typer.Option(help="The number that the round must have.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Decide another round from the same states.")] = False,
    engine: EngineOption = "threads",
    workers: WorkersOption = 1,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Decide the next round: states in, a list for each partition out."""
    from restive.console import print_json, print_notices
    from restive.desk.partitions.program import PartitionedProgram

    program = PartitionedProgram(folder)
    with _open(engine, workers, "deciding") as (opened, progress):
        lists = _read_ids(must), _read_ids(never)
        decided = program.decide(
            states, opened, budget, *lists, round, again, dry_run, progress, left=_read_ids(left), new=new
        )
    if as_json:
        print_json(decided._asdict())
        return
    print_notices(", ".join(f"{phase} {seconds:.1f} s" for phase, seconds in decided.seconds.items()))
    would = "would be " if dry_run else ""
    print(
        f"Round {decided.round}: {decided.listed:,} of {decided.present:,} people {would}on the list; "
        f"learned from {decided.outcomes:,} outcomes of the round before."
    )
    if decided.joined:
        print(f"{decided.joined:,} new people {would.replace('be ', '')}joined: {decided.people:,} in all.")
    if not dry_run:
        print(f"The lists: {folder}/{decided.lists[0]}{' and so on' if len(decided.lists) > 1 else ''}.")


@partition.command()
def status(folder: FolderArgument, as_json: JsonOption = False) -> None:
    """Show the rounds: how many were on the list, and the mean reward of the control group and of the others."""
    from restive.console import print_json, print_table
    from restive.desk.partitions.program import PartitionedProgram

    program = PartitionedProgram(folder)
    rounds = program.describe_rounds()
    parts = [
        {"people": part.people, "first": part.first, "size": part.size, "list": part.files["list"].path if program.rounds else None}
        for part in program.partitions
    ]  # fmt: skip
    if as_json:
        print_json({"people": program.agents, "partitions": parts, "rounds": rounds})
        return
    print(f"{folder}: {program.agents:,} people in {len(parts):,} partitions, {program.rounds} rounds.")
    if rounds:
        print_table(rounds)


@partition.command()
def verify(
    folder: FolderArgument, engine: EngineOption = "threads", workers: WorkersOption = 1, as_json: JsonOption = False
) -> None:
    """Check the log, and the content of every file that it names."""
    from restive.console import print_json
    from restive.desk.partitions.program import PartitionedProgram

    program = PartitionedProgram(folder)
    with _open(engine, workers, "checking files") as (opened, progress):
        faults = program.verify(opened, progress)
    if as_json:
        print_json({"faults": faults})
    else:
        print("\n".join(faults) or f"{folder}: {program.rounds} rounds, every file is as it was recorded.")
    if faults:
        raise typer.Exit(1)
