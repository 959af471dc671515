"""The command: one short function for each verb, over the library.

Results go to standard output; progress, notices and errors to standard error.
"""

import inspect
import json
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from restive.errors import InputError
from restive.policies import POLICIES
from restive.problem import Problem
from restive.problems import PROBLEMS, make_problems
from restive.version import __version__

app = typer.Typer(
    name="restive",
    help="Who gets the one intervention there is budget for: online restless bandits over one finite horizon.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
ProblemOption = Annotated[
    str, typer.Option(help="The id of a family (see `restive problems`) or a .json or .npz file.")
]
INSTANCES = 10
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


def main() -> None:
    """Run the command; bad input is one sentence and exit code 2, never a traceback."""
    try:
        app(standalone_mode=True)
    except InputError as error:
        _fail(str(error), 2)
    except OSError as error:
        _fail(f"{error.filename or 'input or output'}: {error.strerror or error}.", 2)
    except MemoryError:
        _fail("not enough memory for a problem of this size; fewer agents, instances, runs or steps would fit.", 2)
    except Exception as error:
        if os.environ.get("RESTIVE_DEBUG"):
            raise
        place = traceback.extract_tb(error.__traceback__)[-1]
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _fail(f"{place.filename}, line {place.lineno}: {what}. RESTIVE_DEBUG=1 shows how it came to that.", 1)


def _fail(sentence: str, code: int) -> None:
    print(f"restive: {sentence}", file=sys.stderr)
    raise SystemExit(code)


def _say_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """The options of every verb."""


@app.command()
def simulate(
    problem: ProblemOption = "two-state-v1",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy, with settings as egt:eta=0.5,gamma=0, or your own .py file; several times, or `all`."
        ),
    ] = None,
    instances: Annotated[
        int | None, typer.Option(help="How many problems of a family.", show_default=str(INSTANCES))
    ] = None,
    runs: Annotated[int, typer.Option(help="How many runs of each problem.")] = 13,
    agents: Annotated[
        int | None, typer.Option(help="N, the agents of each problem.", show_default="the family's")
    ] = None,
    states: Annotated[
        int | None, typer.Option(help="S, where the family leaves it open.", show_default="the family's")
    ] = None,
    budget: Annotated[
        int | None, typer.Option(help="B, the actions in each step.", show_default="the family's")
    ] = None,
    horizon: Annotated[int, typer.Option(help="T, the steps of each run.")] = 1000,
    seed: Annotated[int, typer.Option(help="Same seed, same answer.")] = 0,
    noise: Annotated[float, typer.Option(help="Variance of the Gaussian added to each observed reward.")] = 0.0,
    threads: Annotated[
        int | None, typer.Option(help="Work on this many chunks at once.", show_default="processors")
    ] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the running means into a .png, .svg or .pdf file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write an HTML page with figure and table.")] = None,
    bound: Annotated[bool, typer.Option(help="Find the fluid bound too, above which no policy can be.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Let policies play the same problems with the same luck, and compare them."""
    from restive.comparison import CEILING, FLOOR, compare
    from restive.figure import check_ending, draw
    from restive.page import write_page

    for place in filter(None, (figure, page)):
        place.parent.mkdir(parents=True, exist_ok=True)
    if figure:
        check_ending(figure)
    problems = _make(problem, instances, agents, states, budget, seed)
    chosen = list(POLICIES) if policy == ["all"] else policy or ["egt", "wiql"]
    with _bars({*chosen, FLOOR, CEILING}, len(problems) * runs * horizon) as step:
        comparison = compare(problems, chosen, horizon, runs, seed, noise, threads, step, bound)
    if figure:
        draw(comparison, figure)
    if page:
        write_page(comparison, page, shlex.join(["restive", *sys.argv[1:]]))
    if as_json:
        print(json.dumps(comparison.as_json()))
    else:
        _print_comparison(comparison)
    for made in filter(None, (figure, page)):
        print(f"restive: wrote {made}", file=sys.stderr)


@app.command()
def solve(
    problem: Annotated[str, typer.Option(help="A .json or .npz file, or the id of a family.")],
    horizon: Annotated[int, typer.Option(help="T, for the fluid bound.")] = 1000,
    discount: Annotated[float, typer.Option(help="Of the Whittle index; 1 for the average reward.")] = 0.9,
    agents: Annotated[int | None, typer.Option(help="N, for a family.", show_default="the family's")] = None,
    states: Annotated[int | None, typer.Option(help="S, for a family.", show_default="the family's")] = None,
    budget: Annotated[int | None, typer.Option(help="B, instead of the problem's own.", show_default="its own")] = None,
    seed: Annotated[int, typer.Option(help="Of the family's instance.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Say what is known once the model is: benefits, Whittle indices, thresholds, the fluid bound."""
    from restive.solution import solve as solve_problem

    solution = solve_problem(_make(problem, None, agents, states, budget, seed)[0], horizon, discount)
    if as_json:
        print(json.dumps(solution.as_json()))
    else:
        _print_solution(solution)


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the problem families there are."""
    _print_list(PROBLEMS, "problem", as_json)


@app.command()
def policies(as_json: JsonOption = False) -> None:
    """List the policies there are."""
    _print_list(POLICIES, "policy", as_json)


def _make(
    problem: str, instances: int | None, agents: int | None, states: int | None, budget: int | None, seed: int
) -> list[Problem]:
    """The instances of a family, or the one problem in a file."""
    asked = {"instances": instances, "agents": agents, "states": states, "budget": budget}
    given = {name: value for name, value in asked.items() if value is not None}
    if Path(problem).suffix in (".json", ".npz"):
        if foreign := set(given) - {"budget"}:
            raise InputError(f"{problem}: a file is one problem with its own agents; --{min(foreign)} is for families.")
        own = Problem.load(problem)
        return [own if budget is None else own.with_budget(budget)]
    known = inspect.signature(PROBLEMS[problem]).parameters if problem in PROBLEMS else {}
    usual = {name: value for name, value in {"instances": INSTANCES, "seed": seed}.items() if name in known}
    return make_problems(problem, **(usual | given))


@contextmanager
def _bars(labels: set[str], total: int) -> Iterator[Callable[[str, int], None]]:
    """A progress bar for each policy, on standard error, shown as its turn comes."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        tasks = {label: progress.add_task(label, total=total, visible=False) for label in sorted(labels)}

        def step(label: str, steps: int) -> None:
            progress.update(tasks[label], advance=steps, visible=True)

        try:
            yield step
        except KeyboardInterrupt:  # here, because typer would end it without a word
            _fail("interrupted.", 130)


def _print_comparison(comparison: Any) -> None:
    from restive.comparison import CEILING, FLOOR
    from restive.figure import caption

    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("policy", no_wrap=True)
    for name in ("reward per step", "last tenth", "gap closed", "M agent-steps/s"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in comparison.rows:
        table.add_row(row.label, _with_error(row.whole), _with_error(row.end), row.share(), f"{row.speed / 1e6:.1f}")
    if comparison.bound is not None:
        table.add_row("fluid bound", f"{comparison.bound:.3f}        ", style="dim")
    console = _console()
    console.print(caption(comparison.spec), highlight=False)
    console.print(table)
    units = "instances" if comparison.spec["instances"] > 1 else "runs"
    console.print(f"± standard error over {units}; gap closed: from {FLOOR} to {CEILING}, 95% interval.", style="dim")


def _with_error(band: Any) -> str:
    return f"{band.mean:.3f} ± {band.error:.3f}"


def _console() -> Console:
    """Wide enough for every table where there is no terminal to ask."""
    return Console() if sys.stdout.isatty() else Console(width=120)


def _print_solution(solution: Any) -> None:
    table = Table(box=box.SIMPLE_HEAD)
    for name in ("agent", "state", "phi(wait)", "phi(act)", "benefit I", "Whittle index", "indexable"):
        table.add_column(name, justify="right")
    for line in solution.lines():
        table.add_row(*(f"{value:.6f}" if isinstance(value, float) else str(value) for value in line))
    console = _console()
    console.print(table)
    for sentence in solution.sentences():
        console.print(sentence, highlight=False)


def _print_list(registry: Any, what: str, as_json: bool) -> None:
    """One line each: the first sentence of its documentation."""
    lines = {name: (inspect.getdoc(entry) or "").splitlines()[0] for name, entry in registry.items()}
    if as_json:
        print(json.dumps([{what: name, "about": about} for name, about in lines.items()]))
        return
    table = Table(box=box.SIMPLE_HEAD, show_header=False)
    for name, about in lines.items():
        table.add_row(f"[bold]{name}[/bold]", about)
    _console().print(table)
