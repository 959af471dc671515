"""A command that is interrupted as soon as its first result is on disk, however slow or fast the machine is."""

import signal
import subprocess
import sys
import time
from pathlib import Path

# Saving a second result waits for the interruption.
SCRIPT = """
import sys, time
from restive.cli import main
from restive.paper import jobs

save, saved = jobs._save, []

def save_one(path, job, columns):
    if saved:
        time.sleep(3600)
    save(path, job, columns)
    saved.append(path)

jobs._save = save_one
sys.argv = ["restive", *sys.argv[1:]]
main()
"""


def interrupt(words: list[str], folder: Path) -> tuple[int, str]:
    """Run a command until there is a result in its folder, then interrupt it; the exit code and the last line."""
    command = [sys.executable, "-c", SCRIPT, *words, "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as running:
        while not list(folder.glob("results/*.parquet")):
            assert running.poll() is None, "it ended without a result"
            time.sleep(0.02)
        running.send_signal(signal.SIGINT)
        _, complaints = running.communicate(timeout=120)
    return running.returncode, complaints.splitlines()[-1]
