"""Programs of many agents: what the benchmark plays comes out right, and at full size its figures are printed.

Times are printed and never asserted; memory, which does not depend on who else is at work, is.
"""

import importlib
import os
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import pytest

from desk.postgres import Postgres

ROOT = Path(__file__).parents[2]
LIMIT = 2.0  # GiB


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark of the desk."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.desk")


@pytest.mark.parametrize("shadow", ["", "egt"])
def test_rounds_of_many_agents_come_out_right(load: ModuleType, address: str, shadow: str) -> None:
    found = load.play(address, 20_000, 3, shadow)
    assert found["right"] == dict.fromkeys(("proven", "outcomes", "advised", "history", "list"), True)


def test_quick_rounds_from_frames_come_out_right(load: ModuleType, tmp_path: Path) -> None:
    assert load.quick_rounds(tmp_path / "store.db", 1000, 10)["proven"]


def show(kind: str, shadow: str, found: dict[str, Any]) -> None:
    what, waiting = f"{kind}, shadow {shadow or 'none'}, 1,000,000 agents", os.getloadavg()[0]
    print(
        f"\n{what}: slowest of ten rounds {max(found['rounds']):.2f} s, "
        f"median {median(found['rounds']):.2f} s, peak {found['peak']:.2f} GiB, opening {found['opening']:.2f} s, "
        f"history {found['history']:.3f} s, list of round 1 {found['list']:.3f} s (load of the machine {waiting:.1f})"
    )


@pytest.mark.soak
@pytest.mark.parametrize("shadow", ["", "egt"])
def test_a_million_agents_fit_on_sqlite(load: ModuleType, tmp_path: Path, shadow: str) -> None:
    found = load.play_elsewhere(str(tmp_path / "store.db"), 1_000_000, 10, shadow)
    show("SQLite", shadow, found)
    assert all(found["right"].values())
    assert found["peak"] < LIMIT


@pytest.mark.soak
@pytest.mark.parametrize("shadow", ["", "egt"])
def test_a_million_agents_fit_on_postgresql(load: ModuleType, shadow: str) -> None:
    server = Postgres(fsync=True)
    try:
        server.start()
        found = load.play_elsewhere(server.address(server.new_database()), 1_000_000, 10, shadow)
    finally:
        server.remove()
    show("PostgreSQL", shadow, found)
    assert all(found["right"].values())
    assert found["peak"] < LIMIT


@pytest.mark.soak
def test_five_hundred_rounds_of_a_thousand_agents(load: ModuleType, tmp_path: Path) -> None:
    found = load.play_elsewhere(str(tmp_path / "store.db"), 1000, 500, load.FRAMES)
    print(
        f"\nSQLite, 1,000 agents: {found['a_second']:.1f} whole durable rounds a second over 500, "
        f"slowest {found['slowest'] * 1000:.0f} ms (load of the machine {os.getloadavg()[0]:.1f})"
    )
    assert found["proven"]
