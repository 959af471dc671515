"""`restive desk`: the verbs that record something, one short function each; those that only look are in `looking`.

Tables that people should read go to standard output, notes to standard error; `--json` prints data instead.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from restive.desk import keys, looking
from restive.desk.options import DryRun, JsonOption, Name, Overwrite, StoreOption, Table, check_out, open_store
from restive.desk.saying import note, print_json, say_advice, say_config
from restive.errors import InputError

desk = typer.Typer(
    name="desk",
    help="Decisions for a real program: states in, a list of people out, outcomes back, and whether it works.",
    no_args_is_help=True,
)


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
    word: Annotated[
        list[str] | None, typer.Option(help="How you speak of it: person=patient, people=patients; several times.")
    ] = None,
    pseudonyms: Annotated[bool, typer.Option("--pseudonyms", help="Keep codes instead of ids in the store.")] = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Make a program."""
    from restive.desk.config import check_name, parse_rewards, parse_shares, parse_words
    from restive.desk.desk import make_config, refuse_taken

    given: dict[str, object] = {
        "states": None if states is None else [part.strip() for part in states.split(",")],
        "budget": budget, "policy": policy, "shadow": shadow, "control": control,
        "cool_down": cool_down, "keep": keep, "shares": parse_shares(share) if share else None, "horizon": horizon,
        "reward_range": reward_range, "seed": seed,
    }  # fmt: skip
    settings = {key: value for key, value in given.items() if value is not None}
    if rewards is not None:
        settings["rewards"] = parse_rewards(rewards)
    if word:
        settings["words"] = parse_words(word)
    config = make_config(check_name(name), template, **settings)
    if dry_run:
        refuse_taken(name, store)
        say_config(name, config.as_json(), "would be made", as_json)
        return
    with open_store(store, make=True) as opened:
        made = opened.create(name, config, pseudonyms=pseudonyms)
        say_config(name, made.config.as_json() | {"store": opened.store.address}, "is ready", as_json)


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
    new: Annotated[bool, typer.Option("--new", help="Ids that look like known ones are other people.")] = False,
    overwrite: Overwrite = False,
    store: StoreOption = None,
    dry_run: DryRun = False,
    as_json: JsonOption = False,
) -> None:
    """Decide a round: who gets the action, why, and who is next."""
    with open_store(store) as opened:
        program = opened.program(name)
        check_out(out, overwrite)
        advice = program.decide(states, budget, must, never, round=round_, again=again, new=new, dry_run=dry_run)
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
    with open_store(store) as opened:
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
    """Mend states of an earlier round; outcomes are corrected by `learn --correct`."""
    with open_store(store) as opened:
        corrected = opened.program(name).correct_states(states, round_, dry_run)
    print(f"Round {round_}: {corrected:,} states {'would be ' * dry_run}corrected.")


@desk.command()
def leave(
    name: Name,
    agents: Annotated[Path, typer.Option(help="Who is gone: a table with agent.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRun = False,
) -> None:
    """Take people out who are gone; one who appears in a table of states again is back."""
    with open_store(store) as opened:
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
    """Forget names for good; what the desk learned from these people stays, without a name."""
    with open_store(store) as opened:
        program, whom = opened.program(name), agent or []
        if whom and not (yes or dry_run):
            program.erase(whom, dry_run=True)
            typer.confirm(f"Erase {', '.join(whom)} from {name}? This cannot be undone", abort=True)
        erased = program.erase(whom, dry_run)
    print(
        f"{erased:,} {'would be ' * dry_run}erased from {name}; lists that were written to files are yours to delete."
    )


@desk.command()
def cancel(
    name: Name,
    number: Annotated[int, typer.Argument(help="Which round.", show_default=False)],
    store: StoreOption = None,
    dry_run: DryRun = False,
) -> None:
    """Take a list back that was decided by mistake: nobody acts by it, and nothing is waited for."""
    with open_store(store) as opened:
        listed = opened.program(name).cancel(number, dry_run)
    print(f"Round {number} of {name} {'would be' if dry_run else 'is'} cancelled; {listed:,} were on its list.")


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
    from restive.desk.config import parse_shares

    shares = parse_shares(share) if share else None
    given: dict[str, Any] = {"budget": budget, "cool_down": cool_down, "keep": keep, "shares": shares}
    settings = {key: value for key, value in given.items() if value is not None}
    if not settings:
        raise InputError("nothing to change; see `restive desk change --help`.")
    with open_store(store) as opened:
        config = opened.program(name).change(**settings)
    say_config(name, config.as_json(), "is changed from the next round on", as_json)


desk.add_typer(looking.verbs)
desk.add_typer(keys.token)
