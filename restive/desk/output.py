"""Terminal output of `restive desk`: status, lists, histories and tables, built on `restive.console`.

Everything fits the width of the terminal. Names are never parsed as markup, and control characters in them are shown as
escapes.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rich.console import Console
from rich.padding import Padding

from restive.api.status import NextStep, RewardRange, Status
from restive.api.types import DueRound, HistoryEntry
from restive.api.webhooks import Delivery, Webhook
from restive.console import as_text, make_console, print_json, print_line, print_notices, print_table
from restive.desk.config import Config, Words
from restive.desk.explanations import capitalize, count_people, describe_effect, rounded, show_amount, show_estimate
from restive.desk.schedule import NO_RHYTHM, describe_rhythm, mention_round, show_time, tick_label
from restive.desk.table_mapping import CutPoints
from restive.errors import InputError
from restive.formats import UNKNOWN, enumerate_words, show_date, show_number, show_percent
from restive.problem import AT_MOST

if TYPE_CHECKING:
    from restive.desk.program import LearnResult
    from restive.desk.recommendation import Recommendation
    from restive.desk.replay import Replay

Row = Mapping[str, Any]
SPARKS = "▁▂▃▄▅▆▇█"
GROUPS: dict[Literal["reward_mean", "control_mean"], str] = {
    "reward_mean": "in the program",
    "control_mean": "control group",
}
MAX_ROUNDS = 8  # in the table of rounds; the sparkline shows more
MAX_PEOPLE = 60  # of a list
COMMANDS = {  # the command for each verb of a next step
    "decide": "restive desk decide {program} --states STATES.csv",
    "learn": "restive desk learn {program} --outcomes OUTCOMES.csv",
}


def print_status(status: Status, store: str) -> None:
    """Print what to do next, who is in the program, whether it works, the last rounds and the effect in each state."""
    console, words = make_console(), Words(**status["words"])
    console.print(as_text(status["title"] or status["name"], style="bold"))
    console.print(as_text(_headline(status, store), style="dim"))
    for step in status["steps"]:
        console.print(as_text(f"→ {step_with_command(status['name'], step, store)}"))
    for alarm in status["drift"]:
        console.print(as_text(f"! {alarm['sentence']} {alarm['advice']}"))
    console.print(as_text(f"\n{_describe_people(status, words)}"))
    _print_lift(console, status, words)
    if status["rounds"]:
        _print_rounds(console, status, words)
    if status["effects"]:
        _print_effects(console, status, words)


def step_with_command(name: str, step: NextStep, store: str) -> str:
    """A next step of a program with the command for it."""
    from restive.desk.desk import name_store

    if step["verb"] is None:
        return step["message"]
    command = COMMANDS[step["verb"]].format(program=name + name_store(store))
    return f"{step['message'].removesuffix('.')}: {command}"


def status_as_json(status: Status, store: str) -> dict[str, object]:
    """The status as data, with the store and with the commands of the next steps."""
    steps = [step_with_command(status["name"], step, store) for step in status["steps"]]
    return {**status, "store": store, "steps": steps}


def print_recommendation(
    recommendation: "Recommendation",
    out: Path | None,
    as_json: bool,
    dry_run: bool,
    max_people: int = MAX_PEOPLE,
    full: bool = False,
) -> None:
    """Print the list of a round, as a table or as data, and write the call list or all columns to a file if one is given."""
    if out and not dry_run:
        _write_list(recommendation, out, full)
    if as_json:
        print_json(recommendation.as_json() | {"recorded": not dry_run})
    else:
        chosen, words = len(recommendation.chosen), recommendation.config.words
        note = " (dry run, nothing recorded)" if dry_run else ""
        people, unit = count_people(chosen, words), recommendation.config.cost_unit
        if recommendation.planned is not None:
            people += f" for {show_amount(recommendation.planned, unit)} of {show_amount(recommendation.budget, unit)}"
        title = f"{recommendation.program}, {recommendation.totals.mention}{note}: {people} to {words.verb}, then the reserve"
        print_list(recommendation.people(slice(max_people)), words, title, unit)
        hidden = recommendation.size - max_people
        if hidden > 0:
            print_line(f"... and {hidden:,} more; --out writes all of them to a file.")
        for sentence in _describe_rules(recommendation):
            print_line(sentence)
    print_notices(*recommendation.remarks, *([f"wrote {out}"] if out and not dry_run else []))


def _write_list(recommendation: "Recommendation", out: Path, full: bool) -> None:
    try:
        recommendation.write(out, full)
    except OSError as error:
        command = f"restive desk round {recommendation.program} {recommendation.round} --out FILE"
        raise InputError(f"{out}: {error.strerror}. The round is recorded; to write its list: {command}") from None


def _describe_rules(recommendation: "Recommendation") -> Iterator[str]:
    excluded = recommendation.exclusions()
    if excluded:
        yield "Not on the list: " + ", ".join(f"{number:,} by {rule}" for rule, number in excluded.items()) + "."
    if recommendation.displaced:
        places = ", ".join(f"{rule} {number:,}" for rule, number in recommendation.displaced.items())
        yield f"Places that would go to other people without the rule: {places}."


def print_list(rows: Sequence[Row], words: Words, title: str = "", unit: str = "") -> None:
    """Print the rows of a recommendation, with the reason under each."""
    lines = [
        {
            "rank": f"+{row['rank']}" if row.get("list") == "reserve" else row["rank"],
            words.person: row["agent"],
            **{name: cell or "" for name, cell in row.get("display", {}).items()},
            **({unit: show_amount(row["cost"], "")} if row.get("cost") is not None else {}),
            "state": row.get("state_now"),
            "probability": show_percent(row.get("probability")),
        }
        for row in rows
    ]
    reasons = [str(row.get("reason") or "") for row in rows]
    texts = (words.person, "state", *(rows[0].get("display", {}) if rows else ()))
    print_table(lines, texts, title=title, below=reasons, console=make_console())


def print_config(
    name: str,
    config: Mapping[str, Any],
    what: str,
    as_json: bool,
    notes: Sequence[str] = (),
    doubts: Sequence[str] = (),
) -> None:
    """Print the settings of a program in a few sentences, or as data, with notes and with what is doubtful."""
    from restive.desk.desk import name_store

    if as_json:
        print_json({"program": name, **config, "notes": [*notes, *doubts]})
        return
    rewards = config["rewards"]
    shown = "reported with each outcome" if rewards is None else ", ".join(f"{each:g}" for each in rewards)
    print_line(f"Program {name} {what}.")
    print_line(f"States: {', '.join(config['states'])}; rewards: {shown}.")
    limit = "at most " if config["spend"] == AT_MOST else ""
    budget = show_amount(config["budget"], config["cost_unit"])
    print_line(f"Budget: {limit}{budget} a round. Policy: {config['policy']}.")
    if config["control"]:
        print_line(
            f"Control group: about {config['control']:.0%} of the people are never treated"
            f"{f' until round {until:,}' if (until := config['control_until']) else ''}, to measure the effect."
        )
    for sentence in (*_describe_config(config), *notes):
        print_line(sentence)
    if "store" in config:
        print_line(f"Store: {config['store']}")
        print_line(f"Next: restive desk decide {name} --states STATES.csv --out list.csv{name_store(config['store'])}")
    print_notices(*doubts)


def _describe_config(config: Mapping[str, Any]) -> Iterator[str]:
    """The other settings that differ from their defaults."""
    if config["rhythm"] != NO_RHYTHM or config["timezone"] != "UTC":
        yield describe_rhythm(config["rhythm"], config["first_due"], config["timezone"])
    if config["shadow"]:
        yield f"Shadow policy, only compared: {config['shadow']}."
    if config["cool_down"] > 1:
        yield f"Cool-down: nobody twice in {config['cool_down']:,} rounds."
    if config["shares"]:
        shares = ", ".join(f"{group} {share:.0%}" for group, share in config["shares"].items())
        yield f"Minimum shares of the list: {shares}."
    if config["cost_unit"]:
        yield f"Costs: the column cost of the states says what each person costs, in {config['cost_unit']}."
    if config["features"]:
        yield f"Features of people: {', '.join(config['features'])}."
    if config["columns"]:
        yield f"Columns: {', '.join(f'{name} is {header!r}' for name, header in config['columns'].items())}."
    if config["values"]:
        yield f"Texts that mean a state: {', '.join(f'{text!r} {state}' for text, state in config['values'].items())}."
    if config["cut_points"]:
        cut = CutPoints(**config["cut_points"])
        classes = ", ".join(f"{state} {numbers}" for state, numbers in cut.describe(config["states"]).items())
        yield f"States by {cut.column}: {classes}."
    if config["phone_country"]:
        yield f"Ids are phone numbers of +{config['phone_country']}."
    if config["display"]:
        yield f"Display columns of lists: {', '.join(config['display'])}."
    if config["horizon"]:
        yield f"Rounds in all: {config['horizon']:,}."
    if config["pseudonyms"]:
        from restive.desk.roster import keys_folder

        yield f"Names are stored as codes; keep a copy of their key: {keys_folder() / config['pseudonyms']}.key"


def print_outcome_counts(counts: "LearnResult", dry_run: bool, as_json: bool) -> None:
    """Print what was recorded of a table of outcomes."""
    if as_json:
        print_json(counts._asdict() | {"recorded": not dry_run})
        return
    rounds, verb = enumerate_words(map(mention_round, counts.labels, counts.rounds)), "recorded"
    verb = f"would be {verb}" if dry_run else verb
    known = f"{counts.corrected:,} corrected, {counts.repeated:,} already known"
    print_line(f"{capitalize(rounds)}: {counts.new:,} outcomes {verb}, {known}.")
    print_line(f"{counts.waiting:,} outcomes are still missing." if counts.waiting else "No outcomes are missing.")
    print_notices(*counts.notes)


def print_replay(found: "Replay", as_json: bool) -> None:
    """Print whether a program comes out the same from its events."""
    if as_json:
        print_json(found.as_json())
        return
    print_line(f"{found.events:,} events in an unbroken chain that ends in {found.end[:16]}.")
    print_line(f"{found.same:,} of {found.rounds:,} decisions come out the same, bit for bit.")
    equal = "equals" if found.belief == found.believed else "does NOT equal"
    print_line(f"The policy's belief {equal} the one from its events ({found.belief}).")
    for sentence in found.differing:
        print_line(sentence)


def print_history(rows: Sequence[HistoryEntry], config: Config, person: str, as_json: bool = False) -> None:
    """Print the rounds of one person."""
    if as_json:
        print_json(rows)
        return
    lines = [
        {
            "date": tick_label(row["label"]),
            "round": row["round"],
            "state": row.get("state"),
            "on the list": _yes_no(row.get("chosen")),
            "done": _yes_no(row.get("done")),
            "reward": show_number(row.get("reward")),
            "next state": row.get("next_state"),
            "probability": show_percent(row.get("probability")),
            **({"cost": show_amount(row["cost"], "")} if "cost" in row else {}),
            f"decided ({config.timezone})": show_time(row["at"], config.timezone),
            "note": row.get("note"),
        }
        for row in rows
    ]
    title = f"{capitalize(config.words.person)} {person}"
    print_table(lines, ("date", "state", "next state", "note"), title=title, console=make_console())


def print_programs(rows: Sequence[Row], address: str, as_json: bool = False) -> None:
    """Print the programs of a store."""
    if as_json:
        print_json({"store": address, "programs": rows})
        return
    print_line(f"Store: {address}")
    names = ("name", "next list", "people", "rounds", "waiting", "policy", "template", "events", "error")
    lines = [
        {name: row.get(name) for name in names}
        | {
            "next list": "archived" if row.get("archived") else _show_due(row.get("due")),
            "created (UTC)": show_time(row.get("created")),
        }
        for row in rows
    ]
    print_table(
        lines, ("name", "next list", "template", "policy", "error"), empty="No programs yet.", console=make_console()
    )


def _show_due(due: DueRound | None) -> str:
    """When the next round is due."""
    return (
        UNKNOWN if due is None else f"{show_date(date.fromisoformat(due['due']))}, {due['when'].removeprefix('due ')}"
    )


def print_tokens(rows: Sequence[Row], as_json: bool = False) -> None:
    """Print the tokens of a store."""
    if as_json:
        print_json({"tokens": rows})
        return
    lines = [
        {
            "name": row["name"],
            "id": row["id"],
            "grants": ", ".join(f"{grant['program'] or 'all programs'}: {grant['role']}" for grant in row["grants"]),
            **{f"{name} (UTC)": show_time(row[name]) for name in ("made", "expires", "revoked", "invitation")},
            "signed in": row["sessions"] or "",
        }
        for row in rows
    ]
    print_table(lines, ("name", "grants"), empty="No tokens yet.", console=make_console())


def print_webhooks(rows: Sequence[Webhook], as_json: bool = False) -> None:
    """Print the webhooks of a program, each with its last message."""
    if as_json:
        print_json({"webhooks": rows})
        return
    lines = []
    for row in rows:
        last = row["deliveries"][0] if row["deliveries"] else None
        lines.append(
            {
                "id": row["id"],
                "url": row["url"] + ("" if row["enabled"] else " (disabled)"),
                "events": ", ".join(row["events"]),
                "pending": row["pending"],
                "failed": row["failed"],
                "last message": _describe_delivery(last) if last else "",
            }
        )
    print_table(lines, ("url", "events", "last message"), empty="No webhooks yet.", console=make_console())


def _describe_delivery(last: Delivery) -> str:
    about = f" of round {last['round']}" if last["round"] else ""
    result = f" ({last['result']})" if last["result"] else ""
    return f"{last['type']}{about}: {last['status']}{result}"


def print_templates(rows: Sequence[Row], as_json: bool = False) -> None:
    """Print templates one below the other."""
    if as_json:
        print_json(rows)
        return
    console = make_console()
    for row in rows:
        console.print(as_text(row["name"], style="bold") + as_text(f"  {row['title']}", style="not bold"))
        console.print(Padding(as_text(row["about"]), (0, 0, 0, 2)))
        defaults = f"{row['budget']} a {row['every']}; states, worst first, with their {row['reward_unit']}:"
        console.print(Padding(as_text(defaults), (0, 0, 0, 2)))
        for state, sign, reward in zip(row["states"], row["signs"], row["rewards"], strict=True):
            console.print(Padding(as_text(f"{state} ({reward:g}): {sign}", style="dim"), (0, 0, 0, 4)))
        console.print()


def sparkline(values: Sequence[float | None], low: float, high: float) -> str:
    """Bars between two ends, one for each value, a dot where it is not known.

    >>> sparkline([0.0, 0.5, None, 1.0], 0.0, 1.0)
    '▁▅·█'
    """
    scale = high - low if high > low else 1.0
    return "".join("·" if value is None else SPARKS[min(7, int((value - low) / scale * 8))] for value in values)


def _headline(status: Status, store: str) -> str:
    total = f" of {status['horizon']:,}" if status["horizon"] else ""
    decided = len(status["rounds"])
    rounds = "round" if decided == 1 and not total else "rounds"
    program = f"{status['name']}, {status['policy']}, {decided:,}{total} {rounds} decided"
    return f"{program}, {store}, restive {status['version']}"


def _describe_people(status: Status, words: Words) -> str:
    people, actions, used = status["people"], status["actions"], status["budget_used"]
    named = ((people["control"], "in the control group"), (people["new"], "new"), (people["left"], "left"))
    parts = [f"{number:,} {what}" for number, what in (*named, (people["erased"], "erased")) if number]
    unlisted = sum(row["unlisted"] for row in status["rounds"])
    more = f", and {unlisted:,} not on a list" if unlisted else ""
    share = "The last list is open" if used is None else f"{used:.0%} of the budget was used"
    spent = f" {share} ({actions - unlisted:,} done{more})." if actions else ""
    return f"{', '.join([count_people(people['active'], words), *parts])}.{spent}"


def _print_lift(console: Console, status: Status, words: Words) -> None:
    """Print whether the program works: sparklines, the lift, and the shadow policy."""
    lift, shadow = status["lift"], status["shadow"]
    sentences = [lift["sentence"], lift["explanation"], status["total"], status["caution"]] if lift else []
    if lines := [*_sparklines(status, words, console.width), *filter(None, sentences)]:
        console.print(as_text("\nDoes it work?" if sentences else "\nReward", style="bold"))
        console.print(as_text("\n".join(lines)))
    if shadow is not None:
        overlap = shadow["overlap"]
        common = "" if overlap is None else f" The lists have {overlap:.0%} of their people in common."
        console.print(as_text(f"\nShadow policy {status['shadow_policy'] or ''}".rstrip(), style="bold"))
        console.print(as_text(shadow["sentence"] + common))


def _sparklines(status: Status, words: Words, width: int) -> list[str]:
    """The mean rewards of both groups by round, on one scale; the last rounds if not all fit."""
    label = max(map(len, GROUPS.values()))
    rows = status["rounds"][-max(1, width - label - 20) :]
    sides = {shown: [row[name] for row in rows] for name, shown in GROUPS.items()}
    known = [value for side in sides.values() for value in side if value is not None]
    scale = status["reward_range"]
    if not known or len(rows) < 2 or scale is None:
        return []
    low, high = scale["low"], scale["high"]
    lines = [
        f"{shown:<{label}}  {sparkline(side, low, high)}  {show_number(last)}"
        for shown, side in sides.items()
        if (last := next((value for value in reversed(side) if value is not None), None)) is not None
    ]
    unit = capitalize(f"{words.reward_unit} per {words.person}")
    ends = f"{show_number(low)} to {show_number(high)}, the {describe_range(scale)}"
    began, now = (f"{tick_label(row['label'])} (round {row['round']})" for row in (rows[0], rows[-1]))
    span = f"from {began} to {now}, bars from {ends}"
    return [*lines, f"{unit}, {span}; the number is the last."]


def describe_range(scale: RewardRange) -> str:
    """What the scale of a chart of rewards spans."""
    return "range of the rewards reported so far" if scale["observed"] else "range of the rewards"


def _print_rounds(console: Console, status: Status, words: Words) -> None:
    rows = status["rounds"][-MAX_ROUNDS:]
    lines = [  # a narrow terminal drops the last columns first
        {
            "date": tick_label(row["label"]),
            "done": row["done"],
            "outcomes": f"{row['outcomes']:,}/{row['present']:,}",
            "on the list": row["advised"],
            "round": row["round"],
            "reward": show_number(row["reward_mean"]),
            "control": show_number(row["control_mean"]),
            "explored": row["explored"],
            "failed": row["failed"],
            **({"not listed": row["unlisted"]} if any(each["unlisted"] for each in rows) else {}),
            **({} if row["spent"] is None else {f"spent, {status['cost_unit']}": show_amount(row["spent"], "")}),
            "budget": row["budget"],
            f"decided ({status['timezone']})": show_time(row["at"], status["timezone"]),
        }
        for row in rows
    ]
    decided = len(status["rounds"])
    more = f"The last {len(rows)} of {decided:,} rounds. " if len(rows) < decided else ""
    means = f"Reward per {words.person} in the program, control per {words.person} in the control group"
    note = f"{more}{means}, in {words.reward_unit}."
    print_table(lines, ("date",), title="\nRounds", note=note, console=console)


def _print_effects(console: Console, status: Status, words: Words) -> None:
    lines = [
        {
            "state": each["state"],
            f"after {words.action}": each["acted"],
            "without": each["waited"],
            "mean": shown[0] if shown else UNKNOWN,
            "95% interval": f"{shown[1]} to {shown[2]}" if shown else UNKNOWN,
            "spread over people": UNKNOWN if each["spread"] is None else rounded(each["spread"])[0],
            "": f"{each['knowledge']}: {each['note']}" if each["note"] else "",
        }
        for each in status["effects"]
        for shown in [show_estimate(each["mean"], each["low"], each["high"])]
    ]
    of = "" if status["effects_of"] is None else f" Estimated from {status['effects_of']:,} {words.people}."
    note = f"Outcomes after {words.action} and without, and the mean over all that were done in the state.{of}"
    print_table(lines, ("state", ""), title=f"\n{describe_effect(words)}", note=note, console=console)


def _yes_no(value: object) -> str:
    return UNKNOWN if value is None else "yes" if value else "no"
