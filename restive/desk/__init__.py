"""The live half: decisions for a real program, round by round, from tables that people bring, with nothing lost.

A program is an append-only log of events in a store; what its policy believes is their fold. A decision is the same
choice, bit for bit, that a simulation with one run would make. Names are looked up when they are first used, so that a
command that has nothing to do with the desk starts without its libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restive.desk.advice import Advice
    from restive.desk.deeds import Deed, Repeated
    from restive.desk.desk import Desk
    from restive.desk.opening import AlreadyDecided
    from restive.desk.plan import Plan, Words
    from restive.desk.program import Program, Taken
    from restive.desk.store import Store, StoreError
    from restive.desk.tables import Fault, Faults

__all__ = [
    "Advice", "AlreadyDecided", "Deed", "Desk", "Fault", "Faults", "Plan", "Program", "Repeated", "Store", "StoreError",
    "Taken", "Words",
]  # fmt: skip

ROOMS = {
    "advice": ("Advice",),
    "deeds": ("Deed", "Repeated"),
    "desk": ("Desk",),
    "plan": ("Plan", "Words"),
    "opening": ("AlreadyDecided",),
    "program": ("Program", "Taken"),
    "store": ("Store", "StoreError"),
    "tables": ("Fault", "Faults"),
}


def __getattr__(name: str) -> Any:
    for room, names in ROOMS.items():
        if name in names:
            return getattr(import_module(f"restive.desk.{room}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
