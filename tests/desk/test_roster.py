"""The roster: names in chunks, names and their numbers, pseudonyms."""

import hashlib
import hmac
import sys
import unicodedata
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desk.postgres import Postgres
from desk.test_store import readable_text
from restive.desk import Desk, Program
from restive.desk import roster as module
from restive.desk.export import export
from restive.desk.replay import replay
from restive.desk.roster import (
    ERASED,
    Names,
    Pseudonyms,
    as_names,
    find_key,
    join_names,
    keys_folder,
    make_key,
    normalize_name,
    normalize_names,
    split_names,
)
from restive.desk.status import get_status
from restive.errors import InputError, NotFound


@pytest.mark.parametrize("names", [["ann"], [None], ["ann", None], [None, "Zoë 🦉", None], ["a\u2028b", "c\x85d", " "]])
def test_names_come_back_at_their_places(names: list[str | None]) -> None:
    series = pl.Series("name", names, dtype=pl.String)
    assert split_names([join_names(series)]).to_list() == names
    assert split_names([join_names(series), join_names(series)]).to_list() == names * 2


def test_no_chunks_are_no_names() -> None:
    assert split_names([]).to_list() == []
    assert split_names([]).dtype == pl.String


@pytest.mark.parametrize("name", ["", "two\nlines", "nul\0", "tab\t", "del\x7f", None])
def test_names_that_a_roster_cannot_hold_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="Name 1 of those that join is empty or has a control character"):
        as_names(["fine", name, "fine"])
    assert as_names(["fine"]).to_list() == ["fine"]
    assert as_names([]).to_list() == []


def roster(*names: str | None) -> pl.Series:
    return pl.Series("name", names, dtype=pl.String)


def test_names_are_found_by_place_and_places_by_name() -> None:
    names = Names(roster("ann", None, "cem"))
    assert names.find(pl.Series(["cem", "ann", "dee", "cem"])).to_list() == [2, 0, None, 2]
    assert names.call(np.array([2, 1, 0])) == ["cem", ERASED, "ann"]
    assert names.call([]) == []
    assert len(names) == 3


def test_an_erased_place_is_found_by_no_name() -> None:
    names = Names(roster("ann", None, None))
    assert names.find(roster(ERASED, "", None)).to_list() == [None, None, None]


def test_new_names_are_found_after_the_last_also_when_some_were_looked_up_before() -> None:
    names = Names(roster("ann"))
    assert names.find(roster("ben")).to_list() == [None]
    names.add(roster("ben", "cem"))
    assert names.find(roster("cem", "ben", "ann")).to_list() == [2, 1, 0]
    assert names.call([0, 1, 2]) == ["ann", "ben", "cem"]


def test_names_differ_by_case_accents_and_leading_zeros() -> None:
    names = Names(roster("Ann", "ann", "änn", "7", "007"))
    assert names.find(roster("007", "7", "änn", "ann", "Ann", "ANN")).to_list() == [4, 3, 2, 1, 0, None]


SOME = st.lists(st.sampled_from(["a", "A", "b", "é", "7", "07", ""]), max_size=7)


@settings(max_examples=100, derandomize=True, deadline=None, database=None)
@given(SOME.map(lambda names: list(dict.fromkeys(names))), SOME, st.booleans())
def test_few_names_are_found_as_many_are(known: list[str], asked: list[str], same: bool) -> None:
    names, wanted = Names(roster(*(name or None for name in known))), roster(*(known if same else asked), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("restive.desk.roster.MAX_DICT_LOOKUPS", -1)
        by_join = Names(names.roster).find(wanted).to_list()
    assert names.find(wanted).to_list() == by_join


@pytest.mark.parametrize("few", [-1, 10])
def test_names_are_known_when_all_of_them_are_on_the_roster_letter_by_letter(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.desk.roster.MAX_DICT_LOOKUPS", few)
    names = Names(roster("ann", "ben"))
    assert names.knows(roster("ann", "ben"))
    assert names.knows(roster("ben")) is (few > 0)  # of many this would take too long to say
    for others in (roster("ann", "Ben"), roster("ann "), roster("ann", None), pl.Series([1, 2])):
        assert not names.knows(others)
    assert not Names(roster("ann", None)).knows(roster("ann", None))


def test_with_pseudonyms_the_roster_has_codes_and_people_hear_the_names_that_they_gave() -> None:
    key = Pseudonyms(b"not so secret")
    names = Names(roster(), key)
    inward = names.inward(roster("ann", "ben"))
    assert inward.to_list() == key.hide(["ann", "ben"])
    names.add(inward)
    assert names.roster.to_list() == key.hide(["ann", "ben"])
    assert names.call([1, 0]) == ["ben", "ann"]
    later = Names(names.roster, key)
    later.inward(roster("ben"))
    assert later.call([0, 1]) == [*key.hide(["ann"]), "ben"]


def test_nobody_yet_is_a_roster_too() -> None:
    names = Names(roster())
    assert names.find(roster("ann")).to_list() == [None]
    assert names.inward(roster("ann")).to_list() == ["ann"]


def test_names_are_alike_when_only_zeros_before_them_or_capitals_differ() -> None:
    names = Names(roster("007", "Ann", None, "Straße", "10"))
    asked = roster("7", "0007", "ANN", "1", "100", "70", "straße", "anna", "")
    assert names.find_alike(asked) == {"7": "007", "0007": "007", "ANN": "Ann", "straße": "Straße"}
    assert names.find_alike(roster("007", "Ann")) == {}  # who is known is like nobody else
    assert names.find_alike(roster()) == {}
    assert Names(roster()).find_alike(asked) == {}


def test_zeros_alone_are_alike_and_the_first_of_several_is_named() -> None:
    assert Names(roster("0")).find_alike(roster("000")) == {"000": "0"}
    assert Names(roster("7", "07")).find_alike(roster("007")) == {"007": "7"}


def test_with_pseudonyms_nothing_can_be_said_of_likeness() -> None:
    key = Pseudonyms(b"not so secret")
    names = Names(pl.Series("name", key.hide(["007"])), key)
    assert names.find_alike(roster("7")) == {}


PEOPLE = {"ann@example.org": "low", "ben@example.org": "high", "cem@example.org": "low"}


@pytest.fixture(autouse=True)
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RESTIVE_KEYS", str(tmp_path / "keys"))
    return tmp_path / "keys"


def make_program(desk: Desk) -> Program:
    return desk.create(
        "one", states=["low", "high"], rewards=[0, 1], budget=1, control=0.0, seed=1, pseudonyms=True
    )  # fmt: skip


def test_a_code_is_the_keyed_digest_of_the_name() -> None:
    expected = hmac.new(b"key", "Zoë".encode(), hashlib.sha256).hexdigest()[:32]
    assert Pseudonyms(b"key").hide(["Zoë"]) == [expected]
    assert Pseudonyms(b"another").hide(["Zoë"]) != [expected]


def test_a_key_is_found_by_its_fingerprint_and_only_its_owner_can_read_it(keys: Path) -> None:
    made, other = make_key(), make_key()
    file = keys / f"{made.fingerprint}.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert keys.stat().st_mode & 0o777 == 0o700
    assert find_key(made.fingerprint).hide(["ann"]) == made.hide(["ann"]) != other.hide(["ann"])
    assert made.fingerprint.encode() not in file.read_bytes()


def test_keys_are_beside_the_users_data_unless_reported_otherwise(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RESTIVE_KEYS")
    monkeypatch.setattr("platformdirs.user_data_dir", lambda *given, **named: str(tmp_path / "data"))
    assert keys_folder() == tmp_path / "data" / "keys"


def test_ids_are_never_in_the_store_and_lists_have_them_when_the_table_gave_them(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with Desk(folder / "desk.db") as desk:
        program = make_program(desk)
        recommendation = program.decide(PEOPLE, must=["ann@example.org"])
        assert recommendation.chosen == ["ann@example.org"]
        assert sorted(recommendation.reserve) == ["ben@example.org", "cem@example.org"]
        program.learn([{"agent": name, "next_state": "high"} for name in PEOPLE])
        program.cache.save(now=True)
        assert b"example.org" not in readable_text(folder)
        assert program.names.pseudonyms is not None
        code = program.names.pseudonyms.hide(["ann@example.org"])[0]
        assert code.encode() in readable_text(folder)
    with Desk(folder / "desk.db") as desk:
        later = desk.program("one")
        assert later.recommendation(1).chosen == [code]
        assert later.history("ann@example.org")[0]["chosen"]
        assert later.decide({"ann@example.org": "low"}, must=["ann@example.org"]).chosen == ["ann@example.org"]
        assert len(later.names) == 3
        export(later, tmp_path / "out")
        assert b"example.org" not in readable_text(tmp_path / "out")


def test_names_can_be_shown_again_by_who_has_them(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        listed = make_program(desk).decide(PEOPLE, budget=3).chosen
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.program("one")
        assert not set(program.recommendation(1).chosen) & set(PEOPLE)
        program.recognise(["ann@example.org", "nobody@example.org"])
        assert set(program.recommendation(1).chosen) & set(PEOPLE) == {"ann@example.org"}
        program.recognise(pl.DataFrame({"agent": list(PEOPLE)}))
        assert program.recommendation(1).chosen == listed
        assert program.store.length(program.id) == 3  # nothing is recorded by it
        plain = desk.create("plain", states=["low", "high"], control=0.0)
        plain.decide({"ann": "low"})
        plain.recognise(["ben"])
        assert plain.recommendation(1).chosen == ["ann"]


def test_names_of_strangers_and_erased_people_do_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_STRANGERS", 20)
    with Desk(tmp_path / "desk.db") as desk:
        program = make_program(desk)
        chosen = program.decide(PEOPLE, budget=3).chosen
        for number in range(100):
            with pytest.raises(NotFound):
                program.history(f"stranger{number}@example.org")
        assert len(program.names.given) <= len(PEOPLE) + 20
        assert program.recommendation(1).chosen == chosen
        program.erase([chosen[0]], dry_run=True)
        assert chosen[0] in program.names.given.values()
        program.erase([chosen[0]])
        assert chosen[0] not in program.names.given.values()
        assert program.recommendation(1).chosen == ["(erased)", *chosen[1:]]


def test_an_erased_code_is_nowhere_in_sqlite_and_the_name_finds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with Desk(folder / "desk.db") as desk:
        program = make_program(desk)
        program.decide(PEOPLE)
        assert program.names.pseudonyms is not None
        ann, ben = program.names.pseudonyms.hide(["ann@example.org", "ben@example.org"])
        assert program.erase(["ann@example.org"]) == 1
        found = readable_text(folder)
        assert ann.encode() not in found
        assert ben.encode() in found
        with pytest.raises(InputError, match=r"ann@example\.org' is not in the program"):
            program.history("ann@example.org")
        assert replay(program).proven


def test_an_erased_code_is_nowhere_in_postgresql(server: Postgres) -> None:
    database = server.new_database()
    folder = server.data / "base" / str(server.execute(f"SELECT oid FROM pg_database WHERE datname = '{database}'"))
    with Desk(server.address(database)) as desk:
        program = make_program(desk)
        program.decide(PEOPLE)
        assert program.names.pseudonyms is not None
        ann, ben = program.names.pseudonyms.hide(["ann@example.org", "ben@example.org"])
        server.execute("CHECKPOINT")
        assert ann.encode() in readable_text(folder)
        program.erase(["ann@example.org"])
        server.execute("CHECKPOINT")
        found = readable_text(folder)
        assert ann.encode() not in found
        assert ben.encode() in found


def test_without_the_key_names_are_refused_and_the_rest_still_works(tmp_path: Path, keys: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        make_program(desk).decide(PEOPLE)
    (file,) = keys.iterdir()
    file.rename(tmp_path / "copy.key")
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.program("one")
        for call in (
            lambda: program.decide(PEOPLE, again=True),
            lambda: program.recommendation(1),
            lambda: program.names,
        ):
            with pytest.raises(InputError, match=r"\.key: the key of this program's pseudonyms is not there; copy it"):
                call()
        assert replay(program).proven
        assert get_status(program)["people"]["active"] == 3
        assert len(program.rounds) == 1
        (tmp_path / "copy.key").rename(file)
        assert program.decide(PEOPLE, again=True).round == 2


def test_another_key_under_the_same_name_is_refused(tmp_path: Path, keys: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        make_program(desk).decide(PEOPLE)
    (file,) = keys.iterdir()
    file.write_bytes(bytes(32))
    with Desk(tmp_path / "desk.db") as desk, pytest.raises(InputError, match="not the key that this program was made"):
        desk.program("one").decide(PEOPLE)


CF = [chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) == "Cf"]


def test_every_format_character_is_removed_from_names() -> None:
    assert len(CF) > 150
    assert set(normalize_names(pl.Series([f"{letter}an{letter}n{letter}" for letter in CF]))) == {"ann"}


@pytest.mark.parametrize("name", ["می\u200cرود", "क्\u200dष", "ක්\u200dෂ", "ക്\u200d\u0d37"])
def test_joiners_between_letters_that_need_them_are_part_of_a_name(name: str) -> None:
    assert normalize_name(name) == name
    assert normalize_name(f"\u200c{name[:2]}\u200b{name[2:]}\u200d") == name
    assert normalize_name(name.replace("\u200c", "")) == name.replace("\u200c", "")


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("zoe\u0308", "zoë"),
        ("\u1112\u1161\u11ab", "\ud55c"),
        ("ann\u00a0lee", "ann lee"),
        ("\u3000ann\ufeff ", "ann"),
        ("a\ufe0f", "a"),
        ("\u3164", ""),
    ],
)
def test_names_are_composed_and_have_plain_blanks(given: str, name: str) -> None:
    assert normalize_name(given) == name


@given(st.text(max_size=20))
def test_a_normalized_name_stays_as_it_is(name: str) -> None:
    once = normalize_name(name)
    assert normalize_name(once) == once
