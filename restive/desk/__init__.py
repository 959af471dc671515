"""The live half: decisions for a real program, round by round, from tables that people bring, with nothing lost.

A program is an append-only log of events in a store; what its policy believes is their projection. A decision is the
same choice, bit for bit, that a simulation with one run would make. Names are looked up when they are first used, so
that a command that has nothing to do with the desk starts without its libraries.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from restive.desk.audit import Repeated, RequestContext
    from restive.desk.config import Config, Words
    from restive.desk.desk import Desk
    from restive.desk.ingest import AlreadyDecided
    from restive.desk.program import LearnResult, Program
    from restive.desk.recommendation import Recommendation
    from restive.desk.store import Store, StoreError
    from restive.desk.table_columns import Fault, TableError

__all__ = [
    "AlreadyDecided",
    "Config",
    "Desk",
    "Fault",
    "LearnResult",
    "Program",
    "Recommendation",
    "Repeated",
    "RequestContext",
    "Store",
    "StoreError",
    "TableError",
    "Words",
]  # fmt: skip

MODULES = {
    "recommendation": ("Recommendation",),
    "audit": ("RequestContext", "Repeated"),
    "desk": ("Desk",),
    "config": ("Config", "Words"),
    "ingest": ("AlreadyDecided",),
    "program": ("LearnResult", "Program"),
    "store": ("Store", "StoreError"),
    "table_columns": ("Fault", "TableError"),
}


def __getattr__(name: str) -> Any:
    for module, names in MODULES.items():
        if name in names:
            return getattr(import_module(f"restive.desk.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
