"""`restive desk`: one short function for each verb.

Results go to standard output, notes to standard error; `--json` prints data instead. Libraries are imported in the
functions, so that `restive --help` starts fast.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.desk.cli_options import (
    ColumnOption,
    CoolDownOption,
    CostUnitOption,
    CutPointsOption,
    FirstDueOption,
    PhoneCountryOption,
    RhythmOption,
    SpendOption,
    StatesAreOutcomes,
    StoreOption,
    TimezoneOption,
    ValueOption,
)
from restive.errors import InputError

if TYPE_CHECKING:
    from restive.api.status import Status
    from restive.desk.desk import Desk
    from restive.desk.program import Program

desk = typer.Typer(
    name="desk",
    help="Decisions for a real program: states in, a list of people out, outcomes back, and whether it works.",
    no_args_is_help=True,
)

TABLE = "a .csv, .xlsx or .parquet file"
ProgramName = Annotated[str, typer.Argument(help="The program's name.", show_default=False)]
TitleOption = Annotated[str | None, typer.Option(help="What people call the program, shown above its name.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Show what would happen, record nothing.")]
OutOption = Annotated[Path | None, typer.Option(help=f"Write the call list to {TABLE}.")]
FullOption = Annotated[bool, typer.Option("--full", help="With --out: write all columns, for analysis.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")]


def open_store(store: str | None, make: bool = False) -> "Desk":
    """The desk on the named store; the audit log names the command as the actor."""
    from restive.desk.desk import open_desk

    opened = open_desk(store, make)
    opened.store.by = "command"
    return opened


@contextmanager
def open_program(name: str, store: str | None, out: Path | None = None, overwrite: bool = False) -> "Iterator[Program]":
    """A program of the store; a file `out` that cannot be written is refused before anything is recorded."""
    with open_store(store) as opened:
        program = opened.program(name)
        if out is not None:
            from restive.desk.table_files import check_output_file

            check_output_file(out, overwrite)
        yield program


def _name_round(program: "Program", number: int) -> str:
    """A round at the start of a sentence."""
    from restive.desk.explanations import capitalize

    return capitalize(program.projection.totals(number).mention)


def _given(**settings: Any) -> dict[str, Any]:
    """The settings that are given."""
    return {name: value for name, value in settings.items() if value is not None}


@desk.command()
def init(
    name: ProgramName,
    template: Annotated[str | None, typer.Option(help="Start from a template, see `restive desk templates`.")] = None,
    states: Annotated[str | None, typer.Option(help="Names of the states, the worst first: low,high.")] = None,
    rewards: Annotated[
        str | None, typer.Option(help="The reward of each state: 0,1; or `reported`, if each outcome has its own.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Actions per round, or an amount, unless a round has its own.")
    ] = None,
    policy: Annotated[str | None, typer.Option(help="The policy that decides.", show_default="lagrange")] = None,
    shadow: Annotated[str | None, typer.Option(help="A second policy, only compared with the first.")] = None,
    control: Annotated[
        float | None, typer.Option(help="The share of people in the control group.", show_default="0.1")
    ] = None,
    control_until: Annotated[
        int | None, typer.Option(help="The last round with a control group, which then joins the program.")
    ] = None,
    spend: SpendOption = None,
    cost_unit: CostUnitOption = None,
    cool_down: CoolDownOption = None,
    keep: Annotated[
        int | None,
        typer.Option(help="Rounds for which a state missing from a table is carried over.", show_default="0"),
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="A group's minimum share of the list: north=0.3; repeatable.")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="A column known of people: age, or region=north,south; repeatable.")
    ] = None,
    display: Annotated[
        list[str] | None, typer.Option(help="A column for lists only, such as name or phone; repeatable.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="The number of rounds in all, if it is known.")] = None,
    reward_range: Annotated[float | None, typer.Option(help="Largest minus smallest reward.", show_default="1")] = None,
    seed: Annotated[
        int | None, typer.Option(help="The seed of all random draws.", show_default="from the name")
    ] = None,
    word: Annotated[
        list[str] | None, typer.Option(help="Your own words: person=patient, people=patients; repeatable.")
    ] = None,
    states_are_outcomes: StatesAreOutcomes = None,
    title: TitleOption = None,
    timezone: TimezoneOption = None,
    rhythm: RhythmOption = None,
    first_due: FirstDueOption = None,
    column: ColumnOption = None,
    value: ValueOption = None,
    cut_points: CutPointsOption = None,
    phone_country: PhoneCountryOption = None,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Store codes instead of ids.")] = False,
    history: Annotated[Path | None, typer.Option(help="Start from a model that `restive fit --out` wrote.")] = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Create a program."""
    from restive.desk.config import check_name, parse_rewards, parse_shares, parse_words
    from restive.desk.config_advice import describe_control, find_doubts
    from restive.desk.desk import make_config, refuse_taken
    from restive.desk.features import parse_features
    from restive.desk.output import print_config
    from restive.desk.schedule import find_local_timezone
    from restive.desk.table_mapping import parse_mapping
    from restive.desk.warm_start import read_model

    settings = _given(
        states=None if states is None else [part.strip() for part in states.split(",")],
        budget=budget, spend=spend, cost_unit=cost_unit, policy=policy, shadow=shadow, control=control,
        cool_down=cool_down, keep=keep, control_until=control_until,
        shares=parse_shares(share) if share else None, horizon=horizon, reward_range=reward_range, seed=seed,
        words=parse_words(word) if word else None, features=parse_features(feature) if feature else None,
        display=display, states_are_outcomes=states_are_outcomes, title=title, rhythm=rhythm, first_due=first_due,
        timezone=timezone or find_local_timezone(),
        **parse_mapping(column, value, cut_points, phone_country),
    )  # fmt: skip
    if rewards is not None:
        settings["rewards"] = parse_rewards(rewards)
    model = None if history is None else read_model(history)
    config = make_config(check_name(name), template, model, **settings)
    start = [f"It starts from what a history of {len(model.agents):,} people showed."] if model else []
    setup = [*filter(None, [describe_control(config)]), *start], find_doubts(config)
    if dry_run:
        refuse_taken(name, store)
        return print_config(name, config.as_json(), "would be created", as_json, *setup)
    with open_store(store, make=True) as opened:
        made = opened.create(name, config, pseudonyms=pseudonyms, history=model)
        print_config(name, {**made.config.as_json(), "store": opened.store.address}, "is ready", as_json, *setup)


@desk.command()
def decide(
    name: ProgramName,
    states: Annotated[
        Path | None, typer.Option(help=f"The states: {TABLE} with agent, state and optionally group, cost.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="Actions in this round, or an amount.", show_default="the program's")
    ] = None,
    out: OutOption = None,
    full: FullOption = False,
    must: Annotated[Path | None, typer.Option(help="People who must be on the list: a table with agent.")] = None,
    never: Annotated[Path | None, typer.Option(help="People who must not be on it in this round.")] = None,
    round_: Annotated[
        int | None, typer.Option("--round", help="The round's number, so that it is decided once.")
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Decide another round although nothing has changed.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Ids that look like known ones belong to new people.")] = False,
    states_are_outcomes: StatesAreOutcomes = None,
    column: ColumnOption = None,
    value: ValueOption = None,
    cut_points: CutPointsOption = None,
    phone_country: PhoneCountryOption = None,
    overwrite: OverwriteOption = False,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Decide a round: who gets the action and why, then a reserve list."""
    from restive.desk.output import print_recommendation
    from restive.desk.table_mapping import parse_mapping

    reading = parse_mapping(column, value, cut_points, phone_country)
    with open_program(name, store, out, overwrite) as program:
        asked = states, budget, must, never, round_, again, new, states_are_outcomes, dry_run
        decided = program.decide(*asked, **reading)
        print_recommendation(decided, out, as_json, dry_run, full=full)


@desk.command()
def learn(
    name: ProgramName,
    outcomes: Annotated[
        Path,
        typer.Option(help=f"The outcomes: {TABLE} with agent, done, next_state, reward, round.", show_default=False),
    ],
    round_: Annotated[
        int | None, typer.Option("--round", help="Which round.", show_default="the oldest that waits for these people")
    ] = None,
    correct: Annotated[bool, typer.Option("--correct", help="Replace recorded outcomes by these.")] = False,
    column: ColumnOption = None,
    value: ValueOption = None,
    cut_points: CutPointsOption = None,
    phone_country: PhoneCountryOption = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Record outcomes: whether the action was done, the next state, the reward; also late or as a correction."""
    from restive.desk.output import print_outcome_counts
    from restive.desk.table_mapping import parse_mapping

    reading = parse_mapping(column, value, cut_points, phone_country)
    with open_program(name, store) as program:
        counts = program.learn(outcomes, round=round_, correct=correct, dry_run=dry_run, **reading)
    print_outcome_counts(counts, dry_run, as_json)


@desk.command()
def correct(
    name: ProgramName,
    states: Annotated[Path, typer.Option(help="The correct states.", show_default=False)],
    round_: Annotated[int, typer.Option("--round", help="Which round.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Correct states of an earlier round; `learn --correct` corrects outcomes."""
    with open_program(name, store) as program:
        corrected = program.correct_states(states, round_, dry_run)
        print(f"{_name_round(program, round_)}: {corrected:,} states {'would be ' * dry_run}corrected.")


@desk.command()
def withdraw(
    name: ProgramName,
    agent: Annotated[list[str], typer.Argument(help="Ids whose reports no longer count.", show_default=False)],
    round_: Annotated[int, typer.Option("--round", help="Which round.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Withdraw what was reported of people in a round, as if it had not been."""
    with open_program(name, store) as program:
        withdrawn = program.withdraw(agent, round_, dry_run)
        print(f"{_name_round(program, round_)}: {withdrawn:,} reports {'would be ' * dry_run}withdrawn.")


@desk.command()
def leave(
    name: ProgramName,
    agents: Annotated[Path, typer.Option(help="Who has left: a table with agent.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove people who have left; they return when a table of states names them again."""
    with open_program(name, store) as program:
        removed = program.leave(agents, dry_run)
    print(f"{removed:,} {'would be ' * dry_run}removed from {name}.")


@desk.command()
def erase(
    name: ProgramName,
    agent: Annotated[
        list[str] | None,
        typer.Argument(help="Ids to erase; without any, traces of earlier erasures are removed."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Erase ids for good; what was learned from these people stays, without their names."""
    ids = agent or []
    with open_program(name, store) as program:
        if ids and not (yes or dry_run):
            program.erase(ids, dry_run=True)
            typer.confirm(f"Erase {', '.join(ids)} from {name}? This cannot be undone", abort=True)
        erased = program.erase(ids, dry_run)
    print(f"{erased:,} {'would be ' * dry_run}erased from {name}. Files that contain lists must be deleted by hand.")


@desk.command()
def cancel(
    name: ProgramName,
    number: Annotated[int, typer.Argument(help="Which round.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Cancel a round that was decided by mistake: its list is void and no outcomes are expected."""
    with open_program(name, store) as program:
        listed, round_ = program.cancel(number, dry_run), _name_round(program, number)
    print(f"{round_} of {name} {'would be' if dry_run else 'is'} cancelled; its list had {listed:,} people.")


@desk.command()
def undo(
    name: ProgramName, store: StoreOption = None, dry_run: DryRunOption = False, as_json: JsonOption = False
) -> None:
    """Take back the last list, report or correction, as if it had not been recorded."""
    from restive.console import print_json

    with open_program(name, store) as program:
        found = program.undo(dry_run=dry_run)
    if as_json:
        print_json({**found._asdict(), "recorded": not dry_run})
    else:
        print(f"{'Would undo' if dry_run else 'Undone'}: {found.message}.")


@desk.command()
def change(
    name: ProgramName,
    budget: Annotated[int | None, typer.Option(help="Actions per round, or an amount.")] = None,
    spend: SpendOption = None,
    cost_unit: CostUnitOption = None,
    cool_down: CoolDownOption = None,
    keep: Annotated[
        int | None, typer.Option(help="Rounds for which a state missing from a table is carried over.")
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="All minimum shares, replacing the old ones: north=0.3.")
    ] = None,
    display: Annotated[
        list[str] | None, typer.Option(help="All columns for lists only, replacing the old ones; '' for none.")
    ] = None,
    states_are_outcomes: StatesAreOutcomes = None,
    title: TitleOption = None,
    timezone: TimezoneOption = None,
    rhythm: RhythmOption = None,
    first_due: FirstDueOption = None,
    column: ColumnOption = None,
    value: ValueOption = None,
    cut_points: CutPointsOption = None,
    phone_country: PhoneCountryOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the settings that can change in a running program."""
    from restive.desk.config import parse_shares
    from restive.desk.output import print_config
    from restive.desk.table_mapping import parse_mapping

    settings = _given(
        budget=budget, spend=spend, cost_unit=cost_unit, cool_down=cool_down, keep=keep,
        shares=parse_shares(share) if share else None,
        display=None if display is None else [name for name in display if name],
        states_are_outcomes=states_are_outcomes, title=title, timezone=timezone, rhythm=rhythm, first_due=first_due,
        **parse_mapping(column, value, cut_points, phone_country),
    )  # fmt: skip
    if not settings:
        raise InputError("Nothing to change; see `restive desk change --help`.")
    with open_program(name, store) as program:
        config = program.change(**settings)
    print_config(name, config.as_json(), "is changed from the next round on", as_json)


@desk.command()
def status(
    name: ProgramName,
    figure: Annotated[Path | None, typer.Option(help="Plot rewards and lift to a .png, .svg or .pdf file.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a program: what to do next, who is in it, whether it works, what was learned."""
    from restive.desk.status import get_status

    if figure:
        from restive.plotting import check_ending

        check_ending(figure)
    with open_program(name, store) as program:
        _show_status(get_status(program), program.store.address, figure, as_json)


def _show_status(found: "Status", address: str, figure: Path | None, as_json: bool) -> None:
    """Print a status and plot it if a file is given."""
    from restive.console import print_json, print_notices
    from restive.desk.output import print_status, status_as_json

    if as_json:
        print_json(status_as_json(found, address))
    else:
        print_status(found, address)
    if figure:
        from restive.desk.plots import draw_status

        figure.parent.mkdir(parents=True, exist_ok=True)
        draw_status(found, figure)
        print_notices(f"wrote {figure}")


@desk.command(name="round")
def round_(
    name: ProgramName,
    number: Annotated[int | None, typer.Argument(help="Which round.", show_default="the last")] = None,
    out: OutOption = None,
    full: FullOption = False,
    names: Annotated[
        Path | None, typer.Option(help="With pseudonyms: a table with agent, to show names instead of codes.")
    ] = None,
    overwrite: OverwriteOption = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the list of a round as it was decided."""
    from restive.desk.output import print_recommendation

    with open_program(name, store, out, overwrite) as program:
        if names:
            program.recognise(names)
        last = len(program.rounds)
        found = program.recommendation(last if number is None else number)
        print_recommendation(found, out, as_json, False, full=full)


@desk.command()
def history(
    name: ProgramName,
    agent: Annotated[str, typer.Argument(help="The person's id.", show_default=False)],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rounds of one person."""
    from restive.desk.output import print_history

    with open_program(name, store) as program:
        print_history(program.history(agent), program.config, agent, as_json)


@desk.command(name="list")
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the programs and the address of their store."""
    from restive.desk.desk import default_store
    from restive.desk.output import print_programs
    from restive.desk.status import summarize

    address, rows = str(default_store()), []
    if store is not None or default_store().exists():
        with open_store(store) as opened:
            address, rows = opened.store.address, [summarize(program) for program in opened.programs()]
    print_programs(rows, address, as_json)


@desk.command()
def demo(
    template: Annotated[str, typer.Option(help="The template, see `restive desk templates`.")] = "pharmacy",
    agents: Annotated[int, typer.Option(help="The number of simulated people.")] = 200,
    rounds: Annotated[int, typer.Option(help="The number of rounds.")] = 30,
    seed: Annotated[int, typer.Option(help="The seed of the people and of random draws.")] = 7,
    policy: Annotated[str, typer.Option(help="The policy that decides.")] = "lagrange",
    figure: Annotated[Path | None, typer.Option(help="Plot rewards and lift to a file.")] = None,
    name: Annotated[str, typer.Option(help="The program's name.")] = "demo",
    store: Annotated[
        str | None, typer.Option(help="Keep the program in this store.", show_default="a temporary file")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run a program with simulated people and show its last list and its status."""
    from tempfile import TemporaryDirectory

    from restive.console import print_notices, progress_bar
    from restive.desk.demo import run_demo
    from restive.desk.output import print_recommendation
    from restive.desk.status import get_status

    with TemporaryDirectory() as folder, open_store(store or str(Path(folder) / "demo.db"), make=True) as opened:
        with progress_bar("simulating") as progress:
            program = run_demo(opened, name, template, agents, rounds, seed, progress, policy=policy)
        found, address = get_status(program), opened.store.address
        if not store:
            found, address = {**found, "steps": []}, "a temporary file"
        if not as_json:
            print_recommendation(program.recommendation(rounds), None, False, False, max_people=8)
        _show_status(found, address, figure, as_json)
        if not store:
            print_notices("the program was in a temporary file; add --store FILE.db to keep it")
