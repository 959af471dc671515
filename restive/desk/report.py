"""A program on one page, for a funder: who, what was done, whether it worked, what is not known, how it was measured.

Everything in it is in the status and the results of the program; there are no ids and no names of people on it.
"""

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from restive.api.results import Report, ReportSection, Results, StateCounts, StateShares
from restive.api.status import Lift, Progress
from restive.desk.config import Words, policy_label
from restive.desk.explanations import capitalize, count_people, show_estimate
from restive.desk.program import Program
from restive.desk.results import get_results
from restive.desk.schedule import mention_round, tick_label
from restive.desk.status import get_progress
from restive.formats import enumerate_words, show_percent

MAX_GROUPS = 6  # that the page has room for
NO_CONTROL = "There is no control group, so the effect cannot be measured."


def make_report(program: Program) -> Report:
    """The report of a program."""
    progress, results, words = get_progress(program), get_results(program), program.config.words
    rounds = progress["rounds"]
    lift = progress["lift"]
    clear = lift is not None and _excludes_zero(lift) and not progress["caution"]
    sections = {
        "Who takes part": _describe_people(progress, results, words),
        "What was done": _describe_actions(progress, results, words),
        "Did it work?": [lift["sentence"] if lift else NO_CONTROL, progress["caution"]],
        "What it brought in total": [_describe_total(progress)],
        "What is not known": _list_unknown(progress, results, words, clear),
        "How it was measured": _describe_method(progress, words),
    }
    return {
        "name": program.name,
        "title": progress["title"] or program.name,
        "period": " to ".join(dict.fromkeys(tick_label(rounds[at]["label"]) for at in (0, -1))) if rounds else "",
        "verdict": _judge(progress, clear),
        "clear": clear,
        "mean": lift["mean"] if lift else None,
        "low": lift["low"] if lift else None,
        "high": lift["high"] if lift else None,
        "unit": f"{words.reward_unit} for each {words.person}",
        "sections": [_section(heading, sentences) for heading, sentences in sections.items()],
        "states": compare_states(results),
        "states_note": _note_states(results),
        "source": f"Policy {policy_label(progress['policy'])}, seed {progress['seed']}, restive {progress['version']}",
    }


def _section(heading: str, sentences: list[str]) -> ReportSection:
    return {"heading": heading, "sentences": [sentence for sentence in sentences if sentence]}


def _excludes_zero(lift: Lift) -> bool:
    return lift["low"] is not None and lift["high"] is not None and (lift["low"] > 0 or lift["high"] < 0)


def _judge(progress: Progress, clear: bool) -> str:
    if progress["lift"] is None:
        return "Not measured: there is no control group"
    if not clear:
        return "Too early to say whether it works"
    return "It works: a clear gain" if (progress["lift"]["mean"] or 0) > 0 else "It does not work: a clear loss"


def _describe_people(progress: Progress, results: Results, words: Words) -> list[str]:
    people = progress["people"]
    control = f", {people['control']:,} of them in a control group, which is drawn at random and never on a list"
    sentences = [f"{capitalize(count_people(people['active'], words))}{control if people['control'] else ''}."]
    groups = [f"{each['group'] or 'no group'} {each['people']:,}" for each in results["groups"]]
    if groups:
        more = f" and {len(groups) - MAX_GROUPS:,} more groups" if len(groups) > MAX_GROUPS else ""
        sentences.append(f"By group: {', '.join(groups[:MAX_GROUPS])}{more}.")
    return sentences


def _describe_actions(progress: Progress, results: Results, words: Words) -> list[str]:
    rounds, reach = len(progress["rounds"]), results["reach"]
    if not rounds:
        return ["Nothing yet: no round is decided."]
    used = progress["budget_used"]
    spent = f" That is {show_percent(used)} of the budget." if used is not None else ""
    every = f"{rounds:,} {words.every}{'s' * (rounds != 1)}"
    times = f"{progress['actions']:,} time{'s' * (progress['actions'] != 1)}"
    assumed = progress["assumed"]
    unmarked = f" {assumed:,} of these were on a list and not marked, so they count as done." if assumed else ""
    return [
        f"In {every}, someone {words.acted} {times}.{unmarked}{spent}",
        f"{reach['reached']:,} of the {reach['people']:,} {words.people} in the program {words.acted} at least once.",
    ]


def _describe_total(progress: Progress) -> str:
    if progress["lift"] is None:
        return NO_CONTROL
    return progress["total"] or "Not known yet: it needs outcomes of the program and of the control group."


def _list_unknown(progress: Progress, results: Results, words: Words, clear: bool) -> list[str]:
    last, reach = len(progress["rounds"]), results["reach"]  # what comes of the last round is not known to anybody
    missing = sum(each["missing"] for each in progress["waiting"] if each["round"] != last)
    unreached = reach["never_listed"] + reach["never_eligible"] + reach["never_done"]
    unknown = [each["group"] or "no group" for each in results["groups"] if each["note"]]
    shown = enumerate_words(unknown[:MAX_GROUPS]) if unknown else ""
    return [
        "" if clear else "Whether the program makes a difference.",
        f"{missing:,} outcomes of earlier rounds that nobody reported." if missing else "",
        f"What the program could do for {count_people(unreached, words)} whom it never reached." if unreached else "",
        f"Whether it works in the groups {shown} taken alone." if unknown and progress["lift"] else "",
        "What remains after the program ends, and whether it would work the same elsewhere.",
    ]


def _describe_method(progress: Progress, words: Words) -> list[str]:
    lift = progress["lift"]
    if lift is None:
        return ["By what is recorded of each round; without a control group nothing can be compared."]
    return [
        f"People were assigned to the control group at random when they joined; each {words.every} what happened to both "
        "is compared. A 95% interval holds the true value in about 95 of 100 such programs.",
        lift["explanation"],
    ]


def compare_states(results: Results) -> list[StateShares]:
    """The shares of people in each state, first and last round, program and control group; of people with a state."""
    if not results["rounds"]:
        return []
    first, last = results["rounds"][0], results["rounds"][-1]
    columns = [_share(counts) for counts in (first["program"], last["program"], first["control"], last["control"])]
    return [
        {
            "state": state,
            "program_first": columns[0][place],
            "program_last": columns[1][place],
            "control_first": columns[2][place],
            "control_last": columns[3][place],
        }
        for place, state in enumerate(results["states"])
    ]


def _share(counts: StateCounts) -> list[float | None]:
    people = [sum(each) for each in zip(counts["reported"], counts["carried_over"], strict=True)]
    return [many / sum(people) if sum(people) else None for many in people]


def _note_states(results: Results) -> str:
    if not results["rounds"]:
        return ""
    last = results["rounds"][-1]
    carried = sum(sum(last[side]["carried_over"]) for side in ("program", "control"))
    absent = sum(last[side]["unknown"] for side in ("program", "control"))
    more = "".join(
        [
            f" In the last round {carried:,} states are from an earlier round." if carried else "",
            f" {absent:,} people without a known state are left out." if absent else "",
        ]
    )
    began, ended = (mention_round(each["label"], each["round"]) for each in (results["rounds"][0], last))
    return f"First: {began}; last: {ended}.{more}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("restive.desk"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["percent"] = show_percent
    return environment


def render_body(report: Report) -> Markup:
    """The report as HTML without a page around it."""
    shown = show_estimate(report["mean"], report["low"], report["high"])
    places = place_interval(report) if shown else None
    return Markup(_environment().get_template("report_body.html").render(report=report, shown=shown, places=places))


def place_interval(report: Report) -> dict[str, float]:
    """The lift, the ends of its interval and 0, on an axis from 0 to 100.

    >>> place_interval({"mean": 1.0, "low": 0.5, "high": 2.0})  # type: ignore[typeddict-item]
    {'zero': 0.0, 'low': 25.0, 'mean': 50.0, 'high': 100.0}
    """
    values = {"zero": 0.0, **{name: report[name] or 0.0 for name in ("low", "mean", "high")}}
    start, end = min(values.values()), max(values.values())
    return {name: round(100 * (value - start) / ((end - start) or 1), 1) for name, value in values.items()}


def render_page(report: Report) -> str:
    """The report as one HTML file that needs nothing else and prints on one A4 page."""
    return _environment().get_template("report.html").render(report=report, body=render_body(report))
