"""An upgrade without a pause: the store of a running server is expanded under load, and the server goes on."""

import httpx
from desk.test_migrations import NEXT

from restive.desk import Desk
from restive.desk.migrations import migrate
from server.running import Command
from server.trials.load import NAME, PLAN, Board, check_promises, end_callers, start_callers
from server.trials.served import Served


def test_a_server_of_the_version_before_goes_on_while_the_store_is_expanded(address: str) -> None:
    board = Board()
    with Desk(address) as desk:
        desk.create(NAME, **PLAN)
    with Served(address) as served:
        callers = start_callers(served.address, board, 2, seed=1)
        try:
            board.wait_for(6)
            migrate(address, known=[NEXT])
            board.wait_for(6)
            served.end()  # and it can be started again: another version may not be there yet
            served.begin()
            board.wait_for(6)
        finally:
            sent = end_callers(callers)
        total = check_promises(address, sent)
        assert {each.answer.status_code for each in sent if each.answer is not None} <= {200, 201, 409}
        assert total["rounds"] >= 3
        assert httpx.get(f"{served.address}/ready").status_code == 200
        served.end()
    migrate(address, contract=True, known=[NEXT])
    with Command("--store", address) as old:
        assert old.wait() != 0
        assert any(f"needs version {NEXT.number} of the tables" in line for line in old.said), old.said
