import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from restive.server.temporary import PREFIX, own_folder, sweep

STAY = """
import sys
from restive.server.temporary import own_folder
with own_folder() as folder:
    (folder / "table.csv").write_text("ann")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files of this test are made."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def make_old(folder: Path) -> None:
    os.utime(folder, (0, 0))


def test_temporary_files_are_made_in_one_folder_that_goes_with_the_server(place: Path) -> None:
    with own_folder() as folder:
        assert folder.stat().st_mode & 0o077 == 0
        with tempfile.TemporaryDirectory() as inner:
            assert Path(inner).parent == folder
        (folder / "left.csv").write_text("ann")
    assert list(place.iterdir()) == []
    assert tempfile.gettempdir() == str(place)


def test_what_a_killed_server_left_is_removed_and_what_a_living_one_has_is_not(place: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", STAY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with server:
        assert server.stdout is not None
        folder = Path(server.stdout.readline().strip())
        make_old(folder)
        sweep(place)
        assert (folder / "table.csv").exists()
        server.kill()
    make_old(folder)
    sweep(place)
    assert not folder.exists()


def test_nothing_else_is_removed(place: Path) -> None:
    new, other, file = place / f"{PREFIX}new", place / "restive-other", place / f"{PREFIX}file"
    new.mkdir()
    other.mkdir()
    file.write_text("")
    make_old(other)
    make_old(file)
    target = place / "target"
    target.mkdir()
    (place / f"{PREFIX}link").symlink_to(target)
    sweep(place)
    assert {path.name for path in place.iterdir()} == {new.name, other.name, file.name, "target", f"{PREFIX}link"}
