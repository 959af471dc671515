"""A database that goes away under load and comes back: each answer says truly what was recorded, and all goes on."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Literal

import httpx
import pytest
from desk.postgres import Postgres

from restive.api.types import Problem
from restive.client import Client
from restive.desk import Desk
from restive.desk.replay import replay
from server.calling import validate
from server.trials.load import NAME, PLACE, PLAN, find_keys
from server.trials.served import Served

CALLERS = 3
PEOPLE = [f"p{place:02}" for place in range(20)]
MODES: tuple[Literal["immediate", "fast"], ...] = ("immediate", "fast")


class Asker(threading.Thread):
    """One who decides round after round, each with a key of its own, and asks for none twice."""

    def __init__(self, address: str, number: int) -> None:
        super().__init__()
        self.number, self.ending = number, threading.Event()
        self.answers: dict[str, httpx.Response] = {}
        self.failed: Exception | None = None
        self._client = httpx.Client(base_url=address, timeout=60)

    def run(self) -> None:
        try:
            with self._client:
                while not self.ending.is_set():
                    self._ask(len(self.answers))
        except Exception as error:
            self.failed = error

    def _ask(self, turn: int) -> None:
        key = f"{self.number}-{turn}"
        states = {"agent": PEOPLE, "state": [(turn + place) % 2 for place in range(len(PEOPLE))]}
        asked = {"states": states, "again": True}
        answer = self._client.post(f"{PLACE}/rounds", json=asked, headers={"Idempotency-Key": key})
        self.answers[key] = answer
        if answer.status_code == 503:
            self.ending.wait(0.05)  # nobody asks all the time


class Rider(threading.Thread):
    """One who uses the client, which asks again by itself; whatever is raised is a failure."""

    def __init__(self, address: str) -> None:
        super().__init__()
        self.ending = threading.Event()
        self.rounds: list[int] = []
        self.pauses: list[float] = []
        self.failed: Exception | None = None
        self._client = Client(address, retries=20)
        self._client._transport.sleep = self._pause

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        time.sleep(min(seconds, 1.0))  # not as long as it is asked to, so that the trial does not take as long

    def run(self) -> None:
        try:
            with self._client as client:
                program = client.program(NAME)
                while not self.ending.is_set():
                    self.rounds.append(program.decide({"p00": 1, "rider": 0}, again=True).round)
        except Exception as error:
            self.failed = error


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """A server of the trial's own, which is stopped and started."""
    server = Postgres()
    try:
        server.start()
        yield server
    finally:
        server.remove()


def wait_until(client: httpx.Client, path: str, status: int) -> httpx.Response:
    """The first answer of that status."""
    deadline = time.monotonic() + 60
    while (answer := client.get(path)).status_code != status:
        assert time.monotonic() < deadline, answer.text
        time.sleep(0.02)
    return answer


def stop_and_start(
    postgres: Postgres, client: httpx.Client, mode: Literal["immediate", "fast"], count_done: Callable[[], int]
) -> None:
    """An outage; the server says so, stays there, and is well again by itself."""
    postgres.stop(mode)
    gone = wait_until(client, "/ready", 503)
    check_failure(gone)
    assert client.get("/health").status_code == 200
    check_failure(wait_until(client, f"{PLACE}/rounds", 503))
    postgres.start()
    assert wait_until(client, "/ready", 200).json()["status"] == "ok"
    wait_for_rounds(count_done)


def wait_for_rounds(count_done: Callable[[], int]) -> None:
    """Let some more rounds be decided."""
    wanted, deadline = count_done() + 2 * CALLERS, time.monotonic() + 60
    while count_done() < wanted:
        assert time.monotonic() < deadline, "nothing is decided any more"
        time.sleep(0.02)


def check_failure(answer: httpx.Response) -> bool | None:
    """A failure of the store is said in the one shape, without the place or the secrets of the store."""
    assert answer.status_code == 503, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert int(answer.headers["retry-after"]) > 0
    failure = validate(answer, Problem)
    assert (failure["type"], failure["status"]) == ("/api#store_unavailable", 503)
    assert failure["detail"].endswith(".")
    assert "127.0.0.1" not in failure["detail"]
    assert "restive:" not in failure["detail"]
    return failure["recorded"]


def check_reported_truly(address: str, answers: dict[str, httpx.Response], rider: Rider) -> Counter[str]:
    """What was acknowledged is there, what was said not to be there is not; the counts."""
    total = Counter[str]()
    with Desk(address) as desk:
        program = desk.program(NAME)
        keys = find_keys(desk, program)
        assert set(keys.values()) == {1}
        for key, answer in answers.items():
            recorded = True if answer.status_code == 201 else check_failure(answer)
            total[f"{answer.status_code} {recorded}"] += 1
            assert recorded is None or (key in keys) is recorded, answer.text
            total["in doubt, and there"] += recorded is None and key in keys
        ridden = [program.recommendation(round_).table["agent"].to_list() for round_ in rider.rounds]
        assert all(set(listed) <= {"p00", "rider"} | set(PEOPLE) for listed in ridden)
        assert len(set(rider.rounds)) == len(rider.rounds)
        assert len(keys) == len(program.rounds)
        assert replay(program).proven
    return total


def check_outages(postgres: Postgres, outages: int) -> str:
    """Stop and start the database so often under load; the figures in a line."""
    address = postgres.new_schema()
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with Served(address) as served, httpx.Client(base_url=served.address, timeout=60) as client:
        askers = [Asker(served.address, number) for number in range(CALLERS)]
        callers: list[Asker | Rider] = [*askers, rider := Rider(served.address)]

        def count_done() -> int:
            assert all(caller.is_alive() for caller in callers), [caller.failed for caller in callers]
            return sum(answer.status_code == 201 for each in askers for answer in [*each.answers.values()])

        for caller in callers:
            caller.start()
        try:
            wait_for_rounds(count_done)
            for turn in range(outages):
                stop_and_start(postgres, client, MODES[turn % 2], count_done)
        finally:
            for caller in callers:
                caller.ending.set()
            for caller in callers:
                caller.join()
        assert [caller.failed for caller in callers] == [None] * len(callers)
        served.end()
    total = check_reported_truly(address, {key: said for each in askers for key, said in each.answers.items()}, rider)
    assert total["503 False"] >= outages
    assert len(rider.pauses) >= 1
    return (
        f"PostgreSQL stopped {outages} times under {CALLERS} callers and a client: {total['201 True']} rounds answered "
        f"and there, {total['503 False']} refused and not there, {total['503 None']} in doubt of which "
        f"{total['in doubt, and there']} there; the client decided {len(rider.rounds)} rounds with "
        f"{len(rider.pauses)} pauses, none failed"
    )


@pytest.mark.parametrize("outages", [2, pytest.param(100, marks=pytest.mark.soak)])
def test_an_outage_is_reported_truly_and_over_when_its_cause_is(
    postgres: Postgres, outages: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = check_outages(postgres, outages)
    with capsys.disabled():
        print(f"\n  {line}")
