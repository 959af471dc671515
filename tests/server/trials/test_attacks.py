"""Slow, broken and malicious clients all at once, while honest ones decide rounds: the honest ones notice nothing."""

import contextlib
import json
import resource
import socket
import threading
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from restive.client import Client
from restive.desk import Desk
from restive.desk.replay import replay
from restive.desk.tokens import make_token
from server.trials.attacks import ATTACKS, Attacker, make_archive, make_billion
from server.trials.load import NAME, PLAN
from server.trials.served import Served

HONEST = 3
MIB = 1 << 20
MAX_GROWTH_BYTES = 400 * MIB  # memory that the server may take beyond what it has at the start
PEOPLE = [f"p{place:02}" for place in range(20)]


class HonestClient(threading.Thread):
    """A client that decides and learns in a program of its own, without retries."""

    def __init__(self, address: str, secret: str, name: str, rounds: int) -> None:
        super().__init__(name=name)
        self.client, self.rounds, self.decided = Client(address, secret, retries=0), rounds, 0
        self.took: list[float] = []  # seconds for each round: three requests
        self.failed: Exception | None = None

    def run(self) -> None:
        try:
            with self.client as client:
                program = client.program(self.name)
                for turn in range(self.rounds):
                    began = time.perf_counter()
                    states = {agent: (turn + place) % 2 for place, agent in enumerate(PEOPLE)}
                    recommendation = program.decide(states)
                    reported = program.learn(
                        {"agent": recommendation.chosen, "next_state": [1] * len(recommendation.chosen)},
                        recommendation.round,
                    )
                    assert reported["new"] == len(recommendation.chosen)
                    assert program.about()["rounds"] == recommendation.round == turn + 1
                    self.decided += 1
                    self.took.append(time.perf_counter() - began)
        except Exception as error:
            self.failed = error


class MemoryMonitor(threading.Thread):
    """The peak memory of a process and of its children."""

    def __init__(self, process: psutil.Process) -> None:
        super().__init__()
        self.ending, self.process = threading.Event(), process
        self.before = self.most = process.memory_info().rss
        self.children = 0

    def run(self) -> None:
        while not self.ending.wait(0.02):
            self.most = max(self.most, self.process.memory_info().rss)
            self.children = max(self.children, sum(map(memory_of, self.process.children())))


def memory_of(process: psutil.Process) -> int:
    with contextlib.suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def open_idle(port: int, count: int, stack: contextlib.ExitStack) -> None:
    """Connections over which nothing is ever asked."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 1000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 1000, hard), hard))
    for _ in range(count):
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))


def run_together(
    served: Served, secrets: dict[str, str], rounds: int, idle: int
) -> tuple[list[Attacker], list[HonestClient]]:
    """Run all clients at once, until the honest ones are done and every attack was tried."""
    attackers = [Attacker(name, served.port, secrets["attacker"], attack) for name, attack in ATTACKS.items()]
    honest = [HonestClient(served.address, secrets["honest"], f"{NAME}{number}", rounds) for number in range(HONEST)]
    with contextlib.ExitStack() as stack:
        open_idle(served.port, idle, stack)
        for each in [*attackers, *honest]:
            each.start()
        for one in honest:
            one.join()
        for attacker in attackers:
            assert attacker.once.wait(150), f"{attacker.name} never attacked"
        for attacker in attackers:
            attacker.ending.set()
        for attacker in attackers:
            attacker.join()
    return attackers, honest


def make_programs(store: str) -> dict[str, str]:
    """A program for each honest caller and one for the others; the secrets."""
    with Desk(store) as desk:
        for name in (NAME, *(f"{NAME}{number}" for number in range(HONEST))):
            desk.create(name, **PLAN)
        attacker = make_token(desk.store, "attacker", {NAME: "operator"})
        return {"honest": make_token(desk.store, "honest", {None: "operator"}), "attacker": attacker}


def check_answers(served: Served, attackers: list[Attacker]) -> Counter[int]:
    """Check that the server neither answered with nor logged an unexpected error; the number of responses by status."""
    for attacker in attackers:
        assert attacker.turns >= 1
        assert not [line for line in attacker.responses if line.startswith("HTTP/1.1 5") or " 2" in line[:12]], (
            attacker.responses
        )
    lines = [json.loads(line) for line in served.said if line.startswith("{")]
    statuses = Counter(line["status"] for line in lines)
    assert max(statuses) < 500, statuses
    return statuses


@pytest.mark.parametrize(("rounds", "idle"), [(5, 300), pytest.param(300, 5000, marks=pytest.mark.soak)])
def test_honest_clients_are_served_during_attacks(
    rounds: int, idle: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "store.db")
    secrets = make_programs(store)
    make_billion(), make_archive()
    with Served(store, "--max-body", "16") as served:
        with Client(served.address, secrets["honest"]) as client:
            client.program(NAME).decide({"first": 1})
        memory = MemoryMonitor(served.process)
        memory.start()
        try:
            attackers, honest = run_together(served, secrets, rounds, idle)
        finally:
            memory.ending.set()
            memory.join()
        assert [each.failed for each in honest] == [None] * HONEST
        assert [each.decided for each in honest] == [rounds] * HONEST
        served.end()
    statuses = check_answers(served, attackers)
    assert memory.most - memory.before < MAX_GROWTH_BYTES
    with Desk(store) as desk:
        assert all(replay(desk.program(each.name)).proven for each in honest)
        assert len(desk.program(NAME).rounds) == 1
    with capsys.disabled():
        took = sorted(1000 * each for one in honest for each in one.took)
        print(
            f"\n  {HONEST} honest callers decided {HONEST * rounds} rounds in {took[len(took) // 2]:.0f} ms each, the "
            f"slowest {took[-1]:.0f} ms, beside {idle} idle connections and these:"
        )
        for attacker in attackers:
            print(f"    {attacker.name}: {attacker.turns} times; responses {dict(attacker.responses)}")
        print(
            f"  statuses {dict(sorted(statuses.items()))}; the server had {memory.before // MIB} MiB before, "
            f"{memory.most // MIB} MiB at most, its readers {memory.children // MIB} MiB"
        )
