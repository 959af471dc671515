"""Display columns: on every list, nowhere else, and gone with the person; the call list comes back as outcomes."""

import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from desk.postgres import Postgres
from desk.test_store import readable_text
from restive.desk import Desk, Program, TableError
from restive.desk.display import MAX_DISPLAY, RESERVED, phone_link
from restive.desk.export import agents_table, export
from restive.desk.recommendation import COLUMNS
from restive.desk.replay import replay
from restive.desk.store import Store
from restive.desk.table_files import read_table_file
from restive.errors import InputError

SETTINGS: dict[str, Any] = {
    "states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0.0, "display": ["Name", "Phone number"],
}  # fmt: skip
THREE: list[dict[str, Any]] = [
    {"agent": "p1", "state": "low", "NAME": "Ada\nLovelace", "phone-number": "+44 20 7946 0000", "shoe": 38},
    {"agent": "p2", "state": "low", "NAME": "Grace Hopper", "phone-number": None, "shoe": 39},
    {"agent": "p3", "state": "high", "NAME": "Zoë 张", "phone-number": "0170/123", "shoe": 40},
]
ADA = {"name": "Ada Lovelace", "phone_number": "+44 20 7946 0000"}


Create = Callable[..., Program]


@pytest.fixture
def create() -> Iterator[Create]:
    """Creates a program in a store, which is closed after the test."""
    with ExitStack() as opened:
        yield lambda address, **settings: opened.enter_context(Desk(str(address))).create(
            "calls", **{**SETTINGS, **settings}
        )


def test_the_latest_cells_are_on_every_list(create: Create, address: str) -> None:
    program = create(address)
    dry = program.decide(THREE, dry_run=True)
    assert {row["agent"]: row["display"] for row in dry.people()}["p1"] == ADA
    assert not program.store.display(program.id, [0, 1, 2])
    decided = program.decide(THREE)
    assert "ignored columns: shoe" in decided.notes
    assert decided.table.columns[:6] == ["round", "rank", "agent", "name", "phone_number", "group"]
    known = {row["agent"]: row["display"] for row in decided.as_json()["people"]}
    assert known["p1"] == ADA
    assert known["p3"] == {"name": "Zoë 张", "phone_number": "0170/123"}
    moved = [
        {"agent": "p1", "state": "low", "phone number": "112"},
        {"agent": "p3", "state": "low", "phone number": ""},
    ]
    notes = program.decide(moved).notes
    assert "no column for these display columns, which stay as they were: name" in notes
    with Desk(address) as desk:
        again = desk.program("calls")
        assert again.display([0, 1, 2]) == [
            {"name": "Ada Lovelace", "phone_number": "112"},
            {"name": "Grace Hopper", "phone_number": None},
            {"name": "Zoë 张", "phone_number": None},
        ]
        assert {row["agent"]: row["display"]["phone_number"] for row in again.recommendation(1).people()}["p1"] == "112"


def test_no_event_and_no_audit_entry_has_a_cell_and_decisions_replay(create: Create, address: str) -> None:
    program = create(address)
    plain = create(address.replace("store.db", "other.db"), display=[]) if address.endswith(".db") else None
    for _ in range(3):
        program.decide(THREE, again=True)
    assert replay(program).proven
    told = [str((event.header, event.columns, event.extra)) for event in program.log()]
    told += [str(entry) for entry in program.store.audit_log(program.id)]
    assert len(told) > 6
    assert not [text for text in told if "Lovelace" in text or "7946 0000" in text]
    if plain is not None:
        for _ in range(3):
            plain.decide(THREE, again=True)
        lists = [[made.recommendation(3).chosen, made.recommendation(3).reserve] for made in (program, plain)]
        assert lists[0] == lists[1]


def test_an_erased_person_has_no_cells_in_the_files_of_sqlite(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    program.decide(THREE)
    program.decide([{**THREE[0], "NAME": "Countess Ada"}])  # leaves the older cells behind
    assert b"Countess Ada" in readable_text(tmp_path)
    program.erase(["p1"])
    found = readable_text(tmp_path)
    assert [text in found for text in (b"Lovelace", b"Countess", b"7946 0000", b"Grace Hopper")] == [False] * 3 + [True]
    assert program.display([0]) == [{"name": None, "phone_number": None}]
    assert "Ada" not in str(program.recommendation(1).as_json())


def test_no_copy_of_a_row_that_moved_between_pages_outlives_the_erasure(tmp_path: Path) -> None:
    random, people = np.random.default_rng(7), 600
    with Store.open(tmp_path / "store.db") as store:
        with store.creating("one") as writer:
            writer.append("created", {})
            writer.add_names([f"p{number}" for number in range(people)])
        for round_ in range(4):
            some = np.arange(people) if round_ == 0 else random.permutation(people)[: people // 2]
            notes = ["x" * size for size in random.choice([5, 200, 900, 3000], some.size).tolist()]
            with store.writing(writer.program) as writer:
                writer.put_display(some, pl.DataFrame({"name": [f"<{number:06}>" for number in some], "notes": notes}))
        gone = random.permutation(people)[:300].tolist()
        with store.writing(writer.program) as writer:
            for number in gone:
                writer.erase_name(number)
        assert sorted(store.display(writer.program, np.arange(people))) == sorted({*range(people)} - {*gone})
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    found = {int(text) for text in re.findall(rb"<(\d{6})>", content)}
    assert (found & {*gone}, len(found)) == (set(), people - 300)


def test_an_erased_person_has_no_cells_in_the_tables_of_postgresql(create: Create, server: Postgres) -> None:
    database = server.new_database()
    program = create(server.address(database))
    program.decide(THREE)
    folder = server.data / "base" / str(server.execute(f"SELECT oid FROM pg_database WHERE datname = '{database}'"))
    server.execute("CHECKPOINT")
    assert b"Lovelace" in readable_text(folder)
    program.erase(["p1"])
    server.execute("CHECKPOINT")
    found = readable_text(folder)
    assert (b"Lovelace" in found, b"Grace Hopper" in found) == (False, True)
    assert server.execute("SELECT count(*) FROM display", database) == 2


def test_a_column_that_is_no_longer_declared_is_deleted(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    program.decide(THREE)
    assert program.change(display=["Village", "name"]).display == ("village", "name")
    assert program.display([0]) == [{"village": None, "name": "Ada Lovelace"}]
    found = readable_text(tmp_path)
    assert (b"7946 0000" in found, b"Lovelace" in found) == (False, True)
    assert replay(program).proven


def test_pseudonyms_and_display_columns_exclude_each_other(
    create: Create, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    sentence = "A program with pseudonyms has no display columns"
    with Desk(tmp_path / "store.db") as desk:
        with pytest.raises(InputError, match=sentence):
            desk.create("calls", pseudonyms=True, **SETTINGS)
        assert not (tmp_path / "keys").exists()
        hidden = desk.create("calls", pseudonyms=True, **{**SETTINGS, "display": []})
        with pytest.raises(InputError, match=sentence):
            hidden.change(display=["name"])
        hidden.decide(THREE)
    assert b"Lovelace" not in readable_text(tmp_path)


def test_an_export_has_display_columns_only_if_asked(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    program.decide(THREE)
    for display in (True, False):
        files = export(program, tmp_path / str(display), display=display)
        columns = pl.read_parquet(files[0]).columns
        assert ("name" in columns, "phone_number" in columns) == (display, display)
    assert pl.read_parquet(tmp_path / "True" / "agents.parquet")["name"][0] == "Ada Lovelace"
    assert b"Lovelace" not in readable_text(tmp_path / "False")


def test_a_long_cell_and_a_similar_header_are_faults_with_their_places(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    with pytest.raises(TableError) as caught:
        program.decide([{**THREE[0], "NAME": "x" * 501}])
    assert caught.value.faults[0][:2] == (1, "NAME")
    assert caught.value.faults[0].message.endswith("is longer than 500 characters")
    with pytest.raises(TableError, match="column phone_numbr: unknown column; did you mean 'phone_number'"):
        program.decide([{"agent": "p1", "state": "low", "phone_numbr": "1"}])


@pytest.mark.parametrize(
    ("display", "sentence"),
    [
        ("name", "display is 'name'; it must list headers, such as name"),
        (["State now"], "A display column is called 'State now'; it needs a name of its own"),
        (["a b", "A-b"], "A display column is called 'a b'"),
        ([" "], "A display column is called ' '"),
        (["age"], "age is a feature; a display column needs a name of its own"),
        ([f"c{n}" for n in range(MAX_DISPLAY + 1)], f"There are {MAX_DISPLAY + 1} display columns; at most"),
    ],
)
def test_display_columns_that_cannot_be_are_refused(
    create: Create, display: object, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        create(tmp_path / "store.db", display=display, features={"age": []})


def test_columns_of_lists_and_people_cannot_be_display_columns(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    assert {*COLUMNS, *agents_table(program).columns, *program.decide(THREE).call_list.columns} - RESERVED == {
        "name", "phone_number",
    }  # fmt: skip


@pytest.mark.parametrize(
    "header", ["phone", "Mobile", "tel", "tel_2", "phone_number", "cell", "home_telephone", "phone2"]
)
def test_headers_of_phone_numbers_are_recognised(header: str) -> None:
    assert phone_link(header.lower(), "0803 555 0101") == "tel:08035550101"


@pytest.mark.parametrize("header", ["telegram", "hotel", "name", "automobile", "cellar"])
def test_other_headers_are_not(header: str) -> None:
    assert phone_link(header, "0803 555 0101") is None


@pytest.mark.parametrize("cell", ["javascript:alert(1)", "12", "0803 555 0101 / 0803 555 0102", "", None, "tel:1234"])
def test_a_text_that_is_no_number_is_no_link(cell: str | None) -> None:
    assert phone_link("phone", cell) is None


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
@pytest.mark.parametrize("full", [False, True])
def test_a_list_that_is_filled_in_is_a_table_of_outcomes(
    create: Create, ending: str, full: bool, tmp_path: Path
) -> None:
    program = create(tmp_path / "store.db")
    decided, path = program.decide(THREE), tmp_path / f"list.{ending}"
    decided.write(path, full=full)
    table = read_table_file(path)
    if not full:
        columns = ["rank", "agent", "name", "phone_number", "state_now", "reason", "done", "next_state", "round"]
        assert table.columns == ["row", *columns]
        assert table["rank"].to_list() == ["1", "2", "reserve 1"]
    first, second = decided.chosen
    marks = {first: ("yes", "high"), second: ("not reached", "low")}
    filled = table.drop("row").with_columns(
        pl.col("agent").replace_strict({who: mark[place] for who, mark in marks.items()}, default=None).alias(name)
        for place, name in enumerate(("done", "next_state"))
    )
    filled.write_csv(tmp_path / "back.csv")
    assert program.learn(tmp_path / "back.csv").new == 2
    assert [program.history(who)[0]["done"] for who in (first, second)] == [True, False]


def test_the_call_list_in_excel_has_drop_downs_widths_text_and_a_frozen_header(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db", states=["low, or none", "high"])
    program.decide([{**row, "state": "high", "agent": f"00{n}"} for n, row in enumerate(THREE)]).write(
        tmp_path / "a.xlsx"
    )
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
        texts, styles = book.read("xl/sharedStrings.xml").decode(), book.read("xl/styles.xml").decode()
        assert 'name="choices"' in (workbook := book.read("xl/workbook.xml").decode())
    assert 'state="hidden"' in workbook
    assert f'name="{program.rounds[0].label}"' in workbook
    assert re.findall(r'sqref="(\w\d:\w\d)"><formula1>(.*?)</formula1>', sheet) == [
        ("G2:G4", "choices!$A$1:$A$3"), ("H2:H4", "choices!$B$1:$B$2"),
    ]  # fmt: skip
    assert all(f"<t>{text}</t>" in texts for text in ("yes", "no", "not reached", "low, or none", "high", "001"))
    assert 'state="frozen"' in sheet
    assert 'numFmtId="49"' in styles
    assert len(set(re.findall(r'<col min="\d+" max="\d+" width="([\d.]+)"', sheet))) > 3
    assert read_table_file(tmp_path / "a.xlsx")["agent"].sort().to_list() == ["000", "001", "002"]


def test_undoing_a_round_deletes_the_cells_of_those_who_joined_with_it(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    program.decide(THREE[:1])
    program.decide(THREE)
    program.undo()
    program.decide([{"agent": "p9", "state": "low"}])
    assert program.display([0, 1]) == [ADA, {"name": None, "phone_number": None}]


def test_a_display_column_can_have_another_header(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db", columns={"agent": "Customer", "phone_number": "Mobile"})
    program.decide([{"Customer": "p1", "state": "low", "name": "Ada Lovelace", "mobile": "+44 20 7946 0000"}])
    assert program.display([0]) == [ADA]
    assert program.decide([{"Customer": "p1", "state": "high", "Phone number": "112"}]).config.display
    assert program.display([0]) == [ADA | {"phone_number": "112"}]
    with pytest.raises(InputError, match="'phone_number' is not a column"):
        program.change(display=["name"])
    assert program.change(display=["name"], columns={"agent": "Customer"}).display == ("name",)


def test_a_deleted_program_leaves_no_cells(create: Create, tmp_path: Path) -> None:
    create(tmp_path / "store.db").decide(THREE)
    with Desk(tmp_path / "store.db") as desk:
        desk.create("other", **SETTINGS).decide([{"agent": "p1", "state": "low", "name": "Ben"}])
        desk.delete("calls", "calls")
        assert desk.program("other").display([0]) == [{"name": "Ben", "phone_number": None}]
    found = readable_text(tmp_path)
    assert (b"Lovelace" in found, b"Ben" in found) == (False, True)


def test_two_rows_about_a_person_with_different_cells_are_refused(create: Create, tmp_path: Path) -> None:
    program = create(tmp_path / "store.db")
    with pytest.raises(TableError, match="'p1' appears twice, also in row 1"):
        program.decide([THREE[0], {**THREE[0], "NAME": "Ben"}])
    assert "rows that repeat another one, merged with it: 1" in program.decide([THREE[0], THREE[0]]).notes
    assert program.display([0]) == [ADA]
