"""States by round, groups and people never reached, against the records of the rounds."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from desk.stories import know, make, record, write
from restive.desk import Desk
from restive.desk.demo import run_demo
from restive.desk.program import Program
from restive.desk.results import (
    MIN_GROUP,
    count_reached,
    describe_unreached,
    find_unreached,
    get_results,
    measure_groups,
)
from restive.desk.rounds import DONE, NOT_DONE
from restive.desk.status import measure_lift

ROUNDS = 6


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A program with three groups and a large control group."""
    with Desk(tmp_path_factory.mktemp("results") / "desk.db") as desk:
        yield run_demo(desk, "demo", agents=160, rounds=ROUNDS, seed=3, control=0.4, shadow=None)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path / "desk.db") as desk:
        yield desk


def check_counts(program: Program) -> None:
    """Compare what the projection counts with the records of all rounds."""
    agents, results, states = program.projection.agents, get_results(program), len(program.config.states)
    sums = {name: np.zeros(agents.count, int) for name in ("present", "eligible", "done", "failed")}
    for each, totals in zip(results["rounds"], program.rounds, strict=True):
        found = program.cache.get_round(totals.round)
        for control, counts in ((False, each["program"]), (True, each["control"])):
            here = agents.control[found.number] == control
            for carried, name in ((False, "reported"), (True, "carried_over")):
                rows = here & (found.carried_over == carried)
                assert counts[name] == np.bincount(found.state[rows], minlength=states).tolist()  # type: ignore[literal-required]
        sums["present"][found.number] += 1
        sums["eligible"][found.number] += np.isin(found.choice["exclusion"], (0, 4))
        sums["done"][found.number] += found.done == DONE
        sums["failed"][found.number] += (found.done == NOT_DONE) & found.chosen
    for name, expected in sums.items():
        assert getattr(agents, name).tolist() == expected.tolist(), name


def test_counts_are_those_of_the_records(demo: Program) -> None:
    check_counts(demo)


@pytest.mark.parametrize("policy", ["egt", "random"])
def test_counts_follow_late_reports_corrections_withdrawals_and_undo(desk: Desk, policy: str) -> None:
    program = make(desk, policy=policy, control=0.3)
    record(program, write(agents=9, rounds=4))
    listed = program.recommendation(2).chosen
    program.learn([{"agent": name, "done": False} for name in listed], round=2, correct=True)
    program.correct_states({"a00": 1, "a01": 0}, round=1)
    check_counts(program)
    before = know(program)
    program.decide({"a00": 1, "a01": 0, "new": 1})
    program.learn([{"agent": "a00", "done": True}], round=5)
    check_counts(program)
    program.withdraw(["a00"], round=5)
    check_counts(program)
    for _ in range(3):
        program.undo()
    assert know(program) == before
    assert "agents.eligible" in before
    assert before["lines"][0]["states"]
    check_counts(program)


def test_states_that_nobody_reports_are_carried_over_and_then_unknown(desk: Desk) -> None:
    program = make(desk, keep=1)
    program.decide({"ann": 0, "ben": 1})
    program.decide({"ann": 0})
    program.decide({"ann": 0}, again=True)
    seen = [each["program"] for each in get_results(program)["rounds"]]
    assert [each["reported"] for each in seen] == [[1, 1], [1, 0], [1, 0]]
    assert [each["carried_over"] for each in seen] == [[0, 0], [0, 1], [0, 0]]
    assert [each["unknown"] for each in seen] == [0, 0, 1]


def test_shares_of_groups_add_up_and_stand_beside_the_rule(demo: Program) -> None:
    groups = get_results(demo)["groups"]
    assert {each["group"] for each in groups} == {"coast", "capital", "inland"}
    for name in ("share_of_people", "share_of_places", "share_of_actions"):
        assert sum(each[name] or 0 for each in groups) == pytest.approx(1)
    assert sum(each["actions"] for each in groups) == sum(totals.done for totals in demo.rounds)
    assert all(each["minimum_share"] is None for each in groups)


def test_the_interval_of_a_group_is_wider_than_alone_and_holds_its_mean(demo: Program) -> None:
    agents, words = demo.projection.agents, demo.config.words
    together, alone = (
        measure_groups(agents, words, [0, 1, 2]),
        [measure_groups(agents, words, [code])[0] for code in range(3)],
    )
    for one, two in zip(together, alone, strict=True):
        assert one.mean == two.mean
        assert one.high - one.low > two.high - two.low
    widest = max(found.high - found.low for found in together)
    assert widest > measure_lift(demo.projection).high - measure_lift(demo.projection).low
    note = get_results(demo)["groups_note"]
    assert note.startswith("3 groups are 3 chances of a false alarm.")


def test_the_lift_of_a_small_group_is_not_known(desk: Desk) -> None:
    program = make(desk, control=0.5, shares={"north": 0.4})
    rows = [{"agent": f"n{n}", "state": n % 2, "group": "north" if n < 8 else "south"} for n in range(60)]
    program.decide(rows)
    program.learn([{"agent": row["agent"], "next_state": 1} for row in rows], round=1)
    north, south = get_results(program)["groups"]
    assert north["treated"] < MIN_GROUP
    assert (north["mean"], north["low"], north["high"]) == (None, None, None)
    assert north["note"].startswith("only ")
    assert south["note"] == ""
    assert (north["minimum_share"], south["minimum_share"]) == (0.4, None)


def test_without_a_control_group_no_lift_of_a_group_is_known(desk: Desk) -> None:
    program = make(desk)
    program.decide([{"agent": f"n{n}", "state": 0, "group": "north"} for n in range(30)])
    (north,) = get_results(program)["groups"]
    assert (north["mean"], north["note"]) == (None, "there is no control group")
    assert get_results(program)["groups_note"] == ""


def test_people_never_reached_are_named_with_the_reason(desk: Desk) -> None:
    program = make(desk, budget=1, control=0.0)
    states = {"ann": 0, "ben": 0, "cem": 0, "dora": 0}
    for round_ in (1, 2):
        program.decide(states, must=["ann" if round_ == 1 else "ben"], never=["cem"])
    program.learn([{"agent": "ann", "done": True}, {"agent": "dora", "done": False}], round=1)
    program.learn([{"agent": "ben", "done": False}], round=2)
    rows = {row["agent"]: row for row in describe_unreached(program, find_unreached(program))}
    assert {name: row["reach"] for name, row in rows.items()} == {
        "ben": "never done",
        "cem": "never eligible",
        "dora": "never listed",
    }
    assert rows["ben"]["why"] == "On the list of 1 round: 1 not done."
    assert rows["cem"]["why"] == "A rule kept them off the list in all of 2 rounds."
    assert rows["dora"]["why"] == "Others ranked higher in 2 of 2 rounds."
    program.leave(["cem"])
    reach = count_reached(program.projection)
    assert (reach["people"], reach["reached"], reach["never_listed"], reach["never_done"]) == (3, 1, 1, 1)
    assert reach["never_eligible"] == 0


def test_the_control_group_is_not_among_the_unreached(demo: Program) -> None:
    agents, reach = demo.projection.agents, get_results(demo)["reach"]
    numbers = find_unreached(demo)
    assert numbers.size == reach["never_listed"] + reach["never_done"] + reach["never_eligible"] > 0
    assert not agents.control[numbers].any()
    assert reach["reached"] + numbers.size + reach["new"] == reach["people"]
    assert reach["control"] == int((agents.active & agents.control).sum())
