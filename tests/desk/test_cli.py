"""`restive desk` as a team calls it: the whole story, every format, and each wrong turn a sentence and exit code 2."""

import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from desk.test_desk import OWN
from desk.test_store import readable_text
from restive.cli import main
from restive.desk import Desk
from restive.desk.cli import desk as desk_verbs
from restive.desk.table_files import read_table_file, write_table_file

STATES = ["silent", "occasional", "regular", "frequent"]
PEOPLE = [f"00{n}" for n in range(10)]


class Ended:
    """What a call of the command came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def data(self) -> Any:
        """What was printed as JSON, all numbers finite."""
        assert self.code == 0, self.err

        def refuse(word: str) -> None:
            raise AssertionError(f"{word} in JSON")

        return json.loads(self.out, parse_constant=refuse)


Call = Callable[..., Ended]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The command in a folder of its own, with a store there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RESTIVE_STORE", "desk.db")
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *given, **named: str(tmp_path / "data"))
    monkeypatch.setattr(signal, "signal", lambda *given: None)  # an interruption of the tests is for pytest

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["restive", "desk", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return Ended(code if isinstance(code, int) else int(bool(code)), captured.out, captured.err)

    return run


def write_states(file: str, shift: int = 0, people: list[str] = PEOPLE) -> None:
    rows = [{"agent": name, "state": STATES[(n + shift) % 4], "group": "coast"} for n, name in enumerate(people)]
    write_table_file(pl.DataFrame(rows), Path(file))


def write_rows(file: str, *lines: str) -> None:
    Path(file).write_text("\n".join(lines) + "\n")


def mark(name: str = "shops", store: str = "desk.db") -> tuple[int, str, list[str | None]]:
    """What changes with anything that is recorded."""
    with Desk(store) as desk:
        program = desk.program(name)
        log = list(program.log())
        return len(log), log[-1].digest, desk.store.names(program.id).to_list()


@pytest.fixture
def shops(call: Call) -> Call:
    """A program with one round decided."""
    assert call("init", "shops", "--template", "pharmacy", "--budget", "3", "--control", "0", "--seed", "1").code == 0
    write_states("states.csv")
    assert call("decide", "shops", "--states", "states.csv", "--out", "list.csv").code == 0
    return call


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_the_story_of_a_team_in_each_format(ending: str, call: Call) -> None:
    made = call("init", "shops", "--template", "pharmacy", "--budget", "3", "--seed", "1", "--shadow", "egt")
    assert made.code == 0
    assert "States: silent, occasional, regular, frequent; rewards: 0, 1, 3, 8." in made.out
    assert "restive desk decide shops --states STATES.csv" in made.out
    for round_ in range(3):
        write_states(f"states.{ending}", round_)
        ended = call("decide", "shops", "--states", f"states.{ending}", "--out", f"list{round_}.{ending}")
        assert ended.code == 0, ended.err
        assert f"(round {round_ + 1}): 3 pharmacists to give a coupon to" in ended.out
        assert f"wrote list{round_}.{ending}" in ended.err
        listed = read_table_file(f"list{round_}.{ending}")
        assert listed["rank"].to_list()[:4] == ["1", "2", "3", "reserve 1"]
        assert set(listed["agent"]) <= set(PEOPLE)  # leading zeros and all
        write_states(f"came.{ending}", round_ + 1)
        taken = call("learn", "shops", "--outcomes", f"came.{ending}")
        assert (
            f"(round {round_ + 1}): 10 outcomes recorded, 0 corrected, 0 already known.\nNo outcomes are missing."
            in taken.out
        )
        assert "ignored columns: group" in taken.err
    status = call("status", "shops", "--figure", "new/status.png")
    assert (status.code, Path("new/status.png").read_bytes()[:4]) == (0, b"\x89PNG")
    for words in ("Pharmacy orders", "10 pharmacists", "Shadow policy egt", "What a coupon added"):
        assert words in status.out
    assert call("status", "shops", "--json").data["rounds"][2]["outcomes"] == 10
    proof = call("replay", "shops")
    assert (proof.code, "3 of 3 decisions come out the same, bit for bit." in proof.out) == (0, True)
    length, end, _ = mark()
    assert f"{length} events in an unbroken chain that ends in {end[:16]}." in proof.out
    reported = call("replay", "shops", "--json").data
    assert (reported["proven"], reported["end"]) == (True, end)
    assert call("export", "shops", "--out", "all").code == 0
    assert pl.read_parquet("all/records/*.parquet").height == 30
    listing = call("list", "--json").data
    assert listing["store"] == "desk.db"
    assert [(row["name"], row["people"], row["rounds"]) for row in listing["programs"]] == [("shops", 10, 3)]


def test_a_list_that_comes_back_with_what_was_done_is_a_table_of_outcomes(shops: Call) -> None:
    listed = read_table_file("list.csv").drop("row")
    ranks = listed["rank"].to_list()
    done = ["yes" if n == 0 else None if rank.startswith("reserve") else "no" for n, rank in enumerate(ranks)]
    write_table_file(listed.with_columns(pl.Series("done", done, dtype=pl.String)), Path("back.csv"))
    ended = shops("learn", "shops", "--outcomes", "back.csv")
    assert ended.code == 0, ended.err
    assert "(round 1): 3 outcomes recorded, 0 corrected" in ended.out
    assert "10 outcomes are still missing." in ended.out
    (line,) = shops("status", "shops", "--json").data["rounds"]
    assert (line["advised"], line["done"], line["failed"], line["outcomes"]) == (3, 1, 2, 0)


def test_display_columns_and_all_columns_of_a_list(call: Call) -> None:
    settings = ("--states", "low,high", "--rewards", "0,1", "--control", "0")
    made = call("init", "calls", *settings, "--display", "name", "--display", "Phone")
    assert "Display columns of lists: name, phone." in made.out
    write_rows("named.csv", "agent,state,NAME,phone", "a1,low,Ann Okafor,0803", "a2,low,Ben,")
    decided = call("decide", "calls", "--states", "named.csv", "--out", "call.xlsx")
    assert (decided.code, "Okafor" in decided.out) == (0, True)
    assert read_table_file("call.xlsx").columns[1:5] == ["rank", "agent", "name", "phone"]
    assert call("round", "calls", "1", "--out", "full.csv", "--full").code == 0
    assert {"name", "probability", "done"} <= set(read_table_file("full.csv").columns)
    for display in (True, False):
        assert call("export", "calls", "--out", f"out-{display}", *["--display"] * display).code == 0
        assert ("name" in pl.read_parquet(f"out-{display}/agents.parquet").columns) == display
    assert call("change", "calls", "--display", "", "--json").data["display"] == []
    assert call("round", "calls", "--json").data["people"][0]["display"] == {}


def test_outcomes_in_parts_late_again_and_corrected(shops: Call) -> None:
    write_rows("some.csv", "agent,next_state,done", "000,regular,yes", "001,silent,no")
    assert "2 outcomes recorded" in shops("learn", "shops", "--outcomes", "some.csv").out
    assert "0 outcomes recorded, 0 corrected, 2 already known" in shops("learn", "shops", "--outcomes", "some.csv").out
    write_states("states.csv", 2)
    assert shops("decide", "shops", "--states", "states.csv", "--no-states-are-outcomes").code == 0
    write_rows("late.csv", "agent,next_state,round", "002,regular,1", "002,silent,2")
    late = shops("learn", "shops", "--outcomes", "late.csv", "--json").data
    assert [label[:8] for label in late.pop("labels")] == ["Week of "] * 2
    assert late == {
        "rounds": [1, 2], "new": 2, "corrected": 0, "repeated": 0, "waiting": 16, "notes": [], "recorded": True,
    }  # fmt: skip
    write_rows("right.csv", "agent,next_state", "000,frequent")
    refused = shops("learn", "shops", "--outcomes", "right.csv", "--round", "1")
    assert refused.code == 2
    assert "right.csv, row 2, column agent: '000' already has another outcome in the week of " in refused.err
    assert "1 corrected" in shops("learn", "shops", "--outcomes", "right.csv", "--round", "1", "--correct").out
    write_rows("states1.csv", "agent,state", "000,frequent", "001,occasional")
    assert shops("correct", "shops", "--states", "states1.csv", "--round", "1").out.endswith(
        "(round 1): 1 states corrected.\n"
    )
    rows = shops("history", "shops", "000", "--json").data
    assert [(row["state"], row.get("next_state"), row.get("done")) for row in rows] == [
        ("frequent", "frequent", True), ("regular", None, None),
    ]  # fmt: skip
    assert "corrected" in shops("history", "shops", "000").out
    assert shops("replay", "shops").code == 0


DRY = {
    "init": ("init", "other", "--template", "loyalty"),
    "decide": ("decide", "shops", "--states", "more.csv", "--out", "never.csv"),
    "learn": ("learn", "shops", "--outcomes", "came.csv"),
    "correct": ("correct", "shops", "--states", "came.csv", "--round", "1"),
    "leave": ("leave", "shops", "--agents", "came.csv"),
    "erase": ("erase", "shops", "000"),
    "cancel": ("cancel", "shops", "1"),
}


def test_a_dry_run_says_that_it_is_one_and_records_nothing(shops: Call) -> None:
    write_states("more.csv", 1, [*PEOPLE, "new"])
    write_states("came.csv", 1)
    before = mark()
    for verb, words in DRY.items():
        ended = shops(*words, "--dry-run")
        assert ended.code == 0, ended.err
        assert "would be" in ended.out or "(dry run, nothing recorded)" in ended.out, verb
        assert mark() == before, verb
    assert not Path("never.csv").exists()
    assert [row["name"] for row in shops("list", "--json").data["programs"]] == ["shops"]


WRONG = {
    "no such program": (("status", "shop"), "has no program 'shop'; there are shops"),
    "no such file": (("decide", "shops", "--states", "nowhere.csv"), "nowhere.csv: No such file"),
    "no such ending": (("decide", "shops", "--states", "list.doc"), "cannot read files that end in '.doc'"),
    "no such ending to write": (("decide", "shops", "--out", "list.pdf"), "cannot write files that end in '.pdf'"),
    "a folder to write to": (("decide", "shops", "--again", "--out", "folder.csv"), "folder.csv"),
    "the same states": (("decide", "shops", "--states", "states.csv"), "from the same states"),
    "a round decided": (("decide", "shops", "--round", "1"), "(round 1) was decided on "),
    "a round far off": (("decide", "shops", "--round", "7"), "from 1 to 2"),
    "a budget below 0": (("decide", "shops", "--budget", "-1"), "budget is -1; it must be a whole number from 0"),
    "a budget of words": (("decide", "shops", "--budget", "few"), "Invalid value for '--budget'"),
    "an unknown person who must": (
        ("decide", "shops", "--must", "bad.csv"),
        "nobody: on the must list, but not in the",
    ),
    "outcomes of unknown people": (
        ("learn", "shops", "--outcomes", "bad.csv"),
        "bad.csv, row 2, column agent: 'nobody' is",
    ),
    "no outcomes": (("learn", "shops"), "Missing option '--outcomes'"),
    "outcomes of no round": (("learn", "shops", "--outcomes", "bad.csv", "--round", "9"), "from 1 to 1"),
    "states of unknown people": (("correct", "shops", "--states", "bad.csv", "--round", "1"), "'nobody' took no part"),
    "no history": (("history", "shops", "nobody"), "'nobody' is not in the program shops"),
    "no such round": (("round", "shops", "5"), "round is 5; it must be a whole number from 1 to 1"),
    "an unknown person to erase": (
        ("erase", "shops", "nobody", "--yes"),
        "nobody: not in the program shops.",
    ),
    "an unknown person who leaves": (("leave", "shops", "--agents", "bad.csv"), "nobody: not in the program shops"),
    "Nothing to change": (("change", "shops"), "Nothing to change"),
    "a list over another": (("decide", "shops", "--again", "--out", "list.csv"), "list.csv already exists"),
    "a round over a list": (("round", "shops", "--out", "list.csv"), "or add --overwrite"),
    "an id without its zeros": (("decide", "shops", "--states", "bare.csv"), "(7 for 007). Nothing was recorded"),
    "an outcome without zeros": (("learn", "shops", "--outcomes", "bare.csv"), "(did you mean '007'?)"),
    "no round to cancel": (("cancel", "shops", "2"), "round is 2; it must be a whole number from 1 to 1"),
    "nothing to cancel": (("cancel", "shops"), "Missing argument 'number'"),
    "half a word": (("init", "new", "--template", "loyalty", "--word", "person"), "word is 'person'; write person="),
    "no such word": (("init", "new", "--template", "loyalty", "--word", "who=us"), "word is 'who=us'; write person="),
    "half a share": (("change", "shops", "--share", "coast"), "write GROUP=SHARE"),
    "shares above 1": (("change", "shops", "--share", "a=0.7", "--share", "b=0.6"), "add up to 1.3"),
    "a figure of no kind": (("status", "shops", "--figure", "x.doc"), "x.doc"),
    "an export onto a file": (("export", "shops", "--out", "list.csv"), "an export needs a folder"),
    "a name taken": (("init", "shops", "--template", "loyalty"), "already has a program 'shops'"),
    "a bad name": (("init", "my shops", "--template", "loyalty"), "The program's name is 'my shops'"),
    "a bad template": (("init", "new", "--template", "farmacy"), "did you mean 'pharmacy'?"),
    "no states": (("init", "new"), "a program needs states"),
    "one state": (("init", "new", "--states", "low"), "give 2 to 1000 different names"),
    "rewards of words": (("init", "new", "--states", "a,b", "--rewards", "few,many"), "give a number for each state"),
    "a bad policy": (("init", "new", "--template", "loyalty", "--policy", "magic"), "there is no policy 'magic'"),
    "an oracle": (("init", "new", "--template", "loyalty", "--policy", "whittle-oracle"), "use a learner"),
    "no control": (
        ("init", "new", "--template", "loyalty", "--control", "0", "--control-until", "4"),
        "needs a control",
    ),
    "all in control": (("init", "new", "--template", "loyalty", "--control", "1"), "from 0 to below 1"),
    "no store": (("status", "shops", "--store", "nowhere.db"), "nowhere.db: there is no store yet"),
    "no folder": (("init", "new", "--template", "loyalty", "--store", "no/where.db"), "There is no folder no"),
    "no such database": (("list", "--store", "mysql://x"), "mysql:// is not known"),
    "no server": (("list", "--store", "postgresql://x:secret@127.0.0.1:1/y"), "no server answers there"),
    "a list as a store": (("list", "--store", "list.csv"), "list.csv: a store is a file that ends in .db, or an"),
    "a new list as a store": (
        ("init", "new", "--template", "loyalty", "--store", "new.csv"),
        "new.csv: a store is a file that ends in .db, or an address such as postgresql://user@host/name",
    ),
    "no database": (("list", "--store", "text.db"), "the file is no database"),
    "a dry name taken": (("init", "shops", "--template", "loyalty", "--dry-run"), "already has a program 'shops'"),
    "a dry list as a store": (
        ("init", "new", "--template", "loyalty", "--dry-run", "--store", "new.csv"),
        "a store is a file that ends in",
    ),
    "no dry folder": (
        ("init", "new", "--template", "loyalty", "--dry-run", "--store", "no/where.db"),
        "There is no folder no",
    ),
    "no dry server": (
        ("init", "new", "--template", "loyalty", "--dry-run", "--store", "postgresql://x@127.0.0.1:1/y"),
        "no server answers there",
    ),
    "nobody in the table": (("decide", "shops", "--states", "empty.csv"), "empty.csv: the table has no rows"),
    "another horizon": (("change", "shops", "--horizon", "9"), "No such option: --horizon"),
    "names in no file": (("round", "shops", "--names", "nowhere.csv"), "nowhere.csv: No such file"),
    "a demo of nobody": (("demo", "--agents", "0"), "agents is 0; it must be a whole number from 10"),
    "a demo of nothing": (("demo", "--template", "space"), "There is no template 'space'"),
}


def test_a_wrong_turn_is_one_sentence_and_nothing_is_recorded(shops: Call) -> None:
    write_rows("bad.csv", "agent,state", "nobody,silent")
    write_rows("bare.csv", "agent,state", "7,silent")
    write_rows("empty.csv", "agent,state")
    write_rows("text.db", "no database")
    Path("folder.csv").mkdir()
    before = mark()
    for what, (words, sentence) in WRONG.items():
        ended = shops(*words)
        assert (ended.code, ended.out) == (2, ""), what
        assert sentence in " ".join(ended.err.split()), what
        assert "Traceback" not in ended.err, what
        assert "secret" not in ended.err, what
        sentences = ended.err.splitlines()
        of_a_table = sentences[-1] == "Nothing was recorded."
        assert of_a_table is (", row 2, column " in sentences[0]), what
        assert ended.err.startswith("Usage:") or len(sentences) == 1 + of_a_table, what
        assert mark() == before, what
    assert [row["name"] for row in shops("list", "--json").data["programs"]] == ["shops"]
    assert not list(Path().glob("no*"))
    assert not Path("new.csv").exists()


def test_a_table_with_faults_ends_in_that_nothing_was_recorded(shops: Call) -> None:
    write_rows("bad.csv", "agent,state", "000,nowhere", "001,elsewhere")
    for words in (
        ("decide", "shops", "--states", "bad.csv"),
        ("learn", "shops", "--outcomes", "bad.csv"),
        ("correct", "shops", "--states", "bad.csv", "--round", "1"),
    ):
        ended = shops(*words)
        assert ended.code == 2
        assert ended.err.endswith("\nNothing was recorded.\n"), words
        assert ended.err.count("Nothing was recorded.") == 1
        assert len(ended.err.splitlines()) == 3
    assert "Nothing was recorded." not in shops("decide", "shops", "--budget", "-1").err


def test_a_list_that_was_a_mistake_is_cancelled_and_another_decided(shops: Call) -> None:
    ended = shops("cancel", "shops", "1")
    assert ended.out.endswith("(round 1) of shops is cancelled; its list had 3 people.\n")
    again = shops("decide", "shops", "--states", "states.csv", "--json").data
    assert (again["round"], again["exclusions"], again["notes"]) == (2, {}, [])  # nobody is cooling down
    refused = shops("cancel", "shops", "1")
    assert (refused.code, "(round 1) of shops is cancelled already" in refused.err) == (2, True)
    write_states("came.csv", 1)
    late = shops("learn", "shops", "--outcomes", "came.csv", "--round", "1")
    assert (late.code, "(round 1) was cancelled" in late.err) == (2, True)
    assert "(round 2): 10 outcomes recorded" in shops("learn", "shops", "--outcomes", "came.csv").out
    rows = shops("history", "shops", again["people"][0]["agent"], "--json").data
    assert ["cancelled" in row["note"] for row in rows] == [True, False]
    status = shops("status", "shops", "--json").data
    assert (status["budget_used"], status["actions"], status["waiting"]) == (1.0, 3, [])
    assert shops("replay", "shops").code == 0


def test_a_list_is_written_over_another_only_on_demand(shops: Call) -> None:
    write_states("states.csv", 1)
    Path("list.csv").write_text("filled in by hand")
    before = mark()
    for words in (("decide", "shops", "--states", "states.csv"), ("round", "shops")):
        ended = shops(*words, "--out", "list.csv")
        assert (ended.code, "list.csv already exists" in ended.err) == (2, True)
    assert (mark(), Path("list.csv").read_text()) == (before, "filled in by hand")
    assert shops("round", "shops", "--out", "list.csv", "--overwrite").code == 0
    assert read_table_file("list.csv")["round"].to_list()[0] == "1"
    assert shops("decide", "shops", "--states", "states.csv", "--out", "list.csv", "--overwrite").code == 0
    assert read_table_file("list.csv")["round"].to_list()[0] == "2"


def test_ids_that_look_like_known_ones_join_only_on_demand(shops: Call) -> None:
    write_rows("bare.csv", "agent,state", "7,silent")
    assert shops("decide", "shops", "--states", "bare.csv").code == 2
    ended = shops("decide", "shops", "--states", "bare.csv", "--new")
    assert (ended.code, "1 new pharmacist joined" in ended.err) == (0, True)
    assert mark()[2] == [*PEOPLE, "7"]


def test_people_who_took_no_part_are_named_and_ignored(shops: Call) -> None:
    write_states("states.csv", 1, [*PEOPLE, "new"])
    assert shops("decide", "shops", "--states", "states.csv", "--no-states-are-outcomes").code == 0
    write_rows("came.csv", "agent,next_state", "000,regular", "new,silent")
    ended = shops("learn", "shops", "--outcomes", "came.csv", "--round", "1")
    assert (ended.code, "(round 1): 1 outcomes recorded" in ended.out) == (0, True)
    assert ended.err == "restive: ignored, not in the round: 1 pharmacist (new)\n"


def test_a_team_speaks_of_its_people_as_it_likes(call: Call) -> None:
    words = ("--word", "person=patient", "--word", "people=patients", "--control", "0")
    assert call("init", "clinic", "--template", "pharmacy", *words).code == 0
    write_states("states.csv")
    ended = call("decide", "clinic", "--states", "states.csv")
    assert "10 new patients joined" in ended.err
    assert "10 patients to give a coupon to" in ended.out  # the other words are the template's
    assert "Pharmacy orders" not in call("status", "clinic").out


def test_a_dry_run_of_the_first_program_makes_no_store(call: Call) -> None:
    ended = call("init", "shops", "--template", "pharmacy", "--dry-run")
    assert (ended.code, ended.out.splitlines()[0]) == (0, "Program shops would be created.")
    assert not list(Path().iterdir())


def test_commands_that_are_suggested_find_the_same_store(call: Call) -> None:
    made = call("init", "shops", "--template", "pharmacy", "--store", "the team.db")
    first = "restive desk decide shops --states STATES.csv --out list.csv --store 'the team.db'"
    assert made.out.splitlines()[-1] == f"Next: {first}"
    (step, *_) = call("status", "shops", "--store", "the team.db", "--json").data["steps"]
    assert step.endswith(": restive desk decide shops --store 'the team.db' --states STATES.csv")
    write_states("STATES.csv")
    assert call(*shlex.split(first)[2:]).code == 0
    usual = call("init", "shops", "--template", "pharmacy")
    assert usual.out.endswith("Next: restive desk decide shops --states STATES.csv --out list.csv\n")


def test_a_round_beyond_the_horizon_is_decided_with_a_note(call: Call) -> None:
    assert call("init", "shops", "--template", "pharmacy", "--horizon", "1", "--control", "0").code == 0
    for round_, remark in enumerate((False, True)):
        write_states("states.csv", round_)
        ended = call("decide", "shops", "--states", "states.csv")
        assert ended.code == 0
        assert ("restive: round 2 is beyond the horizon of 1 rounds" in ended.err) is remark


def test_all_faults_of_a_file_are_reported_at_once_by_row_and_column(shops: Call) -> None:
    write_rows("bad.csv", "agent,state", "000,nowhere", "000,silent", ",silent", "001,9")
    write_rows(
        "worse.csv", "agent,done,next_state", "000,maybe,silent", "001,yes,nowhere", "001,yes,silent", "nobody,,silent"
    )
    before = mark()
    states, outcomes = (
        shops("decide", "shops", "--states", "bad.csv"),
        shops("learn", "shops", "--outcomes", "worse.csv"),
    )
    assert (states.code, outcomes.code) == (2, 2)
    for place in (
        "row 2, column state: 'nowhere'",
        "row 3, column agent: '000'",
        "row 4, column agent",
        "row 5, column",
    ):
        assert f"bad.csv, {place}" in states.err
    for place in (
        "row 2, column done: 'maybe'",
        "row 3, column next_state: 'nowhere'",
        "row 4, column agent: '001'",
        "row 5, column agent: 'nobody' is not in the program",
    ):
        assert f"worse.csv, {place}" in outcomes.err
    assert mark() == before


def test_the_same_states_are_another_round_only_on_demand(shops: Call) -> None:
    assert shops("decide", "shops", "--states", "states.csv", "--again", "--json").data["round"] == 2


def test_lists_as_data_have_finite_numbers_and_all_columns(shops: Call) -> None:
    record = shops("round", "shops", "--json").data
    assert (record["program"], record["round"], record["recorded"]) == ("shops", 1, True)
    assert [row["list"] for row in record["people"]] == ["chosen"] * 3 + ["reserve"] * 7
    assert all(0 <= row["probability"] <= 1 and row["reason"] for row in record["people"])
    assert [row["agent"] for row in record["people"]] == read_table_file("list.csv")["agent"].to_list()
    again = shops("round", "shops", "1", "--out", "again.csv")
    assert again.code == 0
    assert Path("again.csv").read_bytes() == Path("list.csv").read_bytes()
    assert [row["name"] for row in shops("templates", "--json").data] == sorted_templates()


def sorted_templates() -> list[str]:
    from restive.desk.config import TEMPLATES

    return list(TEMPLATES)


def test_must_never_budget_and_rules_are_reported(shops: Call) -> None:
    write_rows("must.csv", "agent", "009")
    write_rows("never.csv", "agent", "001", "nobody")
    write_states("states.csv", 1)
    words = ("--must", "must.csv", "--never", "never.csv", "--budget", "2", "--states", "states.csv")
    ended = shops("decide", "shops", *words)
    assert "(round 2): 2 pharmacists to give" in ended.out
    assert "1 by never list" in ended.out
    assert "On the must list." in " ".join(ended.out.split())
    assert "on the never list, but not in the program: 1 pharmacist (nobody)" in ended.err
    people = shops("round", "shops", "--json").data["people"]
    assert [row["agent"] for row in people if row["list"] == "must"] == ["009"]
    assert "001" not in [row["agent"] for row in people]


@pytest.mark.parametrize(
    ("budget", "listed"), [("0", "0 pharmacists"), ("1", "1 pharmacist"), ("1000", "7 pharmacists")]
)
def test_budgets_of_nothing_of_one_and_of_more_than_there_are(budget: str, listed: str, shops: Call) -> None:
    ended = shops("decide", "shops", "--budget", budget)  # three of the ten are cooling down
    assert (ended.code, f"(round 2): {listed} to give a coupon to" in ended.out) == (0, True)


def test_what_is_changed_is_said(shops: Call) -> None:
    ended = shops("change", "shops", "--budget", "5", "--cool-down", "4", "--share", "coast=0.25")
    assert "Budget: 5 a round." in ended.out
    assert "Cool-down: nobody twice in 4 rounds.\nMinimum shares of the list: coast 25%.\n" in ended.out
    config = shops("change", "shops", "--keep", "3", "--json").data
    assert (config["budget"], config["keep"], config["shares"]) == (5, 3, {"coast": 0.25})


def test_who_leaves_is_out_and_who_is_erased_is_forgotten(shops: Call, tmp_path: Path) -> None:
    write_rows("gone.csv", "agent", "000", "001")
    assert shops("leave", "shops", "--agents", "gone.csv").out == "2 removed from shops.\n"
    write_rows("name.csv", "agent,state", "Ada Lovelace,silent", "Grace Hopper,silent")
    assert shops("decide", "shops", "--states", "name.csv").code == 0
    write_rows("came.csv", "agent,next_state", "Ada Lovelace,frequent")
    assert shops("learn", "shops", "--outcomes", "came.csv", "--round", "2").code == 0
    for file in ("name.csv", "came.csv"):
        Path(file).unlink()
    before = shops("replay", "shops", "--json").data
    lift = shops("status", "shops", "--json").data["rounds"]
    assert b"Ada Lovelace" in readable_text(tmp_path)
    ended = shops("erase", "shops", "Ada Lovelace", "--yes")
    assert ended.out.startswith("1 erased from shops. Files that contain lists must be deleted by hand.")
    found = readable_text(tmp_path)
    assert (b"Ada Lovelace" in found, b"Grace Hopper" in found) == (False, True)
    after = shops("replay", "shops", "--json").data
    assert (after["proven"], after["rounds"], after["same"]) == (True, before["rounds"], before["same"])
    assert shops("status", "shops", "--json").data["rounds"] == lift
    assert shops("history", "shops", "Ada Lovelace").code == 2
    assert "(erased)" in shops("round", "shops", "2").out


def test_an_erasure_without_names_clears_what_earlier_ones_left(
    shops: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.desk.database.LOCK_TIMEOUT_SECONDS", 0)
    write_rows("name.csv", "agent,state", "Ada Lovelace,silent", "Grace Hopper,silent")
    assert shops("decide", "shops", "--states", "name.csv").code == 0
    Path("name.csv").unlink()
    with sqlite3.connect("desk.db") as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM events").fetchone()  # somebody reads and does not finish
        ended = shops("erase", "shops", "Ada Lovelace", "--yes")
        assert (ended.code, "to clear them, erase again, without any name" in ended.err) == (2, True)
        assert b"Ada Lovelace" in readable_text(tmp_path)
        length = mark()[0]
        assert shops("erase", "shops", "--dry-run").code == 0
        assert shops("erase", "shops").code == 2
    reader.close()
    again = shops("erase", "shops")  # nothing is asked: nobody is erased
    assert (again.code, again.out.startswith("0 erased from shops.")) == (0, True)
    found = readable_text(tmp_path)
    assert (b"Ada Lovelace" in found, b"Grace Hopper" in found) == (False, True)
    assert mark()[0] == length
    assert shops("history", "shops", "Ada Lovelace").code == 2


def test_an_erasure_is_asked_about_first(shops: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    before = mark()
    monkeypatch.setattr("typer.confirm", lambda question, abort: (_ for _ in ()).throw(SystemExit(1)))
    assert shops("erase", "shops", "000").code == 1
    assert mark() == before
    monkeypatch.setattr("typer.confirm", lambda question, abort: True)
    assert shops("erase", "shops", "000").code == 0
    assert mark()[2][0] is None


def test_pseudonyms_keep_names_out_of_the_store_and_in_the_list(call: Call, tmp_path: Path) -> None:
    ended = call("init", "quiet", "--states", "low,high", "--rewards", "0,1", "--control", "0", "--pseudonyms")
    (key,) = (tmp_path / "keys").iterdir()
    assert f"Names are stored as codes; keep a copy of their key: {key}" in ended.out
    write_rows("states.csv", "agent,state", "Ada Lovelace,low", "Grace Hopper,high")
    listed = call("decide", "quiet", "--states", "states.csv", "--json").data["people"]
    assert sorted(row["agent"] for row in listed) == ["Ada Lovelace", "Grace Hopper"]
    Path("states.csv").unlink()
    assert b"Lovelace" not in readable_text(tmp_path)
    shown = call("round", "quiet", "--json").data["people"]
    assert not {row["agent"] for row in shown} & {"Ada Lovelace", "Grace Hopper"}
    write_rows("names.csv", "agent", "Grace Hopper", "Ada Lovelace", "Nobody Else")
    named = call("round", "quiet", "--names", "names.csv", "--out", "names-list.csv", "--json").data["people"]
    assert [row["agent"] for row in named] == [row["agent"] for row in listed]
    assert read_table_file("names-list.csv")["agent"].to_list() == [row["agent"] for row in listed]
    for file in ("names.csv", "names-list.csv"):
        Path(file).unlink()
    assert b"Lovelace" not in readable_text(tmp_path)
    assert call("history", "quiet", "Ada Lovelace").code == 0
    assert call("erase", "quiet", "Ada Lovelace", "--yes").code == 0
    assert call("history", "quiet", "Ada Lovelace").code == 2
    key.rename(tmp_path / "moved.key")
    ended = call("round", "quiet")
    assert (ended.code, "the key of this program's pseudonyms is not there" in ended.err) == (2, True)
    assert call("status", "quiet").code == 0
    assert call("replay", "quiet").code == 0


def test_a_program_whose_policy_is_gone_does_not_hide_the_others(shops: Call, tmp_path: Path) -> None:
    Path("fair.py").write_text(OWN)
    assert shops("init", "own", "--states", "a,b", "--rewards", "0,1", "--policy", "fair.py:weight=2").code == 0
    Path("fair.py").unlink()
    rows = shops("list", "--json").data["programs"]
    assert [(row["name"], row["people"]) for row in rows] == [("shops", 10), ("own", None)]
    assert "fair.py: policy file not found" in rows[1]["error"]
    assert "shops" in shops("list").out
    assert shops("status", "own").code == 2


def test_a_list_that_cannot_be_written_is_recorded_and_says_how_to_get_it(
    shops: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("restive.desk.recommendation.write_table_file", fail)
        ended = shops("decide", "shops", "--again", "--out", "full.csv")
    assert ended.code == 2
    assert (
        "No space left on device. The round is recorded; to write its list: restive desk round shops 2 --out"
        in ended.err
    )
    assert shops("round", "shops", "2", "--out", "full.csv").code == 0
    assert read_table_file("full.csv").height == 7


def test_the_list_says_where_the_store_is_also_before_there_is_one(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RESTIVE_STORE")
    ended = call("list")
    assert ended.code == 0
    assert str(Path("data") / "desk.db") in ended.out
    assert call("list", "--json").data["programs"] == []
    assert not Path("data").exists()
    assert call("init", "shops", "--template", "pharmacy").code == 0
    assert Path("data/desk.db").exists()
    assert "shops" in call("list").out


def test_the_demo_is_the_same_each_time_and_leaves_nothing(call: Call) -> None:
    words = ("demo", "--agents", "30", "--rounds", "4", "--template", "e-learning")
    shown = call(*words)
    assert (shown.code, "(round 4)" in shown.out, "E-learning" in shown.out) == (0, True, True)
    assert "a temporary file" in " ".join(shown.out.split())
    assert "add --store FILE.db to keep it" in shown.err
    one, two = (call(*words, "--json").data for _ in range(2))
    for record in (one, two):
        record["store"] = ""
        for row in [*record["rounds"]]:
            row["at"] = ""
    assert one == two
    assert not list(Path().iterdir())
    assert one["steps"] == []
    kept = call(*words, "--store", "kept.db", "--figure", "demo.svg")
    assert (
        kept.code,
        "temporary" in kept.out,
        "restive desk learn demo --store kept.db" in " ".join(kept.out.split()),
    ) == (
        0,
        False,
        True,
    )
    assert Path("demo.svg").read_text().lstrip().startswith("<?xml")
    assert call("replay", "demo", "--store", "kept.db").code == 0


def test_a_tampered_log_is_reported_by_replay(shops: Call) -> None:
    with sqlite3.connect("desk.db") as connection:
        connection.execute("UPDATE events SET at = '2020-01-01T00:00:00.000000+00:00' WHERE number = 2")
    connection.close()
    ended = shops("replay", "shops")
    assert (ended.code, "Event 2 in the store desk.db is not as it was written" in ended.err) == (2, True)


def test_a_decision_that_comes_out_otherwise_is_reported_and_the_exit_code_says_so(call: Call) -> None:
    Path("fair.py").write_text(OWN)
    words = ("--states", "low,high", "--rewards", "0,1", "--policy", "fair.py", "--budget", "1", "--control", "0")
    assert call("init", "own", *words).code == 0
    write_rows("states.csv", "agent,state", "ann,low", "ben,high")
    write_rows("came.csv", "agent,next_state", "ann,low", "ben,low")
    for _ in range(2):
        assert call("decide", "own", "--states", "states.csv").code == 0
        assert call("learn", "own", "--outcomes", "came.csv").code == 0
    assert call("replay", "own").code == 0
    Path("fair.py").write_text(OWN.replace("-self.weight", "self.weight"))
    ended = call("replay", "own")
    assert ended.code == 1
    assert "Round 2 differs in " in ended.out
    reported = call("replay", "own", "--json")
    assert (reported.code, json.loads(reported.out)["proven"]) == (1, False)


@pytest.mark.soak
def test_of_two_commands_at_once_one_decides_and_the_other_is_reported(address: str, tmp_path: Path) -> None:
    with Desk(address) as desk:
        desk.create("one", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0)
    (tmp_path / "states.csv").write_text("agent,state\nann,low\nben,high\n")
    words = [
        sys.executable,
        "-m",
        "restive",
        "desk",
        "decide",
        "one",
        "--states",
        "states.csv",
        "--round",
        "1",
        "--json",
    ]
    environment = {**os.environ, "RESTIVE_STORE": address}
    both = [
        subprocess.Popen(
            words, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ends = [(*process.communicate(timeout=120), process.returncode) for process in both]
    assert sorted(code for _, _, code in ends) == [0, 2]
    reported = next(err for _, err, code in ends if code == 2)
    listed = json.loads(next(out for out, _, code in ends if code == 0))
    assert reported.startswith("restive: Round 1 (")
    with Desk(address) as desk:
        program = desk.program("one")
        assert len(program.rounds) == 1
        assert program.recommendation(1).chosen == [row["agent"] for row in listed["people"] if row["list"] == "chosen"]


LOOKS = {
    "status": ("status", "shops"),
    "round": ("round", "shops", "1", "--out", "again.csv"),
    "history": ("history", "shops", "000"),
    "list": ("list",),
    "templates": ("templates",),
    "replay": ("replay", "shops"),
    "export": ("export", "shops", "--out", "folder"),
    "demo": ("demo", "--agents", "10", "--rounds", "1"),
    "calendar": ("calendar", "shops", "--out", "due.ics"),
    "results": ("results", "shops"),
    "unreached": ("unreached", "shops"),
    "table": ("table", "shops", "groups", "--out", "groups.csv"),
    "report": ("report", "shops"),
    "backup": ("backup", "copy.db"),
    "verify": ("verify",),
}


VERBS = {
    "init", "decide", "learn", "withdraw", "correct", "undo", "leave", "erase", "cancel", "change", "archive", "restore", "delete",
    "migrate",
}  # fmt: skip


def test_every_verb_is_there() -> None:
    assert {each.name or each.callback.__name__ for each in desk_verbs.registered_commands if each.callback} == {
        *VERBS,
        *LOOKS,
    }


def test_verbs_that_show_record_nothing(shops: Call) -> None:
    before = mark()
    for verb, words in LOOKS.items():
        ended = shops(*words)
        assert ended.code == 0, (verb, ended.err)
        assert ended.out, verb
        assert mark() == before, verb


def test_templates_are_shown_with_budget_and_rewards(call: Call) -> None:
    reported = " ".join(call("templates").out.split())
    assert "20 a week; states, worst first, with their orders a week:" in reported
    assert "silent (0): " in reported
    assert "frequent (8): " in reported


def test_no_text_reaches_the_terminal_as_a_control_sequence(call: Call, tmp_path: Path) -> None:
    red = "\x1b[31m"
    store = ["--store", str(tmp_path / f"{red}.db")]
    own_words = [f"--word={word}={red}x" for word in ("person", "people", "action", "verb", "reward_unit")]
    states = tmp_path / f"{red}.csv"
    states.write_text(f"agent,state,{red}\nann,0,1\nben,1,1\n")
    calls = [
        ["init", "calls", "--template", "pharmacy", "--control", "0", *own_words],
        ["decide", "calls", "--states", str(states)],
        ["decide", "calls", "--must", f"{red}cem"],
        ["learn", "calls", "--outcomes", str(tmp_path / f"{red}missing.csv")],
        ["history", "calls", f"{red}ann"],
        ["history", "calls", "ann"],
        ["status", "calls"],
        ["audit", "calls"],
        ["token", "make", f"{red}ann"],
        ["token", "list"],
        ["list"],
    ]
    for words in calls:
        ended = call(*words, *store)
        for text in (ended.out, ended.err):
            assert not [letter for letter in text if not letter.isprintable() and letter != "\n"], (words, text)
