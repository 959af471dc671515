"""Callers who decide and learn over HTTP at the same time, each request with a key and sent until it is answered.

Their requests and responses are collected and afterwards compared with the store: `check_promises`.
"""

import json
import queue
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import numpy as np
import sqlalchemy as sa
from desk.kills import check_rounds

from restive.desk import Desk, Program
from restive.desk.database import audit_log
from restive.desk.replay import replay

NAME, PEOPLE = "calls", 30
PLACE = f"/api/v1/programs/{NAME}"
PLAN: dict[str, Any] = {
    "states": ["low", "high"], "rewards": [0, 1], "budget": 4, "shadow": "wiql", "cool_down": 2, "seed": 3,
    "states_are_outcomes": False,
}  # fmt: skip
PAUSE = 0.02  # seconds until a lost request is sent again
DONE_BEFORE = "Idempotent-Replayed"


@dataclass
class Sent:
    """A request, and all answers to it; `lost` is how often the server was gone before there was one."""

    verb: str
    path: str
    key: str
    body: bytes
    kind: str = "application/json"
    answers: list[httpx.Response] = field(default_factory=list)
    lost: int = 0

    @property
    def answer(self) -> httpx.Response | None:
        return self.answers[-1] if self.answers else None

    @property
    def is_done(self) -> bool:
        return self.answer is not None and self.answer.is_success

    def send(self, client: httpx.Client) -> httpx.Response:
        head = {"Idempotency-Key": self.key, "Content-Type": self.kind}
        return client.post(self.path, content=self.body, headers=head)


class Board:
    """What callers share: the last round that any of them has seen, and the requests that were answered."""

    def __init__(self) -> None:
        self.last = 0
        self.answered: queue.Queue[Sent | None] = queue.Queue()  # None: a caller got an unexpected response
        self.ending = threading.Event()

    def note(self, sent: Sent, round_: int) -> None:
        self.last = max(self.last, round_)
        self.answered.put(sent)

    def wait_for(self, answers: int) -> None:
        for _ in range(answers):
            assert self.answered.get(timeout=60) is not None, "a caller gave up"


class Caller(threading.Thread):
    """A client that sends one request after another; with `retry`, each until it is answered."""

    def __init__(self, address: str, board: Board, number: int, seed: int, retry: bool = True) -> None:
        super().__init__(name=f"caller {number}")
        self.board, self.number, self.retry = board, number, retry
        self.sent: list[Sent] = []
        self.failed: Exception | None = None
        self._luck = np.random.default_rng(seed)
        self._client = httpx.Client(base_url=address, timeout=60)
        self._open: dict[int, list[str]] = {}  # people without outcomes, of rounds that this caller decided

    def run(self) -> None:
        try:
            with self._client:
                while not self.board.ending.is_set() and self._take_turn():
                    pass
        except Exception as error:
            self.failed = error
            self.board.answered.put(None)

    def _take_turn(self) -> bool:
        """Ask for one thing; False when there was no answer, and there will be none."""
        verbs: list[Callable[[], Sent]] = [self._decide, *2 * [self._decide_round, self._decide_round_as_csv]]
        verbs += [self._learn] * 5 if self._open else []
        sent = verbs[int(self._luck.integers(len(verbs)))]()
        self.sent.append(sent)
        while sent.answer is None or sent.answer.status_code == 503:
            try:
                sent.answers.append(sent.send(self._client))
            except httpx.ConnectError:  # nobody is there now
                if self.board.ending.is_set():
                    return False  # nor will be: the trial has failed
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                sent.lost += 1
            if sent.answer is None or sent.answer.status_code == 503:
                if not self.retry:
                    return sent.answer is not None
                threading.Event().wait(PAUSE)
        self._hear(sent, sent.answer)
        return True

    def _hear(self, sent: Sent, answer: httpx.Response) -> None:
        assert answer.is_success or answer.status_code == 409, answer.text
        said = answer.json()
        if sent.verb != "learn" and answer.is_success:
            people = [f"p{place:02}" for place in range(PEOPLE)]
            self._open[said["round"]] = [str(name) for name in self._luck.permutation(people)]
        self.board.note(sent, said["round"] if sent.verb != "learn" and answer.is_success else 0)

    def _make(self, verb: str, path: str, body: str, kind: str = "application/json") -> Sent:
        return Sent(verb, PLACE + path, f"{self.number}-{len(self.sent)}", body.encode(), kind)

    def _states(self) -> dict[str, list[Any]]:
        return {
            "agent": [f"p{place:02}" for place in range(PEOPLE)],
            "state": self._luck.integers(2, size=PEOPLE).tolist(),
        }

    def _decide(self) -> Sent:
        asked = {"states": self._states(), "again": True, "budget": int(self._luck.integers(1, 6))}
        return self._make("decide", "/rounds", json.dumps(asked))

    def _decide_round(self) -> Sent:
        asked = {"states": self._states(), "again": True, "round": self.board.last + 1}
        return self._make("decide round", "/rounds", json.dumps(asked))

    def _decide_round_as_csv(self) -> Sent:
        states = self._states()
        rows = [f"{agent},{state}" for agent, state in zip(states["agent"], states["state"], strict=True)]
        path = f"/rounds?again=true&round={self.board.last + 1}"
        return self._make("decide round", path, "\n".join(["agent,state", *rows]), "text/csv")

    def _learn(self) -> Sent:
        round_ = int(self._luck.choice(list(self._open)))
        left = self._open[round_]
        reported, rest = left[: (count := int(self._luck.integers(1, 16)))], left[count:]
        if rest:
            self._open[round_] = rest
        else:
            del self._open[round_]
        rows = [{"agent": agent, "next_state": int(self._luck.integers(2))} for agent in reported]
        return self._make("learn", "/outcomes", json.dumps({"outcomes": rows, "round": round_}))


def start_callers(address: str, board: Board, count: int, seed: int, retry: bool = True) -> list[Caller]:
    """Callers at work."""
    callers = [Caller(address, board, number, 1000 * seed + number, retry) for number in range(count)]
    for caller in callers:
        caller.start()
    return callers


def end_callers(callers: list[Caller]) -> list[Sent]:
    """Let them finish what they are at; all that they sent."""
    for caller in callers:
        caller.board.ending.set()
    for caller in callers:
        caller.join()
    for caller in callers:
        if caller.failed is not None:
            raise caller.failed
    return [sent for caller in callers for sent in caller.sent]


def check_promises(store: str, sent: list[Sent]) -> Counter[str]:
    """All that was acknowledged is in the store as it was answered, once, and nothing else is; the counts."""
    with Desk(store) as desk:
        program = desk.program(NAME)
        done = [each for each in sent if each.is_done]
        assert find_keys(desk, program) == Counter(each.key for each in done)
        for each in done:
            assert each.answer is not None
            (check_outcomes if each.verb == "learn" else check_list)(program, each, each.answer.json())
        found = replay(program)
        assert found.proven, found.differing
        total = Counter(each.verb for each in done)
        total |= {"rounds": check_rounds(program), "events": found.events, "sent": len(sent)}
    assert total["rounds"] == total["decide"] + total["decide round"]
    total["lost"] = sum(each.lost for each in sent)
    total["refused"] = sum(each.answer is not None and each.answer.status_code == 409 for each in sent)
    total["again"] = sum(DONE_BEFORE in each.answer.headers for each in done if each.answer is not None)
    return total


def find_keys(desk: Desk, program: Program) -> Counter[str]:
    """How many audit_log there are of each key."""
    rows = desk.store.execute(
        sa.select(audit_log.c.key).where(audit_log.c.program == program.id, audit_log.c.key.is_not(None))
    )
    return Counter(row.key for row in rows)


def check_list(program: Program, sent: Sent, said: dict[str, Any]) -> None:
    """The list of the round is the one that was answered."""
    assert said["recorded"] is True
    assert program.recommendation(said["round"]).people() == said["people"]


def check_outcomes(program: Program, sent: Sent, said: dict[str, Any]) -> None:
    """The outcomes are there, and were counted once."""
    asked = json.loads(sent.body)
    found = program.get_round(asked["round"])
    after = dict(zip(program.names.call(found.number), found.after.tolist(), strict=True))
    assert {row["agent"]: row["next_state"] for row in asked["outcomes"]}.items() <= after.items()
    assert (said["new"], said["corrected"], said["repeated"]) == (len(asked["outcomes"]), 0, 0)


def check_repeats(address: str, sent: list[Sent]) -> None:
    """Every request that was carried out is answered again as it was, to the last byte."""
    with httpx.Client(base_url=address, timeout=60) as client:
        for each in sent:
            if each.answer is not None and each.is_done:
                again = each.send(client)
                assert (again.status_code, again.content) == (each.answer.status_code, each.answer.content)
                assert again.headers[DONE_BEFORE] == "true"
                assert again.headers.get("Location") == each.answer.headers.get("Location")


def say(total: Counter[str]) -> str:
    verbs = ", ".join(f"{total[verb]} {verb}" for verb in ("decide", "decide round", "learn"))
    return (
        f"{total['sent']} requests, {total['lost']} answers lost, {verbs} done, {total['refused']} refused as decided, "
        f"{total['again']} answered when asked again; {total['rounds']} rounds, {total['events']} events; "
        "none lost, none twice, replay proven"
    )
