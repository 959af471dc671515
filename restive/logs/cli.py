"""The verbs that answer from logs: one short function each, over the library.

A verb asks for what it needs by the names of its parameters: `history` is read from the argument HISTORY and the options
of `read_source`, `output` is where the answer goes. `logs_verb` replaces both by their options, and `verb` also
registers the verb with the command.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from restive.errors import InputError
from restive.logs.options import parse_options, split_names

if TYPE_CHECKING:
    from restive.logs.history import History
    from restive.logs.sections import Answer

SeedOption = Annotated[int, typer.Option(help="Same seed, same answer.")]
REFUSED = 3  # the exit code if the log cannot say what was asked
VERBS: list[Callable[..., None]] = []  # of the command
GROUPS: list[typer.Typer] = []  # of verbs


class Output(NamedTuple):
    """Where an answer goes: as text or JSON to standard output, as a page and as a figure into files."""

    json: bool = False
    page: Path | None = None
    figure: Path | None = None

    def show(self, answer: "Answer", title: str) -> None:
        """Print an answer, and write it where it was asked for."""
        from restive.logs.sections import show

        show(answer, title, *self)


def read_source(
    source: Annotated[
        str,
        typer.Argument(
            metavar="HISTORY",
            help="A .csv, .xlsx or .parquet file, the folder of an export, or program:NAME.",
            show_default=False,
        ),
    ],
    column: Annotated[
        list[str] | None, typer.Option(help="The header of a column, such as agent=customer_id; several times.")
    ] = None,
    states: Annotated[
        str | None, typer.Option(help="Names of the states, the worst first: lapsed,active.", show_default="by reward")
    ] = None,
    rewards: Annotated[
        str | None,
        typer.Option(help="The reward of each state: lapsed=0,active=1.", show_default="the column reward"),
    ] = None,
    action_is: Annotated[
        str | None, typer.Option(help="Texts that mean acting, such as called,emailed.", show_default="1")
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(help="The length of a round: 12h, 7d, 1mo, or 7 of whole numbers.", show_default="each time"),
    ] = None,
    reward_on: Annotated[
        str | None, typer.Option(help="What a row's reward belongs to: arrival or departure.", show_default="arrival")
    ] = None,
    propensity_of: Annotated[
        str | None, typer.Option(help="What propensities are of: acting or done.", show_default="acting")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="A column to use as a feature; several times.", show_default="all fixed")
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(envvar="RESTIVE_STORE", help="The store of program:NAME.", show_default="as `restive desk`"),
    ] = None,
) -> "History":
    """The history that the options of a verb name; what there is to note goes to standard error."""
    from restive.console import print_notices
    from restive.logs.tables import read_history

    options = parse_options(
        column or (), states, rewards, action_is, every, reward_on, propensity_of, tuple(feature) if feature else None
    )
    history = read_history(source, store=store, options=options)
    print_notices(*history.notes)
    return history


def open_output(
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    page: Annotated[Path | None, typer.Option(help="Write an HTML page.")] = None,
    figure: Annotated[Path | None, typer.Option(help="Draw the first figure into a .png, .svg or .pdf file.")] = None,
) -> Output:
    """Where an answer goes; files that cannot be written are refused before anything is computed."""
    check_targets(figure, page)
    return Output(json, page, figure)


def check_targets(figure: Path | None, page: Path | None) -> None:
    """Refuse files that could not be written; make their folders."""
    if figure:
        from restive.plotting import check_ending

        check_ending(figure)
    if page and page.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{page}: a page ends in .html.")
    for place in filter(None, (figure, page)):
        if place.is_dir():
            raise InputError(f"{place}: there is a folder of that name.")
        place.parent.mkdir(parents=True, exist_ok=True)


PARTS: dict[str, Callable[..., Any]] = {"output": open_output, "history": read_source}


def logs_verb(function: Callable[..., None]) -> Callable[..., None]:
    """A verb whose parameters `history` and `output` are replaced by the options that they are made from.

    Arguments come first, then the verb's own options, then those of the history and of the output.
    """
    own = inspect.signature(function).parameters
    parts = {name: inspect.signature(PARTS[name]).parameters for name in PARTS if name in own}

    def run(**given: Any) -> None:
        made = {name: PARTS[name](**{each: given.pop(each) for each in needed}) for name, needed in parts.items()}
        function(**made, **given)

    history, output = (list(parts.get(name, {}).values()) for name in ("history", "output"))
    rest = [each for name, each in own.items() if name not in parts]
    ordered = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*history[:1], *rest, *history[1:], *output)
    ]
    run.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in ordered}
    run.__name__, run.__doc__ = function.__name__, function.__doc__
    return run


def verb(function: Callable[..., None]) -> Callable[..., None]:
    """Register a verb of the command."""
    VERBS.append(logs_verb(function))
    return VERBS[-1]


def split_budgets(text: str | None) -> tuple[int, ...]:
    """Whole numbers with commas between.

    >>> split_budgets("10,20, 40")
    (10, 20, 40)
    """
    try:
        return tuple(map(int, split_names(text)))
    except ValueError:
        raise InputError(f"{text!r} must be whole numbers with commas between, such as 10,20,40.") from None


@verb
def report(
    history: "History",
    output: Output,
    budget: Annotated[
        str | None, typer.Option(help="Actions in each round: 10,20,40.", show_default="as now, half and twice")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How long the program lasts.")] = 26,
    out: Annotated[Path | None, typer.Option(help="Write the model to this .parquet file.")] = None,
    seed: SeedOption = 0,
) -> None:
    """Say on one page who gains, what a program would bring, what a trial needs, and what the history cannot say."""
    from restive.console import print_notices
    from restive.logs.report import report as make_report

    check_model_file(out)
    answer = make_report(history, split_budgets(budget), rounds, seed, lambda part: print_notices(f"{part} ..."))
    if out is not None:
        answer.model.save(out)
    output.show(answer, "What a history says about a program")


def check_model_file(out: Path | None) -> None:
    """Refuse a file for a model that does not end in .parquet."""
    if out is not None and out.suffix != ".parquet":
        raise InputError(f"{out}: a model is written to a .parquet file.")


@verb
def forecast(
    output: Output,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file of `restive fit`.", show_default=False)],
    budget: Annotated[
        str | None, typer.Option(help="Actions in each round: 10,20,40.", show_default="as now, half and twice")
    ] = None,
    rounds: Annotated[int, typer.Option(help="How long the program lasts.")] = 26,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy that learns, `informed`, or your own .py file; several times.",
            show_default="lagrange, informed",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="How many draws of the model are played.")] = 200,
    words: Annotated[
        str | None,
        typer.Option(
            help="What an action, a round and the reward are called: call,week,orders.", show_default="action,round"
        ),
    ] = None,
    start: Annotated[
        str, typer.Option(help="What learners start from: the history (`warm`) or nothing (`cold`).")
    ] = "warm",
    seed: SeedOption = 0,
) -> None:
    """Say what a program would bring: lift by budget and policy, the worth of one more action, and power."""
    from restive.console import progress_bar
    from restive.logs import forecast as verb
    from restive.logs.model import FittedModel

    fitted, budgets, chosen = FittedModel.load(model), split_budgets(budget), tuple(policy or verb.POLICIES)
    said = verb.name_things(fitted, split_names(words))
    with progress_bar("programs") as progress:
        answer = verb.forecast(fitted, budgets, rounds, chosen, draws, seed, said, start, progress=progress)
    output.show(answer, "Forecast")


@verb
def evaluate(
    history: "History",
    output: Output,
    policy: Annotated[
        str,
        typer.Option(
            help="A policy by name or file, state:NAME for people in that state first, column:NAME for the highest "
            "numbers first, or nobody.",
            show_default=False,
        ),
    ],
    rounds: Annotated[int, typer.Option(help="How many rounds in a row.")] = 1,
    model: Annotated[Path | None, typer.Option(help="A model file of `restive fit`.", show_default="fitted")] = None,
    budget: Annotated[int | None, typer.Option(help="People acted on in a round.", show_default="as logged")] = None,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of people.")] = 200,
    seed: SeedOption = 0,
) -> None:
    """Say what another policy would have brought in a logged program; exit code 3 if the log cannot say."""
    from restive.logs.evaluate import evaluate as evaluate_policy
    from restive.logs.model import FittedModel

    fitted = None if model is None else FittedModel.load(model)
    answer = evaluate_policy(history, policy, rounds, model=fitted, budget=budget, resamples=resamples, seed=seed)
    output.show(answer, f"What {answer.policy!r} would have brought")
    if answer.refusal:
        raise typer.Exit(REFUSED)


@verb
def fit(
    history: "History",
    output: Output,
    out: Annotated[Path | None, typer.Option(help="Write the model to this .parquet file.")] = None,
    types: Annotated[
        int | None, typer.Option(help="How many types of people, without features.", show_default="by held-out people")
    ] = None,
    half_life: Annotated[
        str, typer.Option(help="Rounds after which a move counts half: auto, none or a number.", metavar="ROUNDS")
    ] = "auto",
    examine: Annotated[bool, typer.Option(help="Also say whether the model holds: `restive examine`.")] = True,
    seed: SeedOption = 0,
) -> None:
    """Fit a model of people to a history: what acting changes in each state, how alike people are, how well it predicts."""
    from restive.console import print_notices
    from restive.logs.fit import fit as fit_model

    check_model_file(out)
    model = fit_model(history, seed, types=types, half_life=half_life)
    if examine:
        from restive.logs.alternatives import add_examination
        from restive.logs.examine import examine as examine_history

        model = add_examination(model, history, examine_history(history, seed), seed)
    if out is not None:
        model.save(out)
    output.show(model, "Model of a history")
    if out is not None:
        print_notices(f"wrote {out}")


@verb
def check_logs(
    quick: Annotated[bool, typer.Option("--quick", help="A small part of the size, with wider limits.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Checks of one verb, such as fit, or fit/coverage; several times.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Keep figures in this folder, and continue from there.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Also write the table as a Markdown page.")] = None,
    earlier: Annotated[
        bool, typer.Option("--earlier", help="Also show kept figures of the full size that earlier code computed.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="How many checks at once.", show_default="processors")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Check on simulated histories that what is said from logs is as right as it claims."""
    from restive.console import print_json, print_notices, print_table, print_text
    from restive.logs.check_logs import find_checks, run_checks, summarize, tabulate, write_markdown

    outcomes = run_checks(list(find_checks(only or [])), quick, out, print_notices, workers, earlier)
    if markdown is not None:
        write_markdown(markdown, outcomes, quick, earlier)
    if json:
        print_json([outcome.as_json() for outcome in outcomes])
        return
    table = tabulate(outcomes)
    print_table(table.records(), table.heads, drop=("note",))
    print_text(summarize(outcomes))


@verb
def examine(
    history: "History",
    output: Output,
    control: Annotated[
        list[str] | None,
        typer.Option(help="A column that effects are adjusted for; several times.", show_default="the state"),
    ] = None,
    over: Annotated[
        str, typer.Option(help="The column of time that effects may change with.", show_default="the round")
    ] = "",
    margin: Annotated[
        float, typer.Option(help="What does not matter, as a share of the way from the worst to the best state.")
    ] = 0.02,
    seed: SeedOption = 0,
) -> None:
    """Say whether a model holds for a history: nine questions, what each costs if not, and what to do."""
    from restive.logs.examine import examine as examine_history

    output.show(examine_history(history, seed, margin, tuple(control or ()), over), "Does the model hold?")


trial = typer.Typer(name="trial", help="Plan a trial with a control group, and read one.", no_args_is_help=True)
GROUPS.append(trial)


def plan(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model that `restive fit` wrote; without one, --deviation is needed.", show_default=False
        ),
    ] = None,
    *,
    people: Annotated[int, typer.Option(help="People in both groups together.")],
    output: Output,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the trial.")] = None,
    budget: Annotated[int | None, typer.Option(help="Actions in each round, all in the program.")] = None,
    control: Annotated[float, typer.Option(help="The share of people in the control group.")] = 0.5,
    policy: Annotated[str, typer.Option(help="The policy of the program.")] = "lagrange",
    lift: Annotated[
        float | None, typer.Option(help="The lift to plan for, per person and round.", show_default="as simulated")
    ] = None,
    deviation: Annotated[
        float | None, typer.Option(help="Without a model: the standard deviation of people's mean rewards.")
    ] = None,
    touched: Annotated[
        float | None, typer.Option(help="Without a model: the share of people who are acted on at least once.")
    ] = None,
    power: Annotated[float, typer.Option(help="The probability with which the lift is to be seen.")] = 0.8,
    trials: Annotated[int, typer.Option(help="Simulated trials.")] = 400,
    seed: SeedOption = 0,
) -> None:
    """Say how many people and rounds a trial needs, by each estimator."""
    from restive.logs.model import FittedModel
    from restive.logs.trial_plan import plan_trial

    source = None if model is None else FittedModel.load(model)
    planned = plan_trial(
        source, people=people, rounds=rounds, budget=budget, control=control, policy=policy, lift=lift,
        deviation=deviation, touched=touched, power=power, trials=trials, seed=seed,
    )  # fmt: skip
    output.show(planned, "Plan of a trial")


def read(
    history: "History",
    output: Output,
    price: Annotated[
        float | None, typer.Option(help="What the marginal action adds.", show_default="two thirds of the mean effect")
    ] = None,
    looks: Annotated[
        str | None, typer.Option(help="The fractions after which it was planned to look: 0.5,1.", show_default="1")
    ] = None,
    look: Annotated[int | None, typer.Option(help="Which of them this is, from 1.", show_default="the last")] = None,
    spending: Annotated[
        str, typer.Option(help="How the error is spent over the looks: obrien-fleming or pocock.")
    ] = "obrien-fleming",
) -> None:
    """Say what a program adds, from a table with a control group (column arm)."""
    from restive.logs.trial import read_trial

    try:
        fractions = [float(part) for part in split_names(looks)]
    except ValueError:
        raise InputError(f"looks is {looks!r}; it must be fractions such as 0.5,1.", location="looks") from None
    output.show(read_trial(history, price=price, looks=fractions, look=look, spending=spending), "A trial")


for command in (plan, read):
    trial.command()(logs_verb(command))
