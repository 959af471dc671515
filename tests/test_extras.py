"""Each extra of pyproject.toml is enough for its part of the package: other packages are made unimportable."""

import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The modules that each extra installs.
MODULES = {
    "cli": {"pydantic", "rich", "typer"},
    "plots": {"jinja2", "matplotlib"},
    "desk": {"fastexcel", "sqlalchemy", "xlsxwriter"},
    "server": {"fastapi", "httptools", "starlette", "uvicorn", "prometheus_client", "python_multipart"},
    "client": {"httpx"},
    "postgresql": {"psycopg"},
    "gym": {"gymnasium"},
    "dask": {"dask", "distributed"},
    "otel": {"opentelemetry.sdk", "opentelemetry.exporter"},
}
HEAVY = {"numba", "numpy", "polars", "scipy"}

SIMULATE = """
from restive import make_problems, simulate
problems = make_problems("two-state-v1", instances=2, agents=5, budget=1, seed=7)
print(round(simulate(problems, "lagrange", horizon=20, runs=2, seed=7).bands().mean[-1], 6) > 0)
"""
COMMAND = "import sys; sys.argv = ['restive', *{words!r}]; from restive.__main__ import main; main()"
CLIENT = """
import sys
from restive.client import Client
print(sorted({"numba", "numpy", "polars", "scipy"} & {name for name in sys.modules if sys.modules[name]}))
"""


def run(
    code: str, extras: set[str], blocked: Iterable[str] = (), cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `code` in a process in which the modules of all other extras cannot be imported."""
    others = {name for extra, names in MODULES.items() if extra not in extras for name in names} | set(blocked)
    block = f"import sys; sys.modules.update(dict.fromkeys({sorted(others)!r}))\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True, cwd=cwd or ROOT)


def command(*words: str) -> str:
    return COMMAND.format(words=list(words))


def test_the_base_simulates() -> None:
    done = run(SIMULATE, set())
    assert (done.returncode, done.stdout.strip()) == (0, "True"), done.stderr


def test_the_command_simulates_with_the_extra_cli_alone() -> None:
    small = ("--instances", "2", "--runs", "2", "--agents", "5", "--budget", "1", "--horizon", "20")
    done = run(command("simulate", *small), {"cli"})
    assert (done.returncode, "egt" in done.stdout) == (0, True), done.stderr


def test_the_desk_decides_with_its_extra_alone(tmp_path: Path) -> None:
    (tmp_path / "monday.csv").write_text("agent,state\nann,silent\nben,regular\n")
    store = ("--store", str(tmp_path / "team.db"))
    made = run(command("desk", "init", "coupons", "--template", "pharmacy", "--budget", "1", *store), {"cli", "desk"})
    assert made.returncode == 0, made.stderr
    states = ("--states", str(tmp_path / "monday.csv"), "--out", str(tmp_path / "list.xlsx"))
    decided = run(command("desk", "decide", "coupons", *states, *store), {"cli", "desk"})
    assert decided.returncode == 0, decided.stderr
    assert (tmp_path / "list.xlsx").exists()


def test_the_client_needs_no_numerical_library() -> None:
    done = run(CLIENT, {"client"}, HEAVY)
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


@pytest.mark.parametrize(
    ("words", "extras", "missing"),
    [
        (("policies",), set(), "cli"),
        (("desk", "list"), {"cli"}, "desk"),
        (("serve", "--store", "x.db"), {"cli", "desk"}, "server"),
        (("simulate", "--figure", "x.png"), {"cli"}, "plots"),
    ],
)
def test_a_missing_extra_is_named(words: tuple[str, ...], extras: set[str], missing: str, tmp_path: Path) -> None:
    done = run(command(*words), extras, cwd=tmp_path)
    assert done.returncode != 0
    assert f'pip install "restive[{missing}]"' in done.stderr
    assert "Traceback" not in done.stderr


def test_every_extra_is_covered() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) == {*MODULES, "all"}
    assert set(extras["all"][0].removeprefix("restive[").removesuffix("]").split(",")) == set(MODULES)
