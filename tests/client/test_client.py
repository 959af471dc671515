"""The client against a real server: the whole story of a program, safely asked twice, and every refusal a sentence."""

import hashlib
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from client.served import Served
from restive.client import APIError, Client, Program, Recommendation
from restive.client.transport import Transport
from restive.desk.table_files import read_table_file, write_table_file
from restive.desk.tokens import make_token, revoke_token
from restive.errors import InputError

STATES = {f"00{n}": ("low", "high")[n % 2] for n in range(8)}
URL = "https://no-such-host.invalid/hook"
PLAN: dict[str, Any] = {"states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0}


@pytest.fixture
def calls(client: Client, request: pytest.FixtureRequest) -> Program:
    """A program of the test's own."""
    return client.create(f"p{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}", **PLAN)


def outcomes(recommendation: Recommendation) -> list[dict[str, object]]:
    return [{"agent": agent, "done": agent in recommendation.chosen, "next_state": "high"} for agent in STATES]


def test_states_are_outcomes_of_the_round_before(calls: Program) -> None:
    calls.decide(STATES)
    states = dict.fromkeys(STATES, "high")
    checked = calls.decide(states, dry_run=True)
    decided = calls.decide(states)
    assert decided.results == checked.results
    assert decided.results is not None
    assert (decided.results["round"], decided.results["recorded"]) == (1, 8)
    assert calls.decide(STATES, states_are_outcomes=False).results is None
    assert not calls.change(states_are_outcomes=False)["states_are_outcomes"]


def test_a_budget_of_kilometres(client: Client) -> None:
    visits = client.create("visits-by-km", **PLAN | {"budget": 10, "cost_unit": "km"})
    costs = {"ann": 2, "ben": 4.5, "cem": 11, "dia": 3}
    with pytest.raises(APIError, match="The cost of 4 people is not known"):
        visits.decide(dict.fromkeys(costs, "low"))
    decided = visits.decide([{"agent": name, "state": "low", "cost": cost} for name, cost in costs.items()])
    assert (sorted(decided.chosen), decided.data["planned"]) == (["ann", "ben", "dia"], 9.5)
    visits.learn([{"agent": "ann", "done": True, "next_state": "high"}])
    assert visits.status()["rounds"][0]["spent"] == 2


def test_due_dates_as_a_calendar_file(calls: Program) -> None:
    calls.change(rhythm="week", first_due="2999-01-07")
    assert "DTSTART;VALUE=DATE:29990107\r\n" in calls.calendar()


def test_an_export_and_the_end_of_a_program(client: Client, calls: Program, tmp_path: Path) -> None:
    calls.decide(STATES)
    calls.export(tmp_path / "calls.zip")
    with zipfile.ZipFile(tmp_path / "calls.zip") as packed:
        assert f"{calls.name}/records/round-00001.parquet" in packed.namelist()
    with pytest.raises(InputError, match=r"an export is a \.zip file"):
        calls.export(tmp_path / "calls.csv")
    calls.archive(dry_run=True)
    calls.archive()
    with pytest.raises(APIError, match="is archived"):
        calls.change(title="Calls")
    calls.restore()
    assert calls.change(title="Calls")["title"] == "Calls"
    assert (
        calls.delete(calls.name, dry_run=True)
        == calls.delete(calls.name, key="k1")
        == calls.delete(calls.name, key="k1")
    )
    assert calls.name not in [program["name"] for program in client.programs()]


def test_the_story_of_a_user(client: Client, calls: Program, served: Served) -> None:
    made = client.invite("nora", {calls.name: "viewer"}, days=3)
    assert made["link"].startswith(f"{served.address}/join?code=rsi_")
    assert made["user"]["grants"] == [{"program": calls.name, "role": "viewer"}]
    assert client.invite_again("nora")["link"] != made["link"]
    assert client.change_user("nora", {None: "operator"})["grants"] == [{"program": None, "role": "operator"}]
    assert "nora" in [user["name"] for user in client.users()]
    assert client.revoke_user("nora")["revoked"] is not None
    assert "nora" not in [user["name"] for user in client.users()]


def test_the_story_of_a_webhook(calls: Program) -> None:
    made = calls.webhooks.add(URL)
    number = made["webhook"]["id"]
    assert made["secret"].startswith("whsec_")
    assert calls.webhooks.change(number, events=["round.decided"])["events"] == ["round.decided"]
    calls.decide(STATES)
    assert [each["type"] for each in next(iter(calls.webhooks))["deliveries"]] == ["round.decided"]
    assert calls.webhooks.test(number)["status"] == "failed"  # there is no such host
    assert calls.webhooks.remove(number, dry_run=True)["recorded"] is False
    assert calls.webhooks.remove(number)["recorded"] is True
    assert list(calls.webhooks) == []


def test_the_story_of_a_program(client: Client, calls: Program, tmp_path: Path) -> None:
    recommendation = calls.decide(STATES)
    assert (recommendation.round, len(recommendation.chosen), recommendation.recorded) == (1, 2, True)
    assert set(recommendation.chosen + recommendation.reserve) <= set(STATES)
    assert [row["agent"] for row in calls.get_list(1)] == recommendation.chosen + recommendation.reserve
    taken = calls.learn(outcomes(recommendation))
    assert (taken["rounds"], taken["new"], taken["waiting"], taken["recorded"]) == ([1], 8, 0, True)
    assert calls.correct_states({"000": "high"}, round=1) == 1
    second = calls.decide(budget=1, must=["003"], never=["004"])
    assert (second.round, second.chosen) == (2, ["003"])
    checked = calls.undo(dry_run=True)
    assert (checked["what"], checked["round"], checked["recorded"]) == ("decided", 2, False)
    assert calls.undo(checked["event"], key="oops") == checked | {"recorded": True}
    assert calls.undo(checked["event"], key="oops") == checked | {"recorded": True}
    assert calls.decide(budget=1, must=["003"], never=["004"]).round == 2
    assert calls.cancel(2) == 1
    assert calls.leave(["007"]) == 1
    assert calls.erase(["006"]) == 1
    assert calls.change(budget=5)["budget"] == 5
    assert calls.config["budget"] == 5
    rounds = list(calls.rounds())
    assert [(row["round"], row["cancelled"], row["outcomes"]) for row in rounds] == [(1, False, 8), (2, True, 0)]
    found = calls.get_round(1)
    assert found["decision"] is not None
    assert found["decision"]["budget"] == 2
    assert {row["agent"]: row["active"] for row in calls.people()} == {f"00{n}": n != 7 for n in (*range(6), 7)}
    assert [row["agent"] for row in calls.people(find="3")] == ["003"]
    assert [row["round"] for row in calls.history("003")] == [1, 2]
    kinds = [event["kind"] for event in calls.events()]
    assert kinds[0] == "created"
    assert [event["kind"] for event in calls.events(after=2)] == kinds[2:]
    verbs = [entry["verb"] for entry in calls.audit()]
    assert verbs[-1] == "created"
    assert verbs[0] == "changed"
    assert calls.status()["people"]["active"] == 6
    assert calls.results()["reach"]["people"] + calls.results()["reach"]["control"] == 6
    assert all(row["why"] for row in calls.unreached())
    assert calls.report()["title"]
    assert calls.about()["rounds"] == 2
    assert calls.name in [row["name"] for row in client.programs()]


def test_the_client_reads_the_token_the_templates_and_the_programs(served: Served, client: Client) -> None:
    assert client.health()["status"] == "ok"
    assert client.me()["grants"] == [{"program": None, "role": "admin"}]
    assert "pharmacy" in [template["name"] for template in client.templates()]
    assert "lagrange" in [policy["name"] for policy in client.policies()]
    assert [entry["verb"] for entry in client.audit()][-1] == "token made"
    assert served.secret not in f"{client!r}{client.program('x')!r}"


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
def test_files_are_uploaded_and_downloaded(calls: Program, tmp_path: Path, ending: str) -> None:
    states, listed = tmp_path / f"states.{ending}", tmp_path / f"list.{ending}"
    write_table_file(pl.DataFrame({"agent": list(STATES), "state": list(STATES.values())}), states)
    recommendation = calls.decide(states, must=["005"], never=["004"], budget=3)
    assert len(recommendation.chosen) == 3
    assert "005" in recommendation.chosen
    assert "004" not in recommendation.chosen + recommendation.reserve
    calls.download(1, listed)
    assert read_table_file(listed)["agent"].to_list() == recommendation.chosen + recommendation.reserve
    with pytest.raises(InputError, match="already exists"):
        calls.download(1, listed)
    calls.download(1, listed, overwrite=True, full=True)
    kinds = ["chosen", "chosen", "must", *["reserve"] * len(recommendation.reserve)]
    assert sorted(read_table_file(listed)["list"]) == kinds


def test_display_columns_are_declared_sent_and_read(calls: Program) -> None:
    assert calls.change(display=["name"])["display"] == ["name"]
    table = pl.DataFrame({"agent": list(STATES), "state": list(STATES.values()), "Name": [f"Ann {n}" for n in STATES]})
    recommendation = calls.decide(table)
    assert {row["agent"]: row["display"]["name"] for row in recommendation.people} == {
        row["agent"]: f"Ann {row['agent']}" for row in recommendation.people
    }
    assert next(calls.people(find="001"))["display"] == {"name": "Ann 001"}


def test_how_a_table_is_read_is_sent_with_it_and_remembered(calls: Program, tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        book.add_worksheet("Notes")
        sheet = book.add_worksheet("March")
        for row, cells in enumerate((["Customer", "Stage"], ["a", "aktiv"], ["b", "low"])):
            sheet.write_row(row, 0, cells)
    with pytest.raises(APIError) as refused:
        calls.decide(tmp_path / "book.xlsx#March")
    assert "did you mean 'Customer'?" in refused.value.message
    decided = calls.decide(
        f"{tmp_path}/book.xlsx#March", columns={"agent": "Customer", "state": "Stage"}, values={"aktiv": "high"}
    )
    assert "read the sheet March of Notes, March" in decided.notes
    assert calls.config["columns"] == {"agent": "Customer", "state": "Stage"}
    assert {row["agent"]: row["state"] for row in calls.people()} == {"a": "high", "b": "low"}
    frame = pl.DataFrame({"Customer": ["a", "b"], "days": [3, 60]})
    calls.decide(frame, cut_points={"column": "days", "at": [30], "more_is": "worse"})
    assert calls.config["cut_points"] == {"column": "days", "at": [30.0], "more_is": "worse"}
    rows = [{"agent": "a", "next_state": "Aktiv"}]
    assert calls.learn(rows, round=2, columns={"group": ""})["new"] == 1
    assert calls.change(columns={}, values={}, cut_points=None)["cut_points"] is None


def test_a_downloaded_list_is_sent_back_as_outcomes(calls: Program, tmp_path: Path) -> None:
    recommendation = calls.decide(STATES)
    calls.download(1, tmp_path / "list.csv")
    listed = (
        read_table_file(tmp_path / "list.csv").drop("row").with_columns(done=pl.lit("yes"), next_state=pl.lit("low"))
    )
    write_table_file(listed.filter(~pl.col("rank").str.starts_with("reserve")), tmp_path / "came.csv")
    assert calls.learn(tmp_path / "came.csv")["new"] == len(recommendation.chosen)


def test_a_list_is_only_written_to_a_table_file(calls: Program, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"list\.pdf: a list is a \.csv"):
        calls.download(1, tmp_path / "list.pdf")
    with pytest.raises(APIError) as caught:
        calls.download(1, tmp_path / "list.csv")
    assert caught.value.status == 404
    assert not list(tmp_path.iterdir())


def test_a_frame_with_words_for_booleans_is_sent_as_parquet(calls: Program) -> None:
    calls.decide(STATES)
    taken = calls.learn([{"agent": agent, "done": "yes", "next_state": "low"} for agent in STATES])
    assert taken["new"] == 8


def test_a_dry_run_records_nothing(calls: Program) -> None:
    recommendation = calls.decide(STATES, dry_run=True)
    assert not recommendation.recorded
    assert list(calls.rounds()) == []
    assert calls.decide(STATES).chosen == recommendation.chosen
    assert not calls.learn(outcomes(recommendation), dry_run=True)["recorded"]
    assert calls.correct_states({"000": "high"}, 1, dry_run=True) == 1
    assert calls.cancel(1, dry_run=True) == 2
    assert calls.leave(["001"], dry_run=True) == calls.erase(["001"], dry_run=True) == 1
    assert calls.get_round(1)["outcomes"] == 0
    assert calls.about()["people"] == 8


def test_the_same_key_is_executed_once(calls: Program) -> None:
    first = calls.decide(STATES, key="monday")
    assert calls.decide(STATES, key="monday") == first
    assert len(list(calls.rounds())) == 1
    with pytest.raises(APIError, match="key was used for another request") as caught:
        calls.decide(STATES, budget=1, key="monday")
    assert (caught.value.status, caught.value.recorded) == (409, False)
    done = calls.learn(outcomes(first), key="friday")
    assert calls.learn(outcomes(first), key="friday") == done
    assert done["new"] == 8
    assert [calls.leave(["001"], key="gone") for _ in range(2)] == [1, 1]
    assert [calls.cancel(calls.decide(again=True).round, key="back") for _ in range(1)] == [2]
    assert [calls.change(budget=3, key="three")["budget"] for _ in range(2)] == [3, 3]
    assert len(list(calls.audit())) == 7


def test_creating_a_program_twice_with_one_key_creates_one(client: Client) -> None:
    for _ in range(2):
        assert client.create("twice", key="mine", **PLAN).name == "twice"
    with pytest.raises(APIError, match="already has a program 'twice'") as caught:
        client.create("twice", **PLAN)
    assert caught.value.status == 409


class Losing(Transport):
    """A connection that loses every first answer after the server has done its work."""

    def fetch(self, *asked: Any, **named: Any) -> Any:
        super().fetch(*asked, **named)
        return super().fetch(*asked, **named)


def test_a_lost_answer_does_not_decide_twice(served: Served, calls: Program) -> None:
    losing = Losing(served.address, served.secret, retries=0)
    program = Program(losing, calls.name)
    recommendation = program.decide(STATES)
    program.learn(outcomes(recommendation))
    program.change(budget=3)
    assert program.leave(["001"]) == 1
    losing.close()
    assert [(row["round"], row["outcomes"]) for row in calls.rounds()] == [(1, 8)]
    assert [entry["verb"] for entry in calls.audit()] == ["left", "changed", "learned", "decided", "created"]


def test_many_threads_share_a_client_and_one_decides(calls: Program) -> None:
    barrier, ends = threading.Barrier(8), list[str]()

    def decide() -> None:
        barrier.wait()
        try:
            ends.append(f"decided {calls.decide(STATES, round=1).round}")
        except APIError as refused:
            ends.append(f"refused {refused.status}")

    threads = [threading.Thread(target=decide) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(ends) == ["decided 1", *["refused 409"] * 7]


def test_faults_of_a_table_are_reported_by_row_and_column(calls: Program, tmp_path: Path) -> None:
    (tmp_path / "states.csv").write_text("agent,state\nann,low\nben,hihg\n")
    for states in (tmp_path / "states.csv", {"ann": "low", "ben": "hihg"}):
        with pytest.raises(APIError) as caught:
            calls.decide(states)
        error = caught.value
        assert (error.status, error.recorded) == (422, False)
        assert error.faults[0]["column"] == "state"
        assert "hihg" in error.message
        assert error.request
    assert [fault["row"] for fault in error.faults] == [2]
    assert list(calls.rounds()) == []


def refusals(program: Program) -> Iterator[int | None]:
    """The statuses that a viewer, an operator's and an admin's verb end in."""
    for verb in (program.about, lambda: program.cancel(99), lambda: program.erase(["nobody"])):
        try:
            verb()
            yield None
        except APIError as refused:
            yield refused.status


def test_a_token_has_the_rights_of_its_role(served: Served, calls: Program) -> None:
    found = {}
    for role in ("viewer", "operator", "admin"):
        secret = make_token(served.desk.store, f"one-{role}", {calls.name: role})
        with served.client(secret) as client:
            found[role] = list(refusals(client.program(calls.name)))
            assert [row["name"] for row in client.programs()] == [calls.name]
            with pytest.raises(APIError) as caught:
                client.create("never", **PLAN)
            assert caught.value.status == 403
    assert found == {"viewer": [None, 403, 403], "operator": [None, 404, 403], "admin": [None, 404, 422]}


def test_a_revoked_token_is_refused_at_once(served: Served) -> None:
    secret = make_token(served.desk.store, "gone", {None: "viewer"})
    with served.client(secret) as client:
        assert client.me()["name"] == "gone"
        revoke_token(served.desk.store, "gone")
        with pytest.raises(APIError, match="token") as caught:
            client.me()
    assert caught.value.status == 401
    assert secret not in str(caught.value)


def test_a_missing_program_is_an_error(client: Client) -> None:
    for name in ("nowhere", "ü"):
        with pytest.raises(APIError) as caught:
            client.program(name).about()
        assert caught.value.status == 404


@pytest.mark.parametrize("name", ["", "..", "coupons/rounds/1", "coupons?x", "a b"])
def test_a_name_cannot_change_the_address(client: Client, name: str) -> None:
    with pytest.raises(InputError, match="it has letters, digits, dots, dashes or underscores"):
        client.program(name)
    with pytest.raises(InputError, match="it has letters"):
        client.create(name, **PLAN)


def test_names_with_other_letters_work(client: Client) -> None:
    program = client.create("Grüße-1", **PLAN)
    assert program.decide({"Jürgen Ñ/&?": "low", "b": "high"}, budget=1).round == 1
    assert program.history("Jürgen Ñ/&?")[0]["state"] == "low"
    assert [row["agent"] for row in program.people(find="Ñ/&?")] == ["Jürgen Ñ/&?"]


def test_a_list_in_pages_is_complete(calls: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = calls.decide(STATES, dry_run=True)
    monkeypatch.setattr("restive.client.program.MAX_LIST_ROWS", 1)
    monkeypatch.setattr("restive.client.program.PAGE_SIZE", 3)
    recommendation = calls.decide(STATES)
    assert len(recommendation.people) == 8
    assert (recommendation.chosen, recommendation.reserve, recommendation.data["next"]) == (
        whole.chosen,
        whole.reserve,
        None,
    )


def test_without_httpx_the_client_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None; import restive.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert 'pip install "restive[client]"' in done.stderr


def test_importing_the_client_loads_no_slow_library() -> None:
    slow = "{'numpy', 'numba', 'polars', 'pydantic', 'sqlalchemy', 'fastapi'} & set(sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, restive.client; print({slow})"], capture_output=True, text=True, check=True
    )
    assert loaded.stdout == "set()\n"
