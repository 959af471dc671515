"""Programs whose processes are killed at any moment: what was acknowledged is there, once, and replay proves it all.

A few kills of each kind; `tests/reliability.py` has thousands.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desk.kills import check_images, check_kills, check_server_kills
from desk.postgres import Postgres
from desk.survivor import FAILED
from desk.write_ahead_log import Files, Position, cut_power, find_position, read_files
from restive.desk import Desk


@pytest.mark.parametrize(("players", "kills"), [(1, 4), (2, 2)])
def test_what_a_program_acknowledged_survives_kills(address: str, players: int, kills: int) -> None:
    total = check_kills(address, kills, players, seed=players)
    assert total["decide"] > kills / 2  # else they were killed before they did anything


@pytest.fixture
def durable() -> Iterator[Postgres]:
    """A server that may be killed, and writes to the disk before it says so."""
    server = Postgres(fsync=True)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.soak)])
def test_what_a_program_acknowledged_survives_kills_of_the_server_under_load(durable: Postgres, kills: int) -> None:
    total = check_server_kills(durable, kills, seed=4)
    assert total["acknowledged"] > kills
    assert total[FAILED] >= 1 or kills < 20


def test_what_a_program_acknowledged_is_in_files_left_by_a_power_cut(tmp_path: Path) -> None:
    total = check_images(tmp_path, 5, seed=1)
    assert total["acknowledged"] >= 5


def test_a_power_cut_spoils_the_log_only_after_its_last_acknowledged_commit(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Desk(path) as desk:
        desk.create("one", states=["low", "high"])
        position = find_position(path)
        desk.create("two", states=["low", "high"])
        now = read_files(path)
    assert position is not None
    end = find_position(path)  # the log is gone with the last connection
    assert end is None
    kept = 32 + position.frames * (24 + 4096)
    made = [cut_power(now, now.database, position, np.random.default_rng(seed)) for seed in range(40)]
    assert {files.log[:kept] for files in made} == {now.log[:kept]}
    assert len({files.log[kept:] for files in made}) > 10
    other = cut_power(now, b"", Position(b"12345678", 5), np.random.default_rng(2))
    assert (other.log[:32], other.database) != (now.log[:32], now.database) or other.log != now.log
    assert cut_power(Files(b"x", b""), b"", position, np.random.default_rng(1)) == Files(b"x", b"")
