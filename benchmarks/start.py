"""A cold start, which compiles, against a second start: seconds from the shell's prompt to the first result."""

import os
import subprocess
import sys
import tempfile

from benchmarks.timing import Row, best_of

COMMAND = [sys.executable, "-m", "restive", "simulate", "--instances", "1", "--runs", "1", "--horizon", "10", "--json"]


def rows() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}

        def start() -> None:
            subprocess.run(COMMAND, env=environment, check=True, capture_output=True)

        cold = best_of(start, 1)
        warm = best_of(start, 3)
    return [Row(f"second start of `restive simulate` to its result ({warm:.2f} s)", "first start", warm, cold, "< 2 s")]
