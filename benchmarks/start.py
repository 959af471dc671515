"""A cold start, which compiles, against a second start: seconds from the shell's prompt to the first result."""

import os
import subprocess
import sys
import tempfile

from benchmarks.timing import Row, best_of

RESTIVE = [sys.executable, "-m", "restive"]
COMMANDS = {
    "simulate": ["simulate", "--instances", "1", "--runs", "1", "--horizon", "10", "--json"],
    "desk demo": ["desk", "demo", "--name", "pharmacists", "--json"],
}


def rows() -> list[Row]:
    return [_measure(name, command) for name, command in COMMANDS.items()]


def _measure(name: str, command: list[str]) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}

        def start() -> None:
            with tempfile.TemporaryDirectory() as place:
                subprocess.run([*RESTIVE, *command], env=environment, cwd=place, check=True, capture_output=True)

        cold = best_of(start, 1)
        warm = best_of(start, 3)
    what = f"second start of `restive {name}` to its result ({warm:.2f} s)"
    return Row(what, f"first start ({cold:.1f} s)", warm, cold, "< 2 s")
