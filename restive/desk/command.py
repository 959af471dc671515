"""`restive desk`: one short function for each verb, over `restive.desk`.

Tables that people should read go to standard output, notes to standard error; `--json` prints data instead.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.desk.saying import bar, note, print_json, say_advice, say_plan
from restive.errors import InputError

if TYPE_CHECKING:
    from restive.desk.desk import Desk

desk = typer.Typer(
    name="desk",
    help="Decisions for a real program: states in, a list of people out, outcomes back, and whether it works.",
    no_args_is_help=True,
)
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
Table = "a .csv, .xlsx or .parquet file"


@desk.command()
def init(
    name: Name,
    template: Annotated[str | None, typer.Option(help="Start from a domain, see `restive desk templates`.")] = None,
    states: Annotated[str | None, typer.Option(help="Names of the states, the worst first: low,high.")] = None,
    rewards: Annotated[
        str | None, typer.Option(help="What each state is worth: 0,1; or `reported`, if each outcome has its own.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Actions in a round, if not said otherwise.")] = None,
    policy: Annotated[str | None, typer.Option(help="Who decides.", show_default="lagrange")] = None,
    shadow: Annotated[
        str | None, typer.Option(help="A second policy that sees everything and decides nothing.")
    ] = None,
    control: Annotated[
        float | None, typer.Option(help="The share of people never treated, to compare with.", show_default="0.1")
    ] = None,
    cool_down: Annotated[int | None, typer.Option(help="Nobody twice in so many rounds.")] = None,
    keep: Annotated[
        int | None, typer.Option(help="For how many rounds a missing state is kept.", show_default="2")
    ] = None,
    share: Annotated[
        list[str] | None, typer.Option(help="A group's least share of the list: north=0.3; several times.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="How many rounds there will be, if that is known.")] = None,
    reward_range: Annotated[
        float | None, typer.Option(help="How far apart reported rewards can be.", show_default="1")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of the luck and the control group.", show_default="by name")] = None,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Keep codes instead of ids in the store.")] = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Make a program."""
    from restive.desk.desk import make_plan, refuse_taken
    from restive.desk.plan import check_name, parse_rewards, parse_shares

    given: dict[str, object] = {
        "states": None if states is None else [part.strip() for part in states.split(",")],
        "budget": budget, "policy": policy, "shadow": shadow, "control": control,
        "cool_down": cool_down, "keep": keep, "shares": parse_shares(share) if share else None, "horizon": horizon,
        "reward_range": reward_range, "seed": seed,
    }  # fmt: skip
    settings = {key: value for key, value in given.items() if value is not None}
    if rewards is not None:
        settings["rewards"] = parse_rewards(rewards)
    plan = make_plan(check_name(name), template, **settings)
    if dry_run:
        refuse_taken(name, store)
        say_plan(name, plan.as_json(), "would be made", as_json)
        return
    with _open(store, make=True) as opened:
        made = opened.create(name, plan, pseudonyms=pseudonyms)
        say_plan(name, made.plan.as_json() | {"store": opened.store.address}, "is ready", as_json)


@desk.command()
def decide(
    name: Name,
    states: Annotated[
        Path | None, typer.Option(help=f"Who is in which state: {Table} with agent, state and perhaps group.")
    ] = None,
    budget: Annotated[int | None, typer.Option(help="Actions in this round.", show_default="the program's")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the list to a .csv, .xlsx or .parquet file.")] = None,
    must: Annotated[Path | None, typer.Option(help="People on the list in any case: a table with agent.")] = None,
    never: Annotated[Path | None, typer.Option(help="People not on the list in this round.")] = None,
    round_: Annotated[int | None, typer.Option("--round", help="Its number, to be safe from deciding twice.")] = None,
    again: Annotated[bool, typer.Option("--again", help="A new round, though nothing changed since the last.")] = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Decide a round: who gets the action, why, and who is next."""
    with _open(store) as opened:
        program = opened.program(name)
        _check_out(out)
        advice = program.decide(states, budget, must, never, round=round_, again=again, dry_run=dry_run)
        say_advice(advice, out, as_json, dry_run)


@desk.command()
def learn(
    name: Name,
    outcomes: Annotated[
        Path,
        typer.Option(help=f"What happened: {Table} with agent, done, next_state, reward, round.", show_default=False),
    ],
    round_: Annotated[int | None, typer.Option("--round", help="Which round.", show_default="the last")] = None,
    correct: Annotated[bool, typer.Option("--correct", help="Let rows replace what is on record.")] = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Take in what happened: whether it was done, the next state, the reward; also late or as a correction."""
    with _open(store) as opened:
        taken = opened.program(name).learn(outcomes, round=round_, correct=correct, dry_run=dry_run)
    if as_json:
        print_json(taken._asdict() | {"recorded": not dry_run})
        return
    verb = "would be recorded" if dry_run else "recorded"
    listed, before = ", ".join(map(str, taken.rounds)), f"{taken.repeated:,} known already"
    print(f"Round {listed}: {taken.new:,} outcomes {verb}, {taken.corrected:,} corrected, {before}.")
    print(f"Still waiting for {taken.waiting:,}." if taken.waiting else "Nothing is missing.")
    note(taken.notes)


@desk.command()
def correct(
    name: Name,
    states: Annotated[Path, typer.Option(help="The states as they should have been.", show_default=False)],
    round_: Annotated[int, typer.Option("--round", help="Which round.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRun = False,
) -> None:
    """Mend states of an earlier round; outcomes are mended by `learn --correct`."""
    with _open(store) as opened:
        mended = opened.program(name).correct_states(states, round_, dry_run)
    print(f"Round {round_}: {mended:,} states {'would be ' * dry_run}mended.")


@desk.command()
def status(
    name: Name,
    figure: Annotated[Path | None, typer.Option(help="Draw reward and lift into a .png, .svg or .pdf file.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a program at a glance: what to do next, who is in, whether it works, what was learnt."""
    from restive.desk.overview import look_at
    from restive.desk.picture import draw_status
    from restive.desk.screen import print_status
    from restive.figure import check_ending

    if figure:
        check_ending(figure)
    with _open(store) as opened:
        seen = look_at(opened.program(name))
    if as_json:
        print_json(seen.as_json())
    else:
        print_status(seen)
    if figure:
        figure.parent.mkdir(parents=True, exist_ok=True)
        draw_status(seen, figure)
        note([f"wrote {figure}"])


@desk.command(name="round")
def round_(
    name: Name,
    number: Annotated[int | None, typer.Argument(help="Which round.", show_default="the last")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the list to a .csv, .xlsx or .parquet file.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="With pseudonyms: a table with agent, to show names instead of codes.")
    ] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the list of a round again, as it was decided."""
    with _open(store) as opened:
        program = opened.program(name)
        _check_out(out)
        if names:
            program.recognise(names)
        say_advice(program.advice(len(program.lines) if number is None else number), out, as_json, False)


@desk.command()
def history(
    name: Name,
    agent: Annotated[str, typer.Argument(help="Whose.", show_default=False)],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what happened to one person, round by round."""
    from restive.desk.history import find_history
    from restive.desk.screen import print_history

    with _open(store) as opened:
        program = opened.program(name)
        rows = find_history(program, agent)
        if as_json:
            print_json(rows)
        else:
            print_history(rows, program.plan.words, agent)


@desk.command()
def leave(
    name: Name,
    agents: Annotated[Path, typer.Option(help="Who is gone: a table with agent.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRun = False,
) -> None:
    """Take people out who are gone; one who appears in a table of states again is back."""
    with _open(store) as opened:
        gone = opened.program(name).leave(agents, dry_run)
    print(f"{gone:,} {'would be ' * dry_run}taken out of {name}.")


@desk.command()
def erase(
    name: Name,
    agent: Annotated[
        list[str] | None,
        typer.Argument(help="Whose names to forget; nobody: clear what earlier ones left."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
) -> None:
    """Forget names for good; what the desk learnt from these people stays, without a name."""
    with _open(store) as opened:
        program, whom = opened.program(name), agent or []
        if whom and not (yes or dry_run):
            program.erase(whom, dry_run=True)
            typer.confirm(f"Erase {', '.join(whom)} from {name}? This cannot be undone", abort=True)
        erased = program.erase(whom, dry_run)
    print(
        f"{erased:,} {'would be ' * dry_run}erased from {name}; lists that were written to files are yours to delete."
    )


@desk.command()
def change(
    name: Name,
    budget: Annotated[int | None, typer.Option(help="Actions in a round.")] = None,
    cool_down: Annotated[int | None, typer.Option(help="Nobody twice in so many rounds.")] = None,
    keep: Annotated[int | None, typer.Option(help="For how many rounds a missing state is kept.")] = None,
    share: Annotated[list[str] | None, typer.Option(help="All groups' least shares anew: north=0.3.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change what may be changed while a program runs."""
    from restive.desk.plan import parse_shares

    shares = parse_shares(share) if share else None
    given = {"budget": budget, "cool_down": cool_down, "keep": keep, "shares": shares}
    settings = {key: value for key, value in given.items() if value is not None}
    if not settings:
        raise InputError("nothing to change; see `restive desk change --help`.")
    with _open(store) as opened:
        plan = opened.program(name).change(**settings)
    say_plan(name, plan.as_json(), "is changed from the next round on", as_json)


@desk.command(name="list")
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the programs, and say where they are kept."""
    from restive.desk.desk import default_store
    from restive.desk.overview import summarise
    from restive.desk.screen import print_programs

    address, rows = str(default_store()), []
    if store is not None or default_store().exists():
        with _open(store) as opened:
            address, rows = opened.store.address, [summarise(program) for program in opened.programs()]
    if as_json:
        print_json({"store": address, "programs": rows})
    else:
        print(f"Store: {address}")
        print_programs(rows)


@desk.command()
def templates(as_json: JsonOption = False) -> None:
    """List the application domains that a program can start from."""
    from dataclasses import asdict

    from restive.desk.screen import print_templates
    from restive.desk.templates import TEMPLATES

    rows = [asdict(template) for template in TEMPLATES.values()]
    if as_json:
        print_json(rows)
    else:
        print_templates(rows)


@desk.command()
def replay(name: Name, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Rebuild a program from its events alone, and prove that every decision comes out the same."""
    from restive.desk.replay import replay as replay_program

    with _open(store) as opened, bar("replaying") as progress:
        found = replay_program(opened.program(name), progress)
    if as_json:
        print_json(found.as_json())
    else:
        print(f"{found.events:,} events, an unbroken chain that ends in {found.end[:16]}.")
        print(f"{found.same:,} of {found.rounds:,} decisions come out the same, bit for bit.")
        same = found.belief == found.believed
        print(f"What the desk believes {'is' if same else 'is NOT'} what its events add up to ({found.belief}).")
        for sentence in found.differing:
            print(sentence)
    if not found.proven:
        raise typer.Exit(1)


@desk.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="A folder for agents, rounds and records as Parquet.", show_default=False)],
    store: StoreOption = None,
) -> None:
    """Write all of a program as Parquet files, for analysis elsewhere."""
    from restive.desk.export import export as export_program

    with _open(store) as opened, bar("writing") as progress:
        files = export_program(opened.program(name), out, progress)
    print(f"{len(files):,} files in {out}: {files[0].name}, {files[1].name} and records/.")


@desk.command()
def demo(
    template: Annotated[str, typer.Option(help="The domain, see `restive desk templates`.")] = "pharmacy",
    agents: Annotated[int, typer.Option(help="How many simulated people.")] = 200,
    rounds: Annotated[int, typer.Option(help="How many rounds.")] = 30,
    seed: Annotated[int, typer.Option(help="Same seed, same people and luck.")] = 7,
    policy: Annotated[str, typer.Option(help="Who decides.")] = "lagrange",
    figure: Annotated[Path | None, typer.Option(help="Draw reward and lift into a file.")] = None,
    name: Annotated[str, typer.Option(help="The program's name.")] = "demo",
    store: Annotated[
        str | None, typer.Option(help="Keep the program in this store.", show_default="a file that is deleted again")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Play a program with simulated people, and show what one would see."""
    from tempfile import TemporaryDirectory

    from restive.desk.demo import forget_store, play_demo
    from restive.desk.overview import look_at
    from restive.desk.picture import draw_status
    from restive.desk.screen import print_status

    with TemporaryDirectory() as folder, _open(store or str(Path(folder) / "demo.db"), make=True) as opened:
        with bar("playing") as progress:
            program = play_demo(opened, name, template, agents, rounds, seed, progress, policy=policy)
        seen = look_at(program) if store else forget_store(look_at(program))
        if as_json:
            print_json(seen.as_json())
        else:
            say_advice(program.advice(rounds), None, False, False, most=8)
            print_status(seen)
        if figure:
            draw_status(seen, figure)
            note([f"wrote {figure}"])


def _open(store: str | None, make: bool = False) -> "Desk":
    from restive.desk.desk import open_desk

    return open_desk(store, make)


def _check_out(out: Path | None) -> None:
    """Refuse a file that could not be written before anything is recorded."""
    if out is not None:
        from restive.desk.sheets import check_place

        check_place(out)
