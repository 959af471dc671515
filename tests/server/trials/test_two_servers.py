"""Two servers over one store: a round is decided once and an idempotency key is used once, whichever server is asked."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import httpx
import pytest

from restive.desk import Desk
from restive.desk.replay import replay
from restive.desk.tokens import make_token
from server.trials.load import DONE_BEFORE, NAME, PLACE, PLAN, find_keys
from server.trials.served import Served
from server.views.browsing import read_fields, read_filled, read_text

PEOPLE = [f"p{place:02}" for place in range(20)]
AT_ONCE = 4  # two callers at each server


class Callers:
    """Some callers, half of them at each server, who all ask at the same moment."""

    def __init__(self, addresses: list[str]) -> None:
        self._clients = [httpx.Client(base_url=addresses[place % 2], timeout=60) for place in range(AT_ONCE)]
        self._threads, self._start = ThreadPoolExecutor(AT_ONCE), Barrier(AT_ONCE)

    def ask(self, path: str, body: dict[str, Any], keys: list[str]) -> list[httpx.Response]:
        """All answers; the first is by the first server, the second by the other, and so on."""

        def post(client: httpx.Client, key: str) -> httpx.Response:
            self._start.wait()
            return client.post(PLACE + path, json=body, headers={"Idempotency-Key": key})

        return list(self._threads.map(post, self._clients, keys))

    def look(self, path: str) -> list[httpx.Response]:
        """What each server says."""
        return [client.get(PLACE + path) for client in self._clients[:2]]

    def close(self) -> None:
        self._threads.shutdown()
        for client in self._clients:
            client.close()


@contextmanager
def run_two(address: str) -> Iterator[list[str]]:
    """The addresses of two servers in processes of their own."""
    with ExitStack() as stack:
        served = [Served(address) for _ in range(2)]
        for each in served:
            each.launch()
            stack.callback(each.__exit__, None, None, None)
        yield [each.running.address() for each in served]
        for each in served:
            each.end()


@contextmanager
def two_servers(address: str) -> Iterator[Callers]:
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with run_two(address) as addresses:
        callers = Callers(addresses)
        yield callers
        callers.close()


def make_states(round_: int) -> dict[str, list[Any]]:
    return {"agent": PEOPLE, "state": [(round_ + place) % 2 for place in range(len(PEOPLE))]}


def decide_at_both(callers: Callers, round_: int) -> int:
    """Have all callers decide one round; which of them did."""
    keys = [f"decide-{round_}-{place}" for place in range(AT_ONCE)]
    answers = callers.ask("/rounds", {"states": make_states(round_), "again": True, "round": round_}, keys)
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: AT_ONCE - 1}
    for answer in answers:
        if answer.status_code == 409:
            assert answer.json()["type"] == "/api#already_decided"
            assert answer.json()["recorded"] is False
    winner = next(place for place, answer in enumerate(answers) if answer.status_code == 201)
    said = answers[winner].json()
    assert said["round"] == round_
    for listed in callers.look(f"/rounds/{round_}/list?limit=1000"):
        assert listed.json()["items"] == said["people"]
    return winner


def ask_with_one_key(callers: Callers, path: str, body: dict[str, Any], key: str, status: int) -> dict[str, Any]:
    """The one answer that all callers get who ask for the same with the same key."""
    answers = callers.ask(path, body, [key] * AT_ONCE)
    assert {(answer.status_code, answer.content) for answer in answers} == {(status, answers[0].content)}
    assert sum(DONE_BEFORE in answer.headers for answer in answers) == AT_ONCE - 1
    said: dict[str, Any] = answers[0].json()
    return said


def check_two_servers(address: str, rounds: int) -> str:
    """Decide rounds at both servers at once, learn and decide with one key at both; the figures in a line."""
    with two_servers(address) as callers:
        winners = Counter(decide_at_both(callers, round_) % 2 for round_ in range(1, rounds + 1))
        for round_ in range(1, rounds + 1):
            rows = [{"agent": agent, "next_state": round_ % 2} for agent in PEOPLE]
            said = ask_with_one_key(callers, "/outcomes", {"outcomes": rows, "round": round_}, f"learn-{round_}", 200)
            assert (said["new"], said["repeated"]) == (len(PEOPLE), 0)
            asked = {"states": make_states(round_), "again": True}
            said = ask_with_one_key(callers, "/rounds", asked, f"same-{round_}", 201)
            assert said["round"] == rounds + round_
    with Desk(address) as desk:
        program = desk.program(NAME)
        keys = find_keys(desk, program)
        assert (set(keys.values()), len(keys)) == ({1}, 3 * rounds)
        assert len(program.rounds) == 2 * rounds
        assert replay(program).proven
    kind = "PostgreSQL" if "://" in address else "SQLite"
    return (
        f"{kind}: two servers, {AT_ONCE} callers at once; {rounds} rounds asked for by all of them decided once each "
        f"({winners[0]} by the first server, {winners[1]} by the other), {2 * rounds} keys of all of them done once"
    )


@pytest.mark.parametrize("rounds", [5, pytest.param(300, marks=pytest.mark.soak)])
def test_two_servers_decide_a_round_once_and_do_a_key_once(
    address: str, rounds: int, capsys: pytest.CaptureFixture[str]
) -> None:
    line = check_two_servers(address, rounds)
    with capsys.disabled():
        print(f"\n  {line}")


class AlternatingBrowser:
    """A browser that gets every page from one server and sends its form to the other."""

    def __init__(self, addresses: list[str]) -> None:
        self._client, self._addresses = httpx.Client(timeout=60), addresses

    def fill(self, path: str, fields: dict[str, str], page: str = "", file: bytes | None = None) -> None:
        """Get a form, and send it with these fields; with a file it is checked first."""
        answer = self._client.get(self._addresses[0] + (page or path))
        assert answer.status_code == 200, read_text(answer.text)
        filled = (read_filled if page else read_fields)(answer.text)
        if file is not None:
            filled |= read_fields(self._send(path, filled | {"step": "check"}, 200, file))
        self._send(path, filled | fields, 303, file)

    def _send(self, path: str, fields: dict[str, str], status: int, file: bytes | None) -> str:
        self._addresses = self._addresses[::-1]
        files = None if file is None else {"file": ("monday.csv", file)}
        answer = self._client.post(self._addresses[0] + path, data=fields, files=files)
        assert answer.status_code == status, read_text(answer.text)
        return answer.text

    def close(self) -> None:
        self._client.close()


@pytest.mark.parametrize("closed", [True, False], ids=["tokens", "open"])
def test_a_form_of_one_server_can_be_sent_to_the_other(tmp_path: Path, closed: bool) -> None:
    store, place = str(tmp_path / "store.db"), "/programs/shops"
    with Desk(store) as desk:
        token = make_token(desk.store, "ann", {None: "admin"}) if closed else ""
    with run_two(store) as addresses, closing(AlternatingBrowser(addresses)) as browser:
        if closed:
            browser.fill("/login", {"token": token})
        browser.fill("/new", {"name": "shops", "control": "0"}, page="/new?template=pharmacy")
        browser.fill(f"{place}/states", {"step": "decide"}, file=b"agent,state\nann,silent\nben,occasional\n")
        browser.fill(f"{place}/outcomes", {"step": "record"}, file=b"agent,next_state\nann,occasional\n")
        browser.fill(f"{place}/list", {"done": "yes"})
        browser.fill(f"{place}/states", {"step": "decide"}, file=b"agent,state\nann,occasional\nben,silent\n")
        rules = {"budget": "7", "cool_down": "0", "keep": "2", "shares": ""}
        browser.fill(f"{place}/settings", {"step": "change", **rules})
        browser.fill(f"{place}/settings", {"step": "cancel", "round": "2", "sure": "yes"})
        browser.fill(f"{place}/settings", {"step": "leave", "agents": "ben"})
        browser.fill(f"{place}/settings", {"step": "erase", "agent": "ben", "again": "ben"})
    with Desk(store) as desk:
        program = desk.program("shops")
        assert [row.cancelled for row in program.rounds] == [False, True]
        assert program.config.budget == 7
