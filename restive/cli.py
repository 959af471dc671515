"""The command: one short function for each verb, over the library.

Results go to standard output; progress, notices and errors to standard error.
"""

import inspect
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.console import (
    advise,
    print_json,
    print_notices,
    print_report_table,
    print_table,
    print_text,
    progress_bars,
)
from restive.desk.cli import desk
from restive.desk.cli_tokens import token
from restive.errors import InputError, check_whole
from restive.kernels.rng import MAX_SEED
from restive.policies import POLICIES
from restive.problem import Problem
from restive.problems import PROBLEMS, make_problems
from restive.server.cli import serve
from restive.version import __version__

if TYPE_CHECKING:
    from restive.files import Columns
    from restive.paper.agenda import Agenda

app = typer.Typer(
    name="restive",
    help="Who gets the one intervention there is budget for: online restless bandits over one finite horizon.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
desk.add_typer(token)
app.add_typer(desk)
app.command()(serve)
ProblemOption = Annotated[
    str, typer.Option(help="The id of a family (see `restive problems`) or a .json or .npz file.")
]
INSTANCES = 10
# The extra of this package that installs a module.
EXTRAS = {
    "fastexcel": "desk", "sqlalchemy": "desk", "xlsxwriter": "desk", "fastapi": "server", "uvicorn": "server",
    "matplotlib": "plots", "jinja2": "plots", "distributed": "dask", "psycopg": "postgresql",
}  # fmt: skip
EngineOption = Annotated[str, typer.Option(help="Who does the work: `threads`, `dask` or `dask://host:port`.")]
WorkersOption = Annotated[
    int | None, typer.Option(help="How many works at once; not for dask://.", show_default="processors")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def main() -> None:
    """Run the command; bad input is one sentence and exit code 2, never a traceback."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        app(standalone_mode=True)
    except InputError as error:
        _fail(advise(error), 2)
    except ModuleNotFoundError as error:
        extra = EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        _fail(f'this needs more packages: pip install "restive[{extra}]".', 2)
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


def _interrupt(*_: object) -> None:
    """End at once: threads in a long kernel could not be waited for. Files are whole or not there in any case."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    print(f"{show_cursor}restive: interrupted.", file=sys.stderr, flush=True)
    os._exit(130)


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
            help="A policy, with settings as egt:eta=0.5,gamma=0, or your own .py file, or `all`; several times."
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
    from restive.report.tables import tabulate_comparison

    _check_targets(figure, page)
    if figure or page:  # a missing package is reported before anything is simulated
        from restive.page import write_page
        from restive.plotting import draw
    problems = _make(problem, instances, agents, states, budget, seed)
    chosen = [name for given in policy or ["egt", "wiql"] for name in (POLICIES if given == "all" else [given])]
    totals = dict.fromkeys([FLOOR, CEILING, *chosen], len(problems) * runs * horizon)
    with progress_bars(totals) as step:
        comparison = compare(problems, chosen, horizon, runs, seed, noise, threads, step, bound)
    if as_json:
        print_json(comparison.as_json())
    else:
        table = tabulate_comparison(comparison)
        print_report_table(table, drop=("M agent-steps/s", "last tenth", "gap closed"))
    if figure:
        draw(comparison, figure)
    if page:
        write_page(comparison, page, shlex.join(["restive", *sys.argv[1:]]))
    print_notices(*(f"wrote {path}" for path in (figure, page) if path))


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
    from restive.report.tables import tabulate_solution
    from restive.solution import solve as solve_problem

    solution = solve_problem(_make(problem, None, agents, states, budget, seed)[0], horizon, discount)
    if as_json:
        print_json(solution.as_json())
    else:
        print_report_table(tabulate_solution(solution))
        print_text(*solution.sentences())


@app.command()
def problems(as_json: JsonOption = False) -> None:
    """List the problem families there are."""
    _print_registry(PROBLEMS, "problem", as_json)


@app.command()
def policies(as_json: JsonOption = False) -> None:
    """List the policies there are."""
    _print_registry(POLICIES, "policy", as_json)


@app.command()
def reproduce(
    experiment: Annotated[
        list[str] | None, typer.Argument(help="Experiments by name (see --list), or `all`.", show_default="all")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A tenth of the size: about a minute, wider intervals.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for results, figures and report.", show_default="reproduction[-quick]"),
    ] = None,
    engine: EngineOption = "threads",
    workers: WorkersOption = None,
    seed: Annotated[int, typer.Option(help="Of instances and luck.")] = 0,
    markdown: Annotated[Path | None, typer.Option(help="Write the verdicts into a Markdown page too.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and do nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Do the experiments of the paper again, and say of each of its claims whether it holds."""
    from restive.paper.agenda import make_writable
    from restive.paper.catalogue import find_experiments
    from restive.paper.engines import check_engine
    from restive.paper.experiment import Size
    from restive.paper.reproduction import examine_all, prepare, write_all
    from restive.paper.screen import print_claims
    from restive.paper.summary import tally_all

    chosen, size = find_experiments(experiment or []), Size(quick, check_whole("seed", seed, 0, MAX_SEED))
    if listed:
        _print_names([{"experiment": each.name, "title": each.title, "place": each.place} for each in chosen], as_json)
        return
    check_engine(engine, workers)
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    if markdown:
        make_writable(markdown)
    made = _carry_out(prepare(chosen, size, folder), folder, engine, workers)
    reproduction = examine_all(chosen, size, folder, made)
    write_all(reproduction, folder, shlex.join(["restive", *sys.argv[1:]]), markdown)
    if as_json:
        print_json(reproduction.as_json())
    else:
        claims = [claim for _, claim in reproduction.claims()]
        print_claims(claims, tally_all(claims))
    print_notices(f"wrote {folder / 'report.html'}, claims.json, figures and results")


@app.command()
def compare(
    quick: Annotated[
        bool, typer.Option("--quick", help="About a twelfth of the size: about a minute, wider intervals.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="The folder for results, figures and page.", show_default="comparison[-quick]"),
    ] = None,
    field: Annotated[
        list[str] | None, typer.Option(help="A field by name (see --list); several times.", show_default="all")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy to play beside the standard ones, or your own .py file; several times."),
    ] = None,
    engine: EngineOption = "threads",
    workers: WorkersOption = None,
    seed: Annotated[int, typer.Option(help="Of instances and luck.")] = 0,
    cost: Annotated[bool, typer.Option(help="Measure at the end what a step of each policy costs.")] = True,
    markdown: Annotated[Path | None, typer.Option(help="Write words, tables and verdicts as Markdown too.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the fields and do nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Let all online policies play a dozen fields, and say who is best where, by how much, and at what cost."""
    from restive.benchmark.contest import Contest, examine, prepare, write_contest
    from restive.benchmark.cost import measure_costs
    from restive.benchmark.fields import check_policies, find_fields, undertakings
    from restive.paper.agenda import make_writable
    from restive.paper.engines import check_engine
    from restive.paper.experiment import Size
    from restive.paper.screen import print_contest

    size = Size(quick, check_whole("seed", seed, 0, MAX_SEED))
    extra = check_policies(policy or [], engine)
    known = undertakings(extra)
    asked = find_fields(field or [], known)
    if listed:
        _print_names([{"field": each.name, "about": each.title} for each in asked], as_json)
        return
    check_engine(engine, workers)
    folder = out or Path("comparison-quick" if quick else "comparison")
    if markdown:
        make_writable(markdown)
    made = _carry_out(prepare(asked, known, size, folder), folder, engine, workers)
    scores = examine(asked, known, extra, size, folder, made)
    contest = Contest(scores, measure_costs(scores.everyone(), size, print_notices) if cost else None)
    write_contest(contest, folder, shlex.join(["restive", *sys.argv[1:]]), markdown)
    if as_json:
        print_json(contest.as_json())
    else:
        print_contest(contest)
    print_notices(f"wrote {folder / 'comparison.html'}, comparison.json, figures and results")


def _print_registry(registry: Mapping[str, object], noun: str, as_json: bool) -> None:
    """Print the name and the first line of the documentation of each entry."""
    _print_names(
        [{noun: name, "about": (inspect.getdoc(entry) or "").splitlines()[0]} for name, entry in registry.items()],
        as_json,
    )


def _print_names(names: Sequence[Mapping[str, str]], as_json: bool) -> None:
    """Print a list of names with what they are."""
    if as_json:
        print_json(names)
    else:
        print_table(names, list(names[0])[1:], header=False)


def _carry_out(agenda: "Agenda", folder: Path, engine: str, workers: int | None) -> "dict[str, Columns]":
    """Do what is missing, with bars; an engine is opened only if there is anything to do."""
    from restive.paper.agenda import carry_out_agenda
    from restive.paper.engines import open_engine
    from restive.paper.screen import experiment_bars

    if not any(agenda.missing.values()):
        return agenda.found
    with experiment_bars(agenda) as progress, open_engine(engine, workers) as executor:
        return carry_out_agenda(agenda, folder, executor, progress)


def _check_targets(figure: Path | None, page: Path | None) -> None:
    """Refuse files that could not be written, before any work is done for them; make their folders."""
    from restive.plotting import check_ending

    if figure:
        check_ending(figure)
    if page and page.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{page}: a page ends in .html.")
    for place in filter(None, (figure, page)):
        if place.is_dir():
            raise InputError(f"{place}: there is a folder of that name.")
        place.parent.mkdir(parents=True, exist_ok=True)


def _make(
    problem: str, instances: int | None, agents: int | None, states: int | None, budget: int | None, seed: int
) -> list[Problem]:
    """The instances of a family, or the one problem in a file."""
    asked = {"instances": instances, "agents": agents, "states": states, "budget": budget}
    given = {name: value for name, value in asked.items() if value is not None}
    if Path(problem).suffix in (".json", ".npz"):
        own = Problem.load(problem)
        if foreign := set(given) - {"budget"}:
            raise InputError(f"{problem}: a file is one problem with its own agents; --{min(foreign)} is for families.")
        return [own if budget is None else own.with_budget(budget)]
    known = inspect.signature(PROBLEMS[problem]).parameters if problem in PROBLEMS else {}
    usual = {name: value for name, value in {"instances": INSTANCES, "seed": seed}.items() if name in known}
    return make_problems(problem, **(usual | given))
