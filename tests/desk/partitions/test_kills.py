"""A worker or a coordinator that is killed in any phase of a round loses nothing and changes nothing."""

from multiprocessing import get_context
from pathlib import Path

import pytest

from desk.partitions.comparing import Pair, World
from desk.partitions.killing import Killing, decide_and_die
from restive.desk.partitions.program import PartitionedProgram
from restive.errors import Conflict
from restive.paper.engines import open_engine

TASKS = (
    "read_states", "read_newcomers", "find_known", "learn", "welcome", "join", "rank", "look_at", "edge", "record", "clean",
)  # fmt: skip
NOT_AT_FIRST = {"read_newcomers", "find_known", "learn", "welcome", "join"}


def test_workers_of_dask_that_are_killed_change_nothing(tmp_path: Path) -> None:
    with open_engine("dask", 2) as engine:
        pair = Pair(tmp_path / "pair", World(3000, missing=0.1), 1024, engine, budget=100, shares={"west": 0.5})
        pair.compare(pair.decide())
        pair.engine = killing = Killing(engine, tmp_path / "marks", {"learn": True, "record": False})
        pair.compare(pair.decide())
        assert killing.killed() == {"learn", "record"}
        assert pair.parts.verify(engine) == []
        pair.close()


@pytest.mark.soak
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("task", TASKS)
def test_a_worker_that_is_killed_in_any_phase_changes_nothing(tmp_path: Path, task: str, after: bool) -> None:
    with open_engine("dask", 2) as engine:
        world = World(20_000, missing=0.1, moving=0.01, arriving=1000)
        pair = Pair(tmp_path / "pair", world, 1024, engine, budget=900, shares={"west": 0.5})
        for round_ in range(4):
            pair.engine = killing = Killing(engine, tmp_path / f"marks-{round_}", {task: after})
            pair.compare(pair.decide())
            assert killing.killed() == (set() if task in NOT_AT_FIRST and round_ == 0 else {task})
        assert pair.parts.verify(engine) == []
        pair.close()


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_coordinator_that_is_killed_at_the_commit_leaves_the_round_decided_or_not(
    tmp_path: Path, before: bool
) -> None:
    with open_engine("threads", 1) as engine:
        pair = Pair(tmp_path / "pair", World(2500), 1024, engine, budget=100)
        pair.compare(pair.decide())
        folder, states = pair.parts.folder.url, str(tmp_path / "pair" / "states-1")
        spare = PartitionedProgram(folder)
        killed = get_context("forkserver").Process(target=decide_and_die, args=(folder, states, before))
        killed.start()
        killed.join(120)
        assert killed.exitcode == -9
        assert PartitionedProgram(folder).rounds == (1 if before else 2)
        assert PartitionedProgram(folder).verify(engine) == []
        if before:
            pair.parts = PartitionedProgram(folder)
            pair.compare(pair.decide())
        else:
            with pytest.raises(Conflict, match=r"Round 2 .* was decided by another process"):
                spare.decide(states, engine, again=True)
        assert PartitionedProgram(folder).verify(engine) == []
        pair.close()
