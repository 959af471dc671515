"""The peak memory of a real server: while it refuses small files that expand to very large tables, and sends long ones."""

import json
import sys
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import httpx
import polars as pl
import pytest

from restive.desk import Desk
from restive.desk.excel import excel_bytes
from restive.server.uploads import TABLE_TYPES
from server.conftest import SHOPS
from server.trials.served import Served

MAX_GROWTH_MIB = 400  # a text of 1 MiB in each of 2,000 rows would take 2,000 and more
MAX_ANSWER_BYTES = 1 << 20
LONG = "x" * (1 << 20)
EXCEL_LONG = "x" * 30_000
MEDIA_TYPES = {str(ending): media_type for media_type, ending in TABLE_TYPES.items()} | {"json": "application/json"}

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")


def make_parquet(column: str, text: str, rows: int, dtype: type[pl.DataType] = pl.String) -> bytes:
    """One long text in each row, which is stored once."""
    cells = {"agent": [f"a{row}" for row in range(rows)], "state": ["low"] * rows}
    frame = pl.DataFrame(cells | {column: [text] * rows}).with_columns(pl.col(column).cast(dtype))
    content = BytesIO()
    frame.write_parquet(content)
    return content.getvalue()


def make_excel() -> bytes:
    return excel_bytes(pl.DataFrame({"agent": [f"a{row}" for row in range(3000)], "state": [EXCEL_LONG] * 3000}), "x")


def make_csv(column: str) -> bytes:
    rows = (f"{row}{LONG},low" if column == "agent" else f"{row},{LONG}" for row in range(24))
    return "\n".join(["agent,state", *rows]).encode()


def make_json(column: str) -> bytes:
    rows = [{"agent": str(row), "state": "low", column: f"{row}{LONG}"} for row in range(12)]
    return json.dumps({"states": rows}).encode()


BODIES: dict[str, Callable[[], tuple[str, bytes]]] = {
    "parquet-agent-1000": lambda: ("parquet", make_parquet("agent", LONG, 1000)),
    "parquet-agent-2000": lambda: ("parquet", make_parquet("agent", LONG, 2000)),
    "parquet-state": lambda: ("parquet", make_parquet("state", LONG, 2000)),
    "parquet-group": lambda: ("parquet", make_parquet("group", LONG, 2000)),
    "parquet-categories": lambda: ("parquet", make_parquet("agent", LONG, 2000, pl.Categorical)),
    "parquet-shorter": lambda: ("parquet", make_parquet("agent", "x" * 9000, 200_000)),
    "excel": lambda: ("xlsx", make_excel()),
    "csv-agent": lambda: ("csv", make_csv("agent")),
    "csv-state": lambda: ("csv", make_csv("state")),
    "csv-header": lambda: ("csv", f"agent,state,{LONG * 24}\n1,low,2".encode()),
    "json-agent": lambda: ("json", make_json("agent")),
    "json-state": lambda: ("json", make_json("state")),
    "json-group": lambda: ("json", make_json("group")),
    "json-unknown": lambda: ("json", make_json(LONG)),
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    store = str(tmp_path_factory.mktemp("memory") / "store.db")
    with Desk(store) as desk:
        desk.create("shops", **SHOPS)
    with Served(store) as served:
        yield served


def read_mib(served: Served, field: str) -> int:
    """A figure of the server's process: VmRSS is its memory now, VmHWM the most since the last reset."""
    status = Path(f"/proc/{served.process.pid}/status").read_text()
    return next(int(line.split()[1]) >> 10 for line in status.splitlines() if line.startswith(f"{field}:"))


@pytest.mark.parametrize("name", BODIES)
def test_a_small_table_that_expands_does_not_fill_the_memory(served: Served, name: str) -> None:
    ending, content = BODIES[name]()
    Path(f"/proc/{served.process.pid}/clear_refs").write_text("5")  # resets VmHWM
    before = read_mib(served, "VmRSS")
    with httpx.Client(base_url=served.address, timeout=120) as client:
        headers = {"Content-Type": MEDIA_TYPES[ending]}
        answer = client.post("/api/v1/programs/shops/rounds", content=content, headers=headers)
        page = client.post("/programs/shops/states", files={"file": (f"monday.{ending}", content)})
    assert answer.status_code == 422, answer.text[:500]
    assert len(answer.content) < MAX_ANSWER_BYTES
    assert len(page.content) < MAX_ANSWER_BYTES
    assert page.status_code == 422, page.text[:500]
    assert read_mib(served, "VmHWM") - before < MAX_GROWTH_MIB


LONG_ANSWERS = (
    "tables/people.csv",
    "tables/people.parquet",
    "tables/unreached.csv",
    "rounds/1/list.csv",
    "rounds/1/list.parquet",
    "export.zip",
)
MAX_SENDING_MIB = 100  # with 300,000 people; the frame of such a table and its text would take some 250


@pytest.mark.soak
def test_a_long_answer_does_not_fill_the_memory(tmp_path: Path) -> None:
    with Desk(tmp_path / "store.db") as desk:
        program = desk.create("shops", **SHOPS | {"budget": 150_000, "display": ["name"]})
        numbers = range(300_000)
        program.decide(
            pl.DataFrame(
                {
                    "agent": [f"person-{n:08}" for n in numbers],
                    "state": ["low"] * len(numbers),
                    "name": [f"José {n}" for n in numbers],
                }
            )
        )
    with (
        Served(str(tmp_path / "store.db")) as served,
        httpx.Client(base_url=f"{served.address}/api/v1/programs/shops/", timeout=120) as client,
    ):
        client.get("rounds/1/list?limit=1").raise_for_status()  # which reads the round
        for path in LONG_ANSWERS:
            Path(f"/proc/{served.process.pid}/clear_refs").write_text("5")
            before, size = read_mib(served, "VmRSS"), 0
            with client.stream("GET", path) as answer:
                assert answer.status_code == 200
                for piece in answer.iter_raw():
                    size += len(piece)
            grown = read_mib(served, "VmHWM") - before
            print(f"{path}: {size / 2**20:.1f} MiB, {grown} MiB more memory")
            assert grown < MAX_SENDING_MIB
