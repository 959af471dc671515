"""`restive serve` at one port, killed and begun again, for callers who find it where it was."""

import itertools
import os
import signal
import socket
import subprocess
from types import TracebackType
from typing import Self

import psutil

from server.running import Command

# Below the ports that a system gives to callers, or one who calls while nobody listens may reach itself.
FIRST_PORT, LAST_PORT = 20_000, 30_000
TIMEOUT_SECONDS = 45  # seconds for a process to end
PLACES = itertools.count(7 * os.getpid())  # each server of each run of the tests has another


def find_port() -> int:
    """A port that is free now, and that no caller is given."""
    for place in PLACES:
        port = FIRST_PORT + place % (LAST_PORT - FIRST_PORT)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise AssertionError("there are always more")


class Served:
    """A server in a process of its own; `begin` may come again after `kill` or `end`."""

    def __init__(self, store: str, *arguments: str) -> None:
        self.port = find_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self._arguments = ("--store", store, "--port", str(self.port), "--rate", "1000000", *arguments)
        self.command: Command | None = None
        self.said: list[str] = []

    def launch(self) -> None:
        """Start the process, and wait for nothing."""
        self.command = Command(*self._arguments, environment={"PYTHONFAULTHANDLER": "1"})

    def begin(self) -> None:
        """Start the process, and wait until it listens."""
        self.launch()
        assert self.running.address() == self.address

    @property
    def running(self) -> Command:
        assert self.command is not None
        return self.command

    @property
    def process(self) -> psutil.Process:
        return psutil.Process(self.running._process.pid)

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.running.tell(signal.SIGKILL)
        self._leave(-signal.SIGKILL)

    def end(self) -> None:
        """Ask the process to end, and see that it does so in order."""
        self.running.tell(signal.SIGTERM)
        self._leave(0)

    def _leave(self, code: int) -> None:
        command, self.command = self.running, None
        with command:
            try:
                command._process.wait(TIMEOUT_SECONDS)
            except subprocess.TimeoutExpired:
                command.tell(signal.SIGABRT)  # which has it say where it hangs
            ended = command.wait()
        self.said += command.said
        assert ended == code, command.said
        wrong = [line for line in command.said if '"level": "error"' in line]
        assert not wrong, wrong[:3]

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.command is not None:
            self.command.__exit__()
            print("\n".join(line for line in self.command.said if '"level": "error"' in line))
