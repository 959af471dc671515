"""A server killed at any moment under load: what was acknowledged is there, once, and asking again gets the same."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from restive.desk import Desk
from server.trials.load import (
    NAME,
    PLAN,
    Board,
    check_promises,
    check_repeats,
    end_callers,
    say,
    start_callers,
)
from server.trials.served import Served

CALLERS = 4
SOON = 0.03  # seconds after an answer within which the server is killed
BEGINNING, TO_BEGIN = 0.05, 1.5  # of the kills are while it begins, which takes about so many seconds


def kill_and_begin(served: Served, board: Board, rng: np.random.Generator) -> None:
    """Kill the server somewhere between two answers, now and then once more while it begins."""
    board.wait_for(int(rng.integers(1, 10)))
    board.ending.wait(float(rng.random()) * SOON)  # the point of the kill, not a wait for anything
    served.kill()
    if rng.random() < BEGINNING:
        served.launch()
        board.ending.wait(float(rng.random()) * TO_BEGIN)
        served.kill()
    served.begin()


def check_kills(address: str, kills: int, seed: int) -> Counter[str]:
    """Kill a server under load so often."""
    rng, board = np.random.default_rng(seed), Board()
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with Served(address) as served:
        callers = start_callers(served.address, board, CALLERS, seed)
        try:
            for _ in range(kills):
                kill_and_begin(served, board, rng)
            board.wait_for(CALLERS)
        finally:
            sent = end_callers(callers)
        total = check_promises(address, sent)
        check_repeats(served.address, sent)
        served.end()
    assert check_promises(address, sent) == total  # asking again recorded nothing
    assert total["lost"] >= kills / 2  # else it was killed when nobody asked
    return total


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.soak)])
def test_what_a_server_acknowledged_survives_kills(
    address: str, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    total = check_kills(address, kills, seed=kills)
    with capsys.disabled():
        print(f"\n  server killed {kills} times under {CALLERS} callers; {say(total)}")


def check_end(address: str, seed: int) -> Counter[str]:
    """Tell a server to end under load: whatever it recorded it also answered, and whole."""
    rng, board = np.random.default_rng(seed), Board()
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with Served(address) as served:
        callers = start_callers(served.address, board, CALLERS, seed, retry=False)
        try:
            board.wait_for(int(rng.integers(8, 30)))
            board.ending.wait(float(rng.random()) * SOON)
            served.end()
        finally:
            sent = end_callers(callers)
    total = check_promises(address, sent)
    # One who asks just when an idle connection is closed is not taken in; had all been cut off, none would be answered.
    assert total["lost"] < CALLERS
    return total


@pytest.mark.parametrize("times", [1, pytest.param(25, marks=pytest.mark.soak)])
def test_a_server_reported_to_end_under_load_answers_all_that_it_takes_in(
    times: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    total = Counter[str]()
    for turn in range(times):
        total += check_end(str(tmp_path / f"{turn}.db"), turn)
    with capsys.disabled():
        print(f"\n  SQLite: server reported to end {times} times under {CALLERS} callers; {say(total)}")
