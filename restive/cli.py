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
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

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
from restive.desk.cli_lifecycle import VERBS as LIFECYCLE
from restive.desk.cli_results import VERBS as RESULTS
from restive.desk.cli_tokens import token
from restive.desk.cli_webhooks import webhook
from restive.desk.partitions.cli import partition
from restive.errors import InputError, check_whole
from restive.kernels.rng import MAX_SEED
from restive.logs.cli import GROUPS, VERBS, check_targets
from restive.new import new
from restive.policies import POLICIES
from restive.problem import Problem
from restive.problems import PROBLEMS, make_problems
from restive.server.run import ENVIRONMENT, demo, serve
from restive.version import __version__

if TYPE_CHECKING:
    from restive.benchmark.benchmark import Benchmark
    from restive.paper.claims import Claim
    from restive.paper.jobs import Size

app = typer.Typer(
    name="restive",
    help="Decide who gets a limited intervention: online restless bandits over one finite horizon.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(desk)
desk.add_typer(token)
desk.add_typer(webhook)
desk.add_typer(partition)
for verb in (*LIFECYCLE, *RESULTS):
    desk.command()(verb)
app.command(context_settings=ENVIRONMENT)(serve)
app.command()(demo)
for verb in VERBS:
    app.command()(verb)
for group in (*GROUPS, new):
    app.add_typer(group)
ProblemOption = Annotated[
    str,
    typer.Option(
        help="The id of a family (see `restive problems`), a .json or .npz file, or a .parquet model of `restive fit`."
    ),
]
INSTANCES, QUICK_INSTANCES, RUNS = 10, 4, 4
FILES = (".json", ".npz")  # of one problem
# The extra of this package that installs a module.
EXTRAS = {
    "fastexcel": "desk", "sqlalchemy": "desk", "xlsxwriter": "desk", "fastapi": "server", "uvicorn": "server",
    "matplotlib": "plots", "jinja2": "plots", "distributed": "dask", "fsspec": "dask", "psycopg": "postgresql",
}  # fmt: skip
EngineOption = Annotated[
    str, typer.Option(help="What runs the jobs: `processes`, `threads`, `dask` or `dask://host:port`.")
]
WorkersOption = Annotated[
    int | None, typer.Option(help="How many jobs at once; not for dask://.", show_default="processors")
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
        _fail(f"{place.filename}, line {place.lineno}: {what}. RESTIVE_DEBUG=1 shows the traceback.", 1)


def _interrupt(*_: object) -> None:
    """End at once: a long kernel in a thread cannot be interrupted. Files are whole or absent in any case."""
    show_cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
    print(f"{show_cursor}restive: interrupted.", file=sys.stderr, flush=True)
    os._exit(130)


def _fail(sentence: str, code: int) -> None:
    print_notices(sentence)
    raise SystemExit(code)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of every verb."""


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
    missing: Annotated[float, typer.Option(help="Probability that a state is unknown in a step.")] = 0.0,
    delay: Annotated[int, typer.Option(help="Steps after which outcomes are reported.")] = 0,
    threads: Annotated[int | None, typer.Option(help="How many chunks at once.", show_default="processors")] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Draw differences and running means into a .png, .svg or .pdf file.")
    ] = None,
    page: Annotated[Path | None, typer.Option(help="Write an HTML page with figure and table.")] = None,
    bound: Annotated[bool, typer.Option(help="Compute the fluid bound too, which no policy can exceed.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Simulate policies on the same problems with the same random numbers, and compare them."""
    from restive.comparison import CEILING, FLOOR, compare
    from restive.report.tables import tabulate_comparison

    check_targets(figure, page)
    if figure or page:  # a missing package is reported before anything is simulated
        from restive.plotting import draw_comparison, write_figure
        from restive.report.pages import write_page
    problems = _make(problem, instances, agents, states, budget, seed)
    chosen = [name for given in policy or ["egt", "wiql"] for name in (POLICIES if given == "all" else [given])]
    totals = dict.fromkeys([FLOOR, CEILING, *chosen], len(problems) * runs * horizon)
    with progress_bars(totals) as step:
        comparison = compare(problems, chosen, horizon, runs, seed, noise, threads, step, bound, missing, delay)
    if as_json:
        print_json(comparison.as_json())
    else:
        table = tabulate_comparison(comparison)
        print_report_table(table, drop=("M agent-steps/s", "last tenth", "gap closed"))
    if figure:
        write_figure(draw_comparison(comparison), figure)
    if page:
        write_page(comparison, page, shlex.join(["restive", *sys.argv[1:]]))
    print_notices(*(f"wrote {path}" for path in (figure, page) if path))


@app.command()
def solve(
    problem: Annotated[
        str, typer.Option(help="A .json or .npz file, the id of a family, or a .parquet model of `restive fit`.")
    ],
    horizon: Annotated[int, typer.Option(help="T, for the fluid bound.")] = 1000,
    discount: Annotated[float, typer.Option(help="Of the Whittle index; 1 for the average reward.")] = 0.9,
    agents: Annotated[int | None, typer.Option(help="N, for a family.", show_default="the family's")] = None,
    states: Annotated[int | None, typer.Option(help="S, for a family.", show_default="the family's")] = None,
    budget: Annotated[int | None, typer.Option(help="B, instead of the problem's own.", show_default="its own")] = None,
    seed: Annotated[int, typer.Option(help="Of the family's instance.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Print what follows from a known model: benefits, Whittle indices, thresholds, the fluid bound."""
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
    """List the problem families."""
    rows = [
        {"problem": name, "about": (inspect.getdoc(family) or "").splitlines()[0]} for name, family in PROBLEMS.items()
    ]
    _print_names(rows, as_json)


@app.command()
def warm(
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy, with settings or a .py file; repeatable.", show_default="all learners"),
    ] = None,
) -> None:
    """Compile what programs need to decide, so that a machine or an image starts fast."""
    from restive.desk.compilation import compile_policies
    from restive.kernels.jit import cache_folder
    from restive.policies.base import Learner

    wanted = policy or [name for name, kind in POLICIES.items() if issubclass(kind, Learner)]
    with progress_bars({"policies": len(wanted)}) as advance:
        compile_policies([(name, None) for name in wanted], lambda done, total: advance("policies", 1))
    print_notices(
        f"the kernels of {len(wanted)} {'policy' if len(wanted) == 1 else 'policies'} are in {cache_folder()}"
    )


@app.command()
def policies(as_json: JsonOption = False) -> None:
    """List the policies, with the defaults of their settings and their presets."""
    rows = []
    for name, policy in POLICIES.items():
        about = (inspect.getdoc(policy) or "").splitlines()[0]
        settings = ", ".join(f"{field.name}={field.default}" for field in fields(policy))
        presets = f" Presets: {', '.join(policy.presets)}." if policy.presets else ""
        rows.append({"policy": name, "about": f"{about} Settings: {settings or 'none'}.{presets}"})
    _print_names(rows, as_json)


@app.command()
def reproduce(
    experiment: Annotated[
        list[str] | None, typer.Argument(help="Experiments by name (see --list), or `all`.", show_default="all")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small part of the size, with wider intervals.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="The folder for results, figures and report.", show_default="reproduction[-quick][-own settings]"
        ),
    ] = None,
    engine: EngineOption = "processes",
    workers: WorkersOption = None,
    seed: Annotated[int, typer.Option(help="Seed of instances and simulations.")] = 0,
    own: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Own settings of a policy, such as egt:p=2, instead of the two readings; several times."
        ),
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="A TOML file with own settings of policies, families and noise.")
    ] = None,
    formats: Annotated[
        str | None,
        typer.Option(
            help="Files of each figure, beside those in the report: png, svg and pdf with commas between, or none.",
            show_default="png,svg,pdf; none with --quick",
        ),
    ] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the verdicts as a Markdown page.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="List the experiments and exit.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Repeat the experiments of the paper, and judge each of its claims under two readings of it."""
    from restive.paper.engines import check_engine
    from restive.paper.jobs import Size, require_writable
    from restive.paper.progress import complete
    from restive.paper.readings import READINGS, make_reading
    from restive.paper.reproduction import examine_all, find_experiments, prepare, write_all
    from restive.plotting import FORMATS, parse_formats

    chosen, size = find_experiments(experiment or []), Size(quick, check_whole("seed", seed, 0, MAX_SEED))
    if listed:
        _print_names([{"experiment": each.name, "title": each.title, "place": each.place} for each in chosen], as_json)
        return
    check_engine(engine, workers)
    readings = [make_reading(own or [], settings)] if own or settings else READINGS
    folder = out or Path("reproduction" + "-quick" * quick + readings[0].suffix())
    kinds = parse_formats(formats) if formats is not None else size.pick(FORMATS, ())
    if markdown:
        require_writable(markdown)
    run = prepare(chosen, size, folder, readings)
    with complete(run, engine, workers, draw=True) as executor:
        reproduction = examine_all(run, executor, kinds)
        write_all(reproduction, folder, shlex.join(["restive", *sys.argv[1:]]), markdown)
    if as_json:
        print_json(reproduction.as_json())
    else:
        rows = [claims for name in reproduction.findings for claims in reproduction.rows(name)]
        reasons = [reproduction.explain(claims) for claims in rows]
        _print_claims(rows, [reading.title for reading in reproduction.readings], reasons)
        for reading in reproduction.readings:
            print_text(f"{reading.title.capitalize()}: {reproduction.summary(reading)}.")
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
    scenario: Annotated[
        list[str] | None, typer.Option(help="A scenario by name (see --list); several times.", show_default="all")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy to add to the standard ones, or your own .py file; several times."),
    ] = None,
    problem: Annotated[
        str | None,
        typer.Option(help="Instead of scenarios: your own people, a .parquet model of `restive fit` or a problem."),
    ] = None,
    budget: Annotated[int | None, typer.Option(help="B, with --problem.", show_default="as in the history")] = None,
    horizon: Annotated[int, typer.Option(help="T, with --problem.")] = 100,
    engine: EngineOption = "threads",
    workers: WorkersOption = None,
    seed: Annotated[int, typer.Option(help="Seed of instances and simulations.")] = 0,
    cost: Annotated[bool, typer.Option(help="Measure the cost of a step of each policy at the end.")] = True,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write summary, tables and verdicts as a Markdown page.")
    ] = None,
    calibration: Annotated[
        bool,
        typer.Option(
            "--calibration", help="Only check whether the benefits that lagrange states are true as often as it says."
        ),
    ] = False,
    listed: Annotated[bool, typer.Option("--list", help="List the scenarios and exit.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare all online policies on some twenty scenarios: which is best where, by how much, and at what cost."""
    from restive.benchmark.benchmark import Benchmark, examine, prepare, write_benchmark
    from restive.benchmark.cost import measure_costs
    from restive.benchmark.scenarios import RANKED, check_policies, find_scenarios, plans
    from restive.paper.engines import check_engine
    from restive.paper.jobs import Size, require_writable
    from restive.paper.progress import complete

    size = Size(quick, check_whole("seed", seed, 0, MAX_SEED))
    if calibration:
        _print_calibration(scenario or [], size, as_json, markdown)
        return
    extra = check_policies(policy or [], engine)
    if problem is not None:
        page = (out or Path("comparison")) / "comparison.html"
        instances = None if Path(problem).suffix in FILES else size.pick(INSTANCES, QUICK_INSTANCES)
        runs, chosen = size.pick(RUNS, 1), [*RANKED, *extra]
        simulate(problem, chosen, instances, runs, None, None, budget, horizon, seed, page=page, as_json=as_json)
        return
    known = plans(extra)
    found = find_scenarios(scenario or [], known)
    if listed:
        _print_names([{"scenario": each.name, "about": each.title} for each in found], as_json)
        return
    check_engine(engine, workers)
    folder = out or Path("comparison-quick" if quick else "comparison")
    if markdown:
        require_writable(markdown)
    run = prepare(found, known, size, folder)
    with complete(run, engine, workers):
        pass
    scores = examine(run, extra)
    benchmark = Benchmark(scores, measure_costs(scores.all_policies(), size, print_notices) if cost else None)
    write_benchmark(benchmark, folder, shlex.join(["restive", *sys.argv[1:]]), markdown)
    if as_json:
        print_json(benchmark.as_json())
    else:
        _print_benchmark(benchmark)
    print_notices(f"wrote {folder / 'comparison.html'}, comparison.json, figures and results")


def _print_calibration(names: list[str], size: "Size", as_json: bool, markdown: Path | None) -> None:
    from restive.benchmark import calibration
    from restive.files import write_atomic
    from restive.paper.jobs import require_writable

    if markdown:
        require_writable(markdown)
    rows = calibration.calibrate_all(names, size, print_notices)
    if markdown:
        write_atomic(markdown, calibration.render_calibration(rows, size).encode())
    if as_json:
        print_json([calibration.as_json(row) for row in rows])
    else:
        print_report_table(calibration.tabulate_calibration(rows))
        print_notices(*calibration.summarise_calibration(rows))


def _print_benchmark(benchmark: "Benchmark") -> None:
    """Print ranks, costs, which policy to use when, and the claims."""
    from restive.benchmark.scenarios import LATE
    from restive.benchmark.summary import tabulate_costs, tabulate_ranks
    from restive.paper.claims import count_verdicts

    if benchmark.scores.scenarios:
        print_report_table(tabulate_ranks(benchmark.scores, LATE))
    if benchmark.costs:
        print_report_table(tabulate_costs(benchmark.costs, benchmark.about["machine"]))
    print_text(*(f"- {sentence}" for sentence in benchmark.advice))
    _print_claims([(claim,) for claim in benchmark.claims], ["verdict"])
    counted = count_verdicts(claim.verdict for claim in benchmark.claims)
    print_text(f"{len(benchmark.claims)} claims: {counted}.")


def _print_claims(rows: "Sequence[Sequence[Claim]]", titles: Sequence[str], reasons: Sequence[str] = ()) -> None:
    """Print every claim with its verdict and its worst part under each reading, and under it why it does not hold."""
    styles = {"holds": "green", "fails": "bold red", "undecided": "yellow", "not decidable": "dim"}
    shown = []
    for claims in rows:
        row: dict[str, object] = {"claim": claims[0].sentence, "where": claims[0].place}
        for title, claim in zip(titles, claims, strict=True):
            row[title] = Text(claim.verdict, style=styles[claim.verdict]).append(f" {claim.show_worst()}", "default")
        if len(claims) == 1:
            row["worst at"] = claims[0].worst_first()[0].setting if claims[0].parts else ""
        shown.append(row)
    text = ("claim", "where", *titles, "worst at")
    print_table(shown, text, drop=("worst at", "where"), empty="No claims.", below=reasons)


def _print_names(names: Sequence[Mapping[str, str]], as_json: bool) -> None:
    """Print a list of names with what they are."""
    if as_json:
        print_json(names)
    else:
        print_table(names, list(names[0])[1:], header=False)


def _make(
    problem: str, instances: int | None, agents: int | None, states: int | None, budget: int | None, seed: int
) -> list[Problem]:
    """The instances of a family, the one problem in a file, or draws of a fitted model."""
    asked = {"instances": instances, "agents": agents, "states": states, "budget": budget}
    given = {name: value for name, value in asked.items() if value is not None}
    if Path(problem).suffix == ".parquet":
        return _draw_people(problem, given, seed)
    if Path(problem).suffix in FILES:
        own = Problem.load(problem)
        if foreign := set(given) - {"budget"}:
            raise InputError(f"{problem}: a file is one problem with its own agents; --{min(foreign)} is for families.")
        return [own if budget is None else own.with_budget(budget)]
    known = inspect.signature(PROBLEMS[problem]).parameters if problem in PROBLEMS else {}
    usual = {name: value for name, value in {"instances": INSTANCES, "seed": seed}.items() if name in known}
    return make_problems(problem, **(usual | given))


def _draw_people(path: str, given: Mapping[str, int], seed: int) -> list[Problem]:
    """Draws of the people of a fitted model: what its history leaves open differs between them."""
    from restive.logs.model import FittedModel

    if foreign := set(given) - {"budget", "instances"}:
        raise InputError(f"{path}: a model has its own people; --{min(foreign)} is for families.")
    model = FittedModel.load(path)
    budget = given.get("budget", round(model.logged.actions_per_round))
    return [model.problem(budget, number, seed) for number in range(given.get("instances", INSTANCES))]
