import asyncio
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from desk.postgres import Postgres

from restive.api.administration import AuditEntry
from restive.api.types import Health, Me, Page, PolicyInfo, Template
from restive.desk import Desk
from restive.desk.config import TEMPLATES
from restive.policies import make_policy
from restive.server.app import make_app
from restive.server.program_pool import THREADS
from restive.server.routes import system
from restive.server.settings import Settings
from server.calling import API, Caller


def test_health_and_readiness_need_no_token(principals: Callable[..., Caller]) -> None:
    anonymous = principals(None)
    assert anonymous.get("/health", Health)["status"] == "ok"
    assert anonymous.get("/ready", Health)["status"] == "ok"


def test_a_server_without_its_store_is_healthy_but_not_ready(caller: Caller, tmp_path: Path) -> None:
    caller.desk.close()
    shutil.rmtree(tmp_path)
    assert caller.get("/health", Health)["status"] == "ok"
    answer = caller.call("GET", "/ready")
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    failure = answer.json()
    assert (failure["type"], failure["recorded"]) == ("/api#store_unavailable", False)
    assert str(tmp_path) not in answer.text
    tmp_path.mkdir()


def test_metrics_need_any_token(principals: Callable[..., Caller]) -> None:
    operator = principals("operator", "shops")
    operator.call("POST", "rounds", json={"states": [{"agent": "ann", "state": "low"}]})
    operator.call("POST", "outcomes", json={"outcomes": [{"agent": "ann", "next_state": "high"}]})
    counted = operator.call("GET", "/metrics")
    assert counted.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in ("restive_rounds_decided_total 1.0", "restive_outcomes_recorded_total 1.0"):
        assert line in counted.text
    principals(None).refused("GET", "/metrics", 401)


def test_me_returns_the_owner_of_the_token(caller: Caller, principals: Callable[..., Caller]) -> None:
    assert caller.get(f"{API}/me", Me)["id"] is None
    known = principals("operator", "shops").get(f"{API}/me", Me)
    assert (known["name"], [(grant["program"], grant["role"]) for grant in known["grants"]]) == (
        "principal0",
        [("shops", "operator")],
    )


def test_all_templates_and_policies_are_listed(caller: Caller) -> None:
    assert [template["name"] for template in caller.get(f"{API}/templates", Page[Template])["items"]] == list(TEMPLATES)
    policies = caller.get(f"{API}/policies", Page[PolicyInfo])["items"]
    assert "lagrange" in {policy["name"] for policy in policies}
    assert "whittle-oracle" not in {policy["name"] for policy in policies}
    for policy in policies:
        assert policy["about"]
        settings = ",".join(f"{each['name']}={str(each['default']).lower()}" for each in policy["settings"])
        assert make_policy(f"{policy['name']}:{settings}") == make_policy(policy["name"])


def test_the_audit_log_of_the_store_has_pages(caller: Caller) -> None:
    program = caller.desk.program("shops")
    program.decide({"ann": "low"})
    program.learn([{"agent": "ann", "next_state": "high"}])
    verbs, address = [], f"{API}/audit?limit=2"
    while address:
        page = caller.get(address, Page[AuditEntry])
        verbs += [entry["verb"] for entry in page["items"]]
        address = page["next"] or ""
    assert verbs == ["learned", "decided", "created"]


def test_a_real_server_answers_on_a_socket(live: str) -> None:
    answer = httpx.get(f"{live}/api/v1/programs/shops", timeout=60)
    assert answer.status_code == 200
    assert answer.json()["name"] == "shops"
    assert httpx.head(f"{live}/api/v1/programs/shops").status_code == 405


def test_readiness_does_not_wait_behind_decisions(caller: Caller) -> None:
    programs, go = caller.app.state.programs, threading.Event()

    async def story() -> int:
        works = [asyncio.ensure_future(programs.run(go.wait, 20)) for _ in range(THREADS)]
        answer = await asyncio.wait_for(caller.client.get("/ready"), 10)
        go.set()
        await asyncio.gather(*works)
        return answer.status_code

    assert caller.run(story()) == 200


def test_a_server_whose_store_hangs_is_soon_reported_as_not_ready(
    postgres: Postgres, runner: asyncio.Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(system, "READY_TIMEOUT_SECONDS", 0.2)
    address = postgres.new_schema()
    with Desk(address) as desk, Desk(address) as other:
        app = make_app(desk, Settings(open=True, log="none"))
        caller = Caller(app, desk, runner)
        with other.store.transact() as connection:
            connection.exec_driver_sql("LOCK TABLE events IN ACCESS EXCLUSIVE MODE")
            failures = [caller.refused("GET", "/ready", 503) for _ in range(5)]
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            assert connection.exec_driver_sql(waiting).scalar_one() <= 1  # one question for all of them
        assert {failure["type"] for failure in failures} == {"/api#store_unavailable"}
        assert {failure["detail"] for failure in failures} == {"The store is unavailable. Nothing was recorded."}
        assert caller.call("GET", "/ready").status_code in (200, 503)  # the answer to the open question may be late
        caller.run(asyncio.wait_for(app.state.programs._pulse, 20))
        assert caller.call("GET", "/ready").status_code == 200
        caller.run(caller.client.aclose())
        app.state.programs.close()


def test_readiness_of_overlapping_probes_is_that_of_the_store(caller: Caller) -> None:
    programs = caller.app.state.programs

    async def probe() -> None:
        for _ in range(20):
            await programs.reach_store(60)

    async def probe_all() -> None:
        await asyncio.gather(*(probe() for _ in range(50)))

    caller.run(probe_all())


def test_many_probes_at_once_find_the_server_ready(live: str) -> None:
    def probe(_: int) -> list[int]:
        with httpx.Client(base_url=live, timeout=60) as client:
            return [client.get("/ready").status_code for _ in range(50)]

    with ThreadPoolExecutor(16) as threads:
        assert {status for statuses in threads.map(probe, range(16)) for status in statuses} == {200}
