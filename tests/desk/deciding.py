"""What another process does to a program in tests."""

from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

from restive.desk import AlreadyDecided, Desk


def decide_when_reported(address: str, name: str, states: dict[str, str], ready: Barrier, reported: Connection) -> None:
    """Wait for the others, decide, and say how that ended."""
    with Desk(address) as desk:
        program = desk.program(name)
        ready.wait()
        try:
            reported.send(("decided", program.decide(states).chosen))
        except AlreadyDecided as error:
            reported.send(("reported", str(error)))
