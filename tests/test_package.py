"""The wheel and the sdist: what is in them, and that both have the version of the code."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from restive import __version__

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return folder


def test_the_wheel_has_the_package_its_data_and_the_documents(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    assert wheel.name == f"restive-{__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = Parser().parsestr(archive.read(f"restive-{__version__}.dist-info/METADATA").decode())
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "restive").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources - names == set()
    assert {"restive/py.typed", "restive/server/help/index.md"} <= names
    assert not any(name.startswith("tests/") for name in names)
    assert (metadata["Version"], metadata["Requires-Python"]) == (__version__, ">=3.11")
    stated = {line.rpartition(" ")[2] for line in metadata.get_all("Classifier", []) if "Python :: 3." in line}
    assert stated == {"3.11", "3.12", "3.13", "3.14"}


def test_the_sdist_has_what_the_tests_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    missing = {name for name in tracked if not name.startswith(".")} - names
    assert missing == set()


@pytest.mark.soak
def test_the_wheel_runs_in_an_environment_of_its_own(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    binary = tmp_path / "venv" / "bin"
    pip = [str(binary / "python"), "-m", "pip", "install", "--quiet", "--only-binary", ":all:"]
    subprocess.run([*pip, f"{wheel}[cli]"], check=True)
    small = ("--instances", "1", "--runs", "1", "--agents", "5", "--budget", "1", "--horizon", "10")
    done = subprocess.run([binary / "restive", "simulate", *small], check=True, capture_output=True, text=True)
    assert "egt" in done.stdout
