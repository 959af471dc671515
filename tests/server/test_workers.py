"""Several worker processes of one server: who owns a program, what they share, and what a killed worker loses (nothing)."""

import asyncio
import http.client
import json
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import psutil
import pytest

from restive.desk import Desk
from restive.errors import InputError
from restive.server.limits import TokenBuckets
from restive.server.settings import Settings
from restive.server.workers import (
    LEVEL,
    MAX_SHORT_LIVES,
    MIN_LIFE_SECONDS,
    SETS,
    WAYS,
    Worker,
    check_workers,
    find_owner,
    merge_metrics,
    share_limits,
)
from server.running import Command
from server.trials.load import NAME, PLAN, Board, check_promises, check_repeats, end_callers, start_callers
from server.trials.served import Served

TWO = ("--workers", "2")
CALLERS = 4


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Worker]]:
    """Two workers in one process."""
    pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
    for name in ("requests", "sign_ins"):
        np.zeros((SETS, WAYS), LEVEL).tofile(tmp_path / name)
    outboxes = [outbox for outbox, _ in pairs]
    yield [Worker(number, outboxes, inbox, tmp_path, b"salt") for number, (_, inbox) in enumerate(pairs)]
    for one in (each for pair in pairs for each in pair):
        one.close()


def owned_by(number: int, count: int = 2) -> str:
    """The name of a program of that worker."""
    names = (f"shop{place}" for place in range(1000))
    return next(name for name in names if find_owner(f"GET /programs/{name} HTTP/1.1\r\n".encode(), count) == number)


def test_a_program_has_one_owner_on_all_its_addresses() -> None:
    lines = (
        "GET /programs/x%C3%A4 HTTP/1.1",
        "POST /api/v1/programs/xä/rounds?a=b HTTP/1.1",
        "GET /desk/programs/xä HTTP/1.0",
    )
    assert len({find_owner(f"{line}\r\nHost: x\r\n".encode(), 97) for line in lines}) == 1
    assert len({find_owner(f"GET /programs/shop{n}/list HTTP/1.1\r\n".encode(), 5) for n in range(100)}) == 5


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        (b"GET /ready HTTP/1.1\r\n", None),
        (b"GET /static/a.css HTTP/1.1\r\n", None),
        (b"GET /login?next=/programs/x HTTP/1.1\r\n", 0),
        (b"POST /api/v1/programs HTTP/1.1\r\n", 0),
        (b"GET /programs/sho", None),  # the rest is in another packet
        (b"\x16\x03\x01", None),
    ],
)
def test_other_requests_have_the_first_worker_or_any(line: bytes, owner: int | None) -> None:
    assert find_owner(line, 5) == owner


def test_workers_share_rate_limits(workers: list[Worker]) -> None:
    one, other = (
        TokenBuckets(rate=1, burst=3, clock=lambda: 7.0, levels=worker.open_levels("requests")) for worker in workers
    )
    assert [each.take("ann") for each in (one, other, one)] == [0, 0, 0]
    assert other.take("ann") == 1.0
    assert other.take("ben") == 0
    assert len(one) == len(other) == 2


def test_the_table_of_rate_limits_is_bounded(workers: list[Worker]) -> None:
    now, levels = iter(range(1, 10**7)), workers[0].open_levels("requests")
    buckets = TokenBuckets(rate=1e-9, burst=1, clock=lambda: float(next(now)), levels=levels)
    keys = [f"caller {number}" for number in range(300)]
    assert not any(buckets.take(key) for key in keys)
    assert all(buckets.take(key) for key in keys)
    for number in range(3 * SETS):
        buckets.take(f"other {number}")
    assert len(buckets) <= SETS * WAYS


def test_the_lock_of_one_worker_keeps_out_the_others_but_not_for_ever(workers: list[Worker]) -> None:
    one, other = (worker.open_lock() for worker in workers)
    assert not one.is_taken()
    assert one.acquire(timeout=1)
    assert other.is_taken()
    assert other.acquire(timeout=0.01)  # SQLite's own lock decides then
    one.release()
    other.release()
    assert not one.is_taken()
    one.close()
    other.close()


def test_metrics_get_a_label_and_those_of_programs_do_not() -> None:
    text = '# HELP a_total Things.\n# TYPE a_total counter\na_total{k="v"} %d\n# HELP g G.\n# TYPE g gauge\ng{program="x"} 5\n'
    texts = [(number, (text % number + f'g{{program="mine{number}"}} 1\n').encode()) for number in (0, 1)]
    merged = merge_metrics(texts, lambda program: program != "mine1").decode()
    assert 'a_total{k="v",worker="0"} 0.0' in merged
    assert 'a_total{k="v",worker="1"} 1.0' in merged
    assert merged.count('g{program="x"} 5.0') == 1
    assert 'g{program="mine0"} 1.0' in merged
    assert "mine1" not in merged
    assert merged.count("# TYPE a_total counter") == 1


def test_limits_on_everything_together_are_divided() -> None:
    one = share_limits(Settings(max_connections=1000), 4)
    assert (one.max_connections, one.rate, one.uploads.max_concurrent) == (250, Settings().rate, 1)


def test_several_workers_are_refused_with_a_certificate_of_their_own() -> None:
    with pytest.raises(InputError, match="let a proxy do"):
        check_workers(2, object())  # type: ignore[arg-type]


def find_workers(served: Served) -> list[psutil.Process]:
    """The processes that serve, in the order of their start."""
    found = []
    for each in served.process.children():
        with suppress(psutil.NoSuchProcess):  # or a zombie
            if "spawn_main" in " ".join(each.cmdline()):
                found.append(each)
    return sorted(found, key=lambda each: each.create_time())


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300  # kernels may have to be compiled
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_ready(served: Served) -> bool:
    try:
        return ask(served, "GET", "/ready")[0] == 200
    except OSError:
        return False


def ask(served: Served, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
        return ask_on(connection, method, path, body)


def ask_on(connection: http.client.HTTPConnection, method: str, path: str, body: object = None) -> tuple[int, bytes]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {} if body is None else {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


def test_a_connection_goes_from_owner_to_owner_and_a_signal_of_the_terminal_stops_all_in_order(tmp_path: Path) -> None:
    names = [owned_by(0), owned_by(1)]
    with Desk(tmp_path / "store.db") as desk:
        for name in names:
            desk.create(name, states=["low", "high"], rewards=[0, 1], budget=1)
    with Served(str(tmp_path / "store.db"), *TWO) as served:
        wait_until(lambda: is_ready(served))
        with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
            for round_ in range(6):
                for name in names:
                    states = {"ann": round_ % 2, "ben": 1 - round_ % 2, "cem": 0}
                    rows = [{"agent": agent, "state": state} for agent, state in states.items()]
                    status, answer = ask_on(connection, "POST", f"/api/v1/programs/{name}/rounds", {"states": rows})
                    assert (status, json.loads(answer)["round"]) == (201, round_ + 1)
            metrics = ask_on(connection, "GET", "/metrics")[1].decode()
        for worker in find_workers(served):
            worker.send_signal(signal.SIGINT)  # as Ctrl+C at the terminal does, which also reaches the supervisor
        assert is_ready(served)
        served.running.tell(signal.SIGINT)
        served._leave(0)
    assert 'restive_rounds_decided_total{worker="0"} 6.0' in metrics
    assert 'restive_rounds_decided_total{worker="1"} 6.0' in metrics
    for name in names:  # each is measured by its owner
        assert metrics.count(f'restive_program_rounds{{program="{name}"}} 6.0') == 1
    records = [json.loads(line) for line in served.said if line.startswith("{")]
    decided = Counter((each.get("worker"), each["program"]) for each in records if each["method"] == "POST")
    assert decided == {(0, names[0]): 6, (1, names[1]): 6}


def check_worker_kills(address: str, kills: int, seed: int) -> Counter[str]:
    """Kill workers under load: what was acknowledged is there, once, and asking again gets the same."""
    rng, board = np.random.default_rng(seed), Board()
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with Served(address, *TWO) as served:
        wait_until(lambda: is_ready(served))
        callers = start_callers(served.address, board, CALLERS, seed)
        try:
            for kill in range(1, kills + 1):
                board.wait_for(int(rng.integers(1, 10)))
                if kill % MAX_SHORT_LIVES == 0:  # the supervisor would give up
                    time.sleep(MIN_LIFE_SECONDS + 1)
                workers = find_workers(served)
                victim = workers[int(rng.integers(len(workers)))]
                victim.kill()
                victim.wait(60)  # one that is dead, but not yet replaced, is not killed again
                wait_until(lambda: len(find_workers(served)) == 2)
            board.wait_for(CALLERS)
        finally:
            sent = end_callers(callers)
        total = check_promises(address, sent)
        check_repeats(served.address, sent)
        served.end()
    assert check_promises(address, sent) == total  # asking again recorded nothing
    assert sum("is started again" in line for line in served.said) == kills
    return total


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.soak)])
def test_what_workers_acknowledged_survives_kills_of_workers(kills: int, tmp_path: Path) -> None:
    check_worker_kills(str(tmp_path / "store.db"), kills, seed=kills)


def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    served = Served(str(tmp_path / "store.db"), *TWO)
    with served:
        wait_until(lambda: is_ready(served))
        workers = find_workers(served)
        assert len(workers) == 2
        served.kill()
        psutil.wait_procs(workers, timeout=60)
        assert not any(worker.is_running() for worker in workers)


def test_a_server_without_workers_is_refused(tmp_path: Path) -> None:
    with Command("--store", str(tmp_path / "store.db"), "--workers", "0") as command:
        assert command.wait() == 2
        assert "--workers is 0" in " ".join(command.said)


def test_another_worker_that_does_not_answer_is_left_out(
    workers: list[Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("restive.server.workers.ANSWER_SECONDS", 0.05)
    assert asyncio.run(workers[0].ask_others()) == {}
    data, taken = workers[1].receive() or (b"?", None)
    assert data == b""
    assert taken is not None
    taken.close()
