"""Results of a program on a terminal: states by round, groups, who was never reached, and the report."""

from collections.abc import Sequence

from restive.api.results import GroupResult, Report, Results, Unreached
from restive.console import as_text, make_console, print_line, print_table
from restive.desk.config import Words
from restive.desk.explanations import capitalize, count_people, show_estimate
from restive.desk.schedule import tick_label
from restive.formats import UNKNOWN, show_percent

MAX_ROUNDS, MAX_PEOPLE = 12, 50


def print_results(found: Results) -> None:
    """Print who is in which state, the groups and how many people were reached."""
    console, words = make_console(), Words(**found["words"])
    rows = found["rounds"][-MAX_ROUNDS:]
    lines = [
        {
            "round": each["round"],
            "date": tick_label(each["label"]),
            "": side,
            **{
                state: reported + carried
                for state, reported, carried in zip(
                    found["states"], each[side]["reported"], each[side]["carried_over"], strict=True
                )
            },
            "(carried over)": sum(each[side]["carried_over"]),
            "(unknown)": each[side]["unknown"],
        }
        for each in rows
        for side in ("program", "control")
    ]
    note = f"The last {len(rows)} of {len(found['rounds']):,} rounds." if len(rows) < len(found["rounds"]) else ""
    people = capitalize(words.people)
    print_table(lines, ("date", ""), title=f"{people} by state", note=note, empty="No rounds yet.", console=console)
    if found["groups"]:
        note = found["groups_note"]
        print_table(
            [_show_group(each) for each in found["groups"]],
            ("group", " "),
            title="\nGroups",
            note=note,
            console=console,
        )
    reach = found["reach"]
    console.print(as_text("\nWho was reached", style="bold"))
    print_line(
        f"{reach['reached']:,} of {count_people(reach['people'], words)} in the program; {reach['never_listed']:,} were never on a "
        f"list, {reach['never_done']:,} were on one, but it was not done or not reported, {reach['never_eligible']:,} were kept off "
        f"by a rule; {reach['control']:,} are in the control group."
    )


def _show_group(each: GroupResult) -> dict[str, object]:
    shown = show_estimate(each["mean"], each["low"], each["high"])
    return {
        "group": each["group"] or "(none)",
        "people": each["people"],
        "share": show_percent(each["share_of_people"]),
        "of the lists": show_percent(each["share_of_places"]),
        "minimum": show_percent(each["minimum_share"]) if each["minimum_share"] else UNKNOWN,
        "of the actions": show_percent(each["share_of_actions"]),
        "lift": shown[0] if shown else "not known",
        "interval": f"{shown[1]} to {shown[2]}" if shown else UNKNOWN,
        " ": each["note"],
    }


def print_unreached(rows: Sequence[Unreached], words: Words) -> None:
    """Print the people who were never reached; not all if they are many."""
    lines = [
        {
            "id": row["agent"],
            "group": row["group"] or "",
            "state": row["state"] or "",
            "": row["reach"],
            "rounds": row["rounds"],
            "why": row["why"],
        }
        for row in rows[:MAX_PEOPLE]
    ]
    more = f"The first {MAX_PEOPLE} of {len(rows):,}; `restive desk table NAME unreached --out FILE.xlsx` writes all."
    note = more if len(rows) > MAX_PEOPLE else ""
    title = f"{capitalize(words.people)} never reached"
    texts = ("id", "group", "state", "", "why")
    print_table(lines, texts, title=title, note=note, empty="Everybody was reached.", console=make_console())


def print_report(report: Report) -> None:
    """Print the report as text."""
    console = make_console()
    console.print(as_text(report["title"], style="bold"))
    console.print(as_text(f"{report['period']}\n{report['verdict']}"))
    for section in report["sections"]:
        console.print(as_text(f"\n{section['heading']}", style="bold"))
        console.print(as_text("\n".join(section["sentences"])))
    console.print(as_text(f"\n{report['source']}"))
