"""The command `restive` in this process: for calls that end before any job."""

import signal
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from restive.cli import main


class Ended(NamedTuple):
    """What a call came to."""

    returncode: int
    stdout: str
    stderr: str


CallHere = Callable[..., Ended]


def make_caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CallHere:
    """Calls the command with the words given."""

    def run(*words: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["restive", *words])
        monkeypatch.setattr(signal, "signal", lambda *given: None)  # an interruption of the tests is for pytest
        with pytest.raises(SystemExit) as ended:
            main()
        return Ended(int(ended.value.code or 0), *capsys.readouterr())

    return run
