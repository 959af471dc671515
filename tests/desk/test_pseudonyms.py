"""Codes for names: the same name the same code, no name in the store, and nothing without the key."""

import hashlib
import hmac
from pathlib import Path

import polars as pl
import pytest

from desk.postgres import Postgres
from desk.test_store import readable_text
from restive.desk import Desk, Program
from restive.desk.export import export
from restive.desk.history import find_history
from restive.desk.pseudonyms import Pseudonyms, find_key, keys_folder, make_key
from restive.desk.replay import replay
from restive.desk.status import get_status
from restive.errors import InputError

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
        assert find_history(later, "ann@example.org")[0]["chosen"]
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
        assert program.store.length(program.id) == 4  # nothing is recorded by it
        plain = desk.create("plain", states=["low", "high"], control=0.0)
        plain.decide({"ann": "low"})
        plain.recognise(["ben"])
        assert plain.recommendation(1).chosen == ["ann"]


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
            find_history(program, "ann@example.org")
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
        assert get_status(program).people.active == 3
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
