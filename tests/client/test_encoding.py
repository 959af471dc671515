"""Tables on their way: what goes as JSON, what as Parquet, what as the file it is, and what is refused."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from restive.client.encoding import CSV, EXCEL, MAX_JSON_ROWS, OUTCOMES, PARQUET, STATES, encode_table, list_agents
from restive.errors import InputError


def said(given: object, **rest: Any) -> Any:
    """What a body of JSON says."""
    body, query = encode_table(given, "states", STATES, rest)
    assert (body.media_type, query) == ("application/json", {})
    return json.loads(body.content)


@pytest.mark.parametrize(
    "given",
    [
        {"ann": "low", "ben": "high"},
        [{"agent": "ann", "state": "low"}, {"agent": "ben", "state": "high"}],
        {"agent": ["ann", "ben"], "state": ["low", "high"]},
        pl.DataFrame({"agent": ["ann", "ben"], "state": ["low", "high"]}),
        pl.LazyFrame({"agent": ["ann", "ben"], "state": ["low", "high"]}),
    ],
    ids=["by agent", "rows", "columns", "frame", "lazy frame"],
)
def test_a_plain_table_is_sent_as_json_columns(given: object) -> None:
    assert said(given) == {"states": {"agent": ["ann", "ben"], "state": ["low", "high"]}}


def test_settings_are_sent_with_the_table() -> None:
    table = {"ann": ("low", "north"), "ben": ("high", None)}
    rest = {"budget": 0, "must": ["ann"], "never": None, "again": None, "dry_run": True}
    columns = {"agent": ["ann", "ben"], "state": ["low", "high"], "group": ["north", None]}
    assert said(table, **rest) == {"states": columns, "budget": 0, "must": ["ann"], "dry_run": True}
    assert said(None, **rest) == {"budget": 0, "must": ["ann"], "dry_run": True}


def as_parquet(given: object, columns: Any = OUTCOMES) -> pl.DataFrame:
    """What a body of Parquet says; the rest went into the address."""
    body, query = encode_table(given, "outcomes", columns, {"round": 3, "correct": None})
    assert (body.media_type, query) == (PARQUET, {"round": 3})
    return pl.read_parquet(BytesIO(body.content))


def test_a_table_that_json_cannot_express_is_sent_as_parquet() -> None:
    words = [{"agent": "ann", "done": "yes"}]
    assert as_parquet(words).to_dicts() == words
    more = [{"agent": "ann", "done": True, "called by": "ben"}]
    assert as_parquet(more).to_dicts() == more
    nothing = as_parquet(pl.DataFrame({"agent": ["ann"], "reward": [float("nan")]}))
    assert nothing["reward"].is_nan().all()


def test_a_long_table_is_sent_as_parquet() -> None:
    agents = [str(n) for n in range(MAX_JSON_ROWS + 1)]
    table = {"agent": agents, "done": [True] * len(agents)}
    assert as_parquet(table).to_dict(as_series=False) == table
    body, _ = encode_table({"agent": agents[1:], "done": [True] * MAX_JSON_ROWS}, "outcomes", OUTCOMES, {})
    assert body.media_type == "application/json"


def test_json_keeps_types() -> None:
    rows: list[dict[str, Any]] = [
        {"agent": 7, "done": True, "next_state": 1, "reward": 0.5, "round": 2},
        {"agent": 8, "done": None, "next_state": None, "reward": None, "round": None},
    ]
    body, _ = encode_table(rows, "outcomes", OUTCOMES, {})
    columns = json.loads(body.content)["outcomes"]
    assert columns == {name: [row[name] for row in rows] for name in rows[0]}


class Pandas:
    """What a frame of pandas has of it: columns that are found by name."""

    def __init__(self, **cells: list[object]) -> None:
        self.columns, self._cells = list(cells), cells

    def __getitem__(self, name: str) -> list[object]:
        return self._cells[name]


def test_a_pandas_frame_is_accepted() -> None:
    frame = Pandas(agent=["ann"], state=["low"])
    assert said(frame) == {"states": {"agent": ["ann"], "state": ["low"]}}
    assert list_agents(frame) == ["ann"]


@pytest.mark.parametrize(
    ("name", "kind"), [("a.csv", CSV), ("a.TSV", CSV), ("a.txt", CSV), ("a.xlsx", EXCEL), ("a.parquet", PARQUET)]
)
def test_a_file_is_sent_as_it_is(tmp_path: Path, name: str, kind: str) -> None:
    content = b"\x00 whatever is in it"
    (tmp_path / name).write_bytes(content)
    for path in (tmp_path / name, str(tmp_path / name)):
        body, query = encode_table(path, "states", STATES, {"budget": 2, "must": ["ann"], "new": True, "round": None})
        assert (body.content, body.media_type) == (content, kind)
        assert query == {"budget": 2, "must": ["ann"], "new": True}


def test_what_is_not_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.pdf: a table is a \.csv, \.tsv, \.txt, \.xlsx or \.parquet file"):
        encode_table(tmp_path / "a.pdf", "states", STATES, {})
    with pytest.raises(FileNotFoundError):
        encode_table(tmp_path / "a.csv", "states", STATES, {})
    with pytest.raises(InputError, match="int is not a table"):
        encode_table(3, "states", STATES, {})
    with pytest.raises(InputError, match="The columns differ in length"):
        encode_table({"agent": ["ann"], "state": []}, "states", STATES, {})


def test_agents_are_accepted_in_any_form(tmp_path: Path) -> None:
    (tmp_path / "who.csv").write_text("agent\nann\n007\n")
    assert list_agents(None) is None
    assert list_agents([]) == []
    assert list_agents(("ann", 7)) == ["ann", "7"]
    assert list_agents(name for name in ("ann", "ben")) == ["ann", "ben"]
    assert list_agents(tmp_path / "who.csv") == ["ann", "007"]
    assert list_agents(str(tmp_path / "who.csv")) == ["ann", "007"]
    assert list_agents(pl.DataFrame({"agent": ["ann"]})) == ["ann"]
    assert list_agents(pl.Series(["ann"])) == ["ann"]
