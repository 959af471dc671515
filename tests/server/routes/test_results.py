from io import BytesIO

import polars as pl
import pytest

from restive.api.results import Report, Results, Unreached
from restive.api.types import DecidedRound, Page
from server.calling import Caller, as_rows


@pytest.fixture
def decided(caller: Caller) -> Caller:
    caller.post("rounds", {"states": as_rows()}, DecidedRound, 201)
    return caller


def test_results_and_report_are_those_of_the_desk(decided: Caller) -> None:
    results = decided.get("results", Results)
    counts = results["rounds"][0]["program"]["reported"], results["rounds"][0]["control"]["reported"]
    assert sum(map(sum, counts)) == len(as_rows())
    assert decided.get("report", Report)["name"] == results["name"]


def test_people_never_reached_come_in_pages(decided: Caller) -> None:
    whole = decided.get("unreached", Page[Unreached])["items"]
    assert len(whole) > 1
    first = decided.get("unreached?limit=1", Page[Unreached])
    assert first["items"] == whole[:1]
    assert first["next"] is not None
    assert decided.get(first["next"], Page[Unreached])["items"][0] == whole[1]


@pytest.mark.parametrize("table", ["rounds", "people", "states", "rewards", "groups", "effects", "unreached", "audit"])
def test_tables_are_files(decided: Caller, table: str) -> None:
    answer = decided.call("GET", f"tables/{table}.parquet")
    assert answer.status_code == 200
    assert f"-{table}.parquet" in answer.headers["content-disposition"]
    assert pl.read_parquet(BytesIO(answer.content)).width > 0


def test_an_unknown_table_is_refused(decided: Caller) -> None:
    decided.refused("GET", "tables/nothing.csv", 422)
    decided.refused("GET", "tables/rounds.doc", 404)
