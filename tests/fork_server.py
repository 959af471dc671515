"""The command `restive` for many short calls: a process that has imported it and forks for each call.

`run_fork_server(folder)` makes a program `restive` in the folder, which hands its arguments, folder, environment and open
files to that process. It prints and returns what the real command does, without the second that the imports take.
`restive serve`, which is sent signals, is the real one.

    python fork_server.py SOCKET
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import numpy as np

from restive.kernels.rng import mix

PROGRAM = """#!{python} -IS
import json, os, socket, sys
if sys.argv[1:2] == ["serve"]:
    os.execv({python!r}, [{python!r}, "-m", "restive", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect({place!r})
    socket.send_fds(server, [json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
    sys.exit(int(server.recv(100) or 70))
"""
MODULES = (
    "restive.cli", "restive.desk.demo", "restive.desk.desk", "restive.desk.output", "restive.desk.replay",
    "restive.desk.status", "restive.logs.examine", "restive.logs.fit", "restive.simulation", "typer._adapters",
)  # fmt: skip
MAX_CALL_BYTES = 1 << 17


@contextmanager
def run_fork_server(folder: Path) -> Iterator[None]:
    """Make the program in a folder and run its server."""
    place, program = str(folder / "socket"), folder / "restive"
    program.write_text(PROGRAM.format(python=sys.executable, place=place), encoding="utf-8")
    program.chmod(0o755)
    with subprocess.Popen([sys.executable, __file__, place], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()
        try:
            yield
        finally:
            server.terminate()


def serve(place: str) -> None:
    """Fork for each call, one after the other."""
    for module in MODULES:
        import_module(module)
    mix(np.uint64(1))  # numba reads its registries at the first call of a kernel
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen()
        print("ready", flush=True)
        while True:
            with listener.accept()[0] as caller:
                content, files, _, _ = socket.recv_fds(caller, MAX_CALL_BYTES, 3)
                child = os.fork()
                if child == 0:
                    run(files, *json.loads(content))
                for file in files:
                    os.close(file)
                caller.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def run(files: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """Be the command."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    import_module("restive.__main__").main()
    sys.exit()


if __name__ == "__main__":
    serve(sys.argv[1])
