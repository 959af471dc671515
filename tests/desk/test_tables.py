"""Tables of a program as files: ids stay texts, formulas do not run, empty programs have empty tables."""

from pathlib import Path

import pytest

from desk.stories import make
from restive.desk import Desk
from restive.desk.table_files import read_table_file, write_table_file
from restive.desk.tables import TABLES, make_table
from restive.errors import NotFound


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet"])
@pytest.mark.parametrize("decided", [False, True])
def test_every_table_can_be_written(tmp_path: Path, ending: str, decided: bool) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = make(desk, control=0.4, display=["name"])
        if decided:
            rows = [{"agent": f"00{n}", "state": 0, "group": "=1+1", "name": "=cmd"} for n in range(6)]
            program.decide([*rows, {"agent": "=2+3", "state": 1, "group": None, "name": None}])
            program.learn([{"agent": "001", "done": True, "next_state": 1}])
        for name in TABLES:
            frame, file = make_table(program, name), tmp_path / f"{name}.{ending}"
            write_table_file(frame, file)
            again = read_table_file(file)
            assert again.height == frame.height, name
            if name in ("people", "unreached") and decided:
                assert again["agent"].to_list() == frame["agent"].to_list()
                assert "00" + frame["agent"][0][2:] == frame["agent"][0]
                assert "name" in frame.columns
        if ending == "csv" and decided:
            assert "'=2+3" in (tmp_path / "people.csv").read_text()


def test_a_table_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk, pytest.raises(NotFound, match="there are rounds, people"):
        make_table(make(desk), "nothing")
