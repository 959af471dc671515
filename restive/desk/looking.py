"""`restive desk`: the verbs that only look at what is there, one short function each, and `demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.desk.options import JsonOption, Name, Overwrite, StoreOption, check_out, open_store
from restive.desk.saying import bar, note, print_json, say_advice

if TYPE_CHECKING:
    from restive.desk.status import Status

verbs = typer.Typer()


def _status_as_json(seen: "Status") -> dict[str, object]:
    """The status with the address of its store, and with commands for what to do next."""
    return {**seen.as_json(), "store": seen.store, "steps": [str(step) for step in seen.steps]}


@verbs.command()
def status(
    name: Name,
    figure: Annotated[Path | None, typer.Option(help="Draw reward and lift into a .png, .svg or .pdf file.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a program at a glance: what to do next, who is in, whether it works, what was learned."""
    from restive.desk.overview import look_at
    from restive.desk.plots import draw_status
    from restive.desk.screen import print_status
    from restive.plotting import check_ending

    if figure:
        check_ending(figure)
    with open_store(store) as opened:
        seen = look_at(opened.program(name))
    if as_json:
        print_json(_status_as_json(seen))
    else:
        print_status(seen)
    if figure:
        figure.parent.mkdir(parents=True, exist_ok=True)
        draw_status(seen, figure)
        note([f"wrote {figure}"])


@verbs.command(name="round")
def round_(
    name: Name,
    number: Annotated[int | None, typer.Argument(help="Which round.", show_default="the last")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the list to a .csv, .xlsx or .parquet file.")] = None,
    names: Annotated[
        Path | None, typer.Option(help="With pseudonyms: a table with agent, to show names instead of codes.")
    ] = None,
    overwrite: Overwrite = False,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the list of a round again, as it was decided."""
    with open_store(store) as opened:
        program = opened.program(name)
        check_out(out, overwrite)
        if names:
            program.recognise(names)
        say_advice(program.advice(len(program.rounds) if number is None else number), out, as_json, False)


@verbs.command()
def history(
    name: Name,
    agent: Annotated[str, typer.Argument(help="Whose.", show_default=False)],
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what happened to one person, round by round."""
    from restive.desk.history import find_history
    from restive.desk.screen import print_history

    with open_store(store) as opened:
        program = opened.program(name)
        rows = find_history(program, agent)
        if as_json:
            print_json(rows)
        else:
            print_history(rows, program.config.words, agent)


@verbs.command(name="list")
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the programs, and say where they are kept."""
    from restive.desk.desk import default_store
    from restive.desk.overview import summarise
    from restive.desk.screen import print_programs

    address, rows = str(default_store()), []
    if store is not None or default_store().exists():
        with open_store(store) as opened:
            address, rows = opened.store.address, [summarise(program) for program in opened.programs()]
    if as_json:
        print_json({"store": address, "programs": rows})
    else:
        print(f"Store: {address}")
        print_programs(rows)


@verbs.command()
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


@verbs.command()
def replay(name: Name, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Rebuild a program from its events alone, and prove that every decision comes out the same."""
    from restive.desk.replay import replay as replay_program

    with open_store(store) as opened, bar("replaying") as progress:
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


@verbs.command()
def export(
    name: Name,
    out: Annotated[Path, typer.Option(help="A folder for agents, rounds and records as Parquet.", show_default=False)],
    store: StoreOption = None,
) -> None:
    """Write all of a program as Parquet files, for analysis elsewhere."""
    from restive.desk.export import export as export_program

    with open_store(store) as opened, bar("writing") as progress:
        files = export_program(opened.program(name), out, progress)
    print(f"{len(files):,} files in {out}: {files[0].name}, {files[1].name} and records/.")


@verbs.command()
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
    from restive.desk.plots import draw_status
    from restive.desk.screen import print_status

    with TemporaryDirectory() as folder, open_store(store or str(Path(folder) / "demo.db"), make=True) as opened:
        with bar("playing") as progress:
            program = play_demo(opened, name, template, agents, rounds, seed, progress, policy=policy)
        seen = look_at(program) if store else forget_store(look_at(program))
        if as_json:
            print_json(_status_as_json(seen))
        else:
            say_advice(program.advice(rounds), None, False, False, most=8)
            print_status(seen)
        if figure:
            draw_status(seen, figure)
            note([f"wrote {figure}"])
