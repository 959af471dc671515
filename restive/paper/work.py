"""A piece of work: one task with plain settings, done in one go by any engine.

What it gives depends on nothing but its settings and the code that computes, so both are in its digest, and its result
is kept in a file of that name: work that was done is not done again, and work that changed never meets an old result.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from restive.version import __version__

ROOT = Path(__file__).parents[1]
# The rooms that decide what comes out; a change in what draws or reports it leaves results as they are.
COMPUTING = (
    "kernels", "solvers", "policies", "problems", "contract.py", "problem.py", "world.py", "simulation.py", "stats.py",
    "paper/tasks",
)  # fmt: skip


@dataclass(frozen=True)
class Work:
    """A task of `restive.paper.tasks` with its settings."""

    task: str
    label: str  # for people, and the beginning of the file's name
    settings: Mapping[str, Any]  # plain data, as it would go into JSON
    weight: float = 1.0  # about how long it takes in seconds, for the time left only

    def spec(self) -> dict[str, Any]:
        """All that the result depends on."""
        return {"task": self.task, "settings": dict(self.settings), "version": __version__, "code": code_digest()}

    def digest(self) -> str:
        """The same for the same spec, and for no other."""
        return hashlib.sha256(json.dumps(self.spec(), sort_keys=True).encode()).hexdigest()[:16]

    def file_name(self) -> str:
        """What it is, in words, and its digest."""
        return f"{re.sub(r'[^A-Za-z0-9.=]+', '-', self.label)}-{self.digest()}.parquet"


@cache
def code_digest() -> str:
    """A digest of the code that computes, whatever folder it is installed in."""
    rooms = [ROOT / room for room in COMPUTING]
    files = [path for room in rooms for path in ([room] if room.suffix else room.rglob("*"))]
    digest = hashlib.sha256()
    for path in sorted(path for path in files if path.suffix in (".py", ".json")):
        digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
