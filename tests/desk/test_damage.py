"""Damaged stores: whatever bytes or values are wrong, every verb works or ends with a sentence, and none with a traceback."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from restive.desk import Desk, Program
from restive.desk.database import metadata
from restive.desk.export import export
from restive.desk.replay import replay
from restive.desk.status import get_status, summarize
from restive.desk.tokens import find_principal, list_tokens, make_token
from restive.errors import InputError

PEOPLE = {f"p{number:02}": number % 2 for number in range(30)}
TABLES = [table for table in metadata.tables.values() if table.name != "display"]  # which has no rowid
FEW, MANY = range(30), range(30, 630)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with two programs, of which one has rounds, outcomes, a correction, an erased name and a snapshot."""
    path = tmp_path_factory.mktemp("whole") / "store.db"
    with Desk(path) as desk:
        desk.create("other", states=["low", "high"])
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], budget=4, shadow="wiql", seed=3)
        for number in (1, 2, 3):
            program.decide(PEOPLE if number < 3 else None)
            program.learn([{"agent": agent, "next_state": state} for agent, state in list(PEOPLE.items())[number:]])
        program.learn([{"agent": "p05", "next_state": 0}], round=2, correct=True)
        program.erase(["p07"])
        program.cache.save(now=True)
        program.decide(PEOPLE, again=True)
        make_token(desk.store, "nightly", {"one": "operator"})
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    return path


def flip_bytes(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 4, 64])):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)


def cut_off(path: Path, chance: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: chance.randrange(len(content))])


def clear_block(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    start = chance.randrange(len(content) // 512) * 512
    content[start : start + 512] = bytes(len(content[start : start + 512]))
    path.write_bytes(content)


def change_value(path: Path, chance: random.Random) -> None:
    """Another value, or one of another type, in one column of one row."""
    table = chance.choice(TABLES)
    column = chance.choice([column.name for column in table.columns])
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f'SELECT rowid, "{column}" FROM {table.name}').fetchall()
        if rows:
            row, value = chance.choice(rows)
            with suppress(sqlite3.IntegrityError):
                connection.execute(
                    f'UPDATE {table.name} SET "{column}" = ? WHERE rowid = ?', (spoil(value, chance), row)
                )


def spoil(value: Any, chance: random.Random) -> object:
    if isinstance(value, str | bytes) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        return value[:place] if chance.random() < 0.5 else value[place:]
    return chance.choice([b"\x00", "", "{", -1, 0, 7, 10**12, 0.5, "null", "[]"])


def delete_row(path: Path, chance: random.Random) -> None:
    table = chance.choice(TABLES).name
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = connection.execute(f"SELECT rowid FROM {table}").fetchall()
        if rows:
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", chance.choice(rows))


DAMAGE = (flip_bytes, cut_off, clear_block, change_value, change_value, delete_row)
VERBS: dict[str, Callable[[Program, Path], object]] = {
    "status": lambda program, _: get_status(program),
    "round": lambda program, _: program.recommendation(2).table,
    "history": lambda program, _: program.history("p03"),
    "replay": lambda program, _: replay(program).proven,
    "audit log": lambda program, _: program.store.audit_log(program.id),
    "export": lambda program, folder: export(program, folder),
    "decide": lambda program, _: program.decide(PEOPLE, again=True),
    "learn": lambda program, _: program.learn([{"agent": "p02", "next_state": 1}], round=1, correct=True),
    "correct": lambda program, _: program.correct_states({"p04": 1}, round=1),
    "leave": lambda program, _: program.leave(["p09"]),
    "erase": lambda program, _: program.erase(["p11"]),
}


def attempt(what: str, seed: int, verb: Callable[[], object]) -> None:
    """The verb works or is refused with a sentence."""
    sentence = "None."
    try:
        verb()
    except InputError as error:
        sentence = str(error)
    except Exception as error:
        error.add_note(f"{what}, damage {seed}")
        raise
    assert (sentence[-1], sentence.count("\n")) == (".", 0), (what, seed)


def use_verb(desk: Desk, verb: Callable[[Program, Path], object], folder: Path) -> None:
    verb(desk.program("one"), folder)


def check_damage(whole: Path, folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    damage = chance.choice(DAMAGE)
    path = Path(shutil.copy(whole, folder / f"{seed}.db"))
    damage(path, chance)
    what = damage.__name__

    def use() -> None:
        with Desk(path) as desk:
            attempt(f"{what}: list", seed, lambda: [summarize(program) for program in desk.programs()])
            attempt(
                f"{what}: tokens",
                seed,
                lambda: (list_tokens(desk.store), find_principal(desk.store, "rst_1_" + "x" * 43)),
            )
            for name, verb in VERBS.items():
                attempt(f"{what}: {name}", seed, partial(use_verb, desk, verb, folder / f"export{seed}"))

    attempt(f"{what}: open", seed, use)


def test_a_store_damaged_in_dozens_of_ways_never_ends_in_a_traceback(whole: Path, tmp_path: Path) -> None:
    for seed in FEW:
        check_damage(whole, tmp_path, seed)


@pytest.mark.soak
def test_a_store_damaged_in_hundreds_of_ways_never_ends_in_a_traceback(whole: Path, tmp_path: Path) -> None:
    for seed in MANY:
        check_damage(whole, tmp_path, seed)
