"""What other processes do to a store in tests; the server that forks them has imported the store already."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection

import numpy as np

from restive.desk import Desk, RequestContext
from restive.desk import store as store_module
from restive.desk.audit import KEYED
from restive.desk.store import Store

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["restive.desk", "restive.policies.lagrange"])


def columns_for(step: int) -> dict[str, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Two chunks of agents that say which step they belong to."""
    number = np.arange(8000, 8400)
    return {"number": number, "step": np.full(len(number), step)}


def append_some(address: str, program: int, who: str, count: int) -> None:
    """Append `count` events, each in a transaction of its own."""
    with Store.open(address) as store:
        for step in range(count):
            with store.writing(program) as writer:
                writer.append("opened", {"who": who}, columns_for(step), round=step)


def append_until_killed(address: str, program: int, acknowledged: Connection) -> None:
    """Append events in pairs, and say so after each pair has been recorded."""
    with Store.open(address) as store:
        while True:
            with store.writing(program) as writer:
                for _ in range(2):
                    last = writer.append("opened", {}, columns_for(writer.length), extra={"list": {"a": np.arange(9)}})
            acknowledged.send((last.number, last.digest))


def die(*_: object, **__: object) -> None:
    """Be killed."""
    os.kill(os.getpid(), signal.SIGKILL)


def delete_and_die(address: str, name: str, key: str, committed: bool) -> None:
    """Delete a program, and be killed just before the commit, or after it and before its rows leave the files."""
    if committed:
        Store.purge_deleted = die  # type: ignore[method-assign]
    else:
        vars(store_module)["record_audit_entry"] = die  # the last statement of the transaction
    with Desk(address) as desk:
        desk.delete(name, name, context=RequestContext(key=key))


def erase_and_die(address: str, name: str, agent: str, key: str) -> None:
    """Erase a name, and be killed after the commit, before the name is cleared from the files."""

    Store.purge_deleted = die  # type: ignore[method-assign]
    with Desk(address) as desk:
        desk.program(name).erase([agent], context=RequestContext(key=key, asked=f"{KEYED}digest"))


def open_and_create(address: str, name: str, reported: Connection) -> None:
    """Open a store that may not be there yet, and create a program."""
    try:
        with Store.open(address) as store, store.creating(name) as writer:
            writer.append("created", {})
        reported.send("created")
    except Exception as error:
        reported.send(f"{type(error).__name__}: {error}")
