"""Corrections reach the rounds that went on from the wrong record, and no others; the end is as if right at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from desk.stories import STEADY, call, know, make, record, refuse, write
from restive.desk import Desk
from restive.desk.program import Program
from restive.desk.replay import replay


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One store for all of them; every story has programs of its own."""
    with Desk(tmp_path_factory.mktemp("corrections") / "desk.db") as desk:
        yield desk


Play = Callable[[Program, int], object]


def compare(desk: Desk, play: Play, fix: Callable[[Program], object], **settings: Any) -> Program:
    """Live through something once with the right number and once with the wrong one, which is then corrected."""
    tale = len(desk.programs())
    usual = {"policy": "random", "shadow": "egt", "keep": 9} | settings
    right, wrong = (make(desk, f"{name}-{tale}", **usual) for name in ("right", "wrong"))
    play(right, 1)
    play(wrong, 0)
    assert (states(wrong), know(wrong)) != (states(right), know(right))
    fix(wrong)
    for program in (wrong, desk.program(wrong.name)):
        assert states(program) == states(right)
        assert [program.get_round(n + 1).carried_over.tolist() for n in range(len(right.rounds))] == [
            right.get_round(n + 1).carried_over.tolist() for n in range(len(right.rounds))
        ]
        assert know(program) == know(right)
    assert replay(wrong).proven
    return wrong


def states(program: Program) -> list[list[int]]:
    """Who was in which state, round by round."""
    return [program.get_round(number + 1).state.tolist() for number in range(len(program.rounds))]


def corrected(program: Program) -> list[tuple[int | None, str, list[int]]]:
    """The corrections on record: of which round, of what, and of whom."""
    return [
        (event.round, event.header["what"], event.columns["number"].tolist())
        for event in program.log()
        if event.kind == "corrected"
    ]


def went(agent: str, state: int, **rest: Any) -> list[dict[str, Any]]:
    return [{"agent": agent, "next_state": state, **rest}]


def pass_by(program: Program, rounds: int, first: int = 0) -> None:
    """Rounds in which only z has a state that somebody says."""
    for number in range(rounds):
        program.decide({"z": (first + number) % 2})


def close(program: Program, rounds: Sequence[int], *agents: str) -> None:
    """Outcomes at the very end, so that every state that was carried on has taught something."""
    program.learn([row for number in rounds for name in agents for row in went(name, 1, round=number)])


@pytest.mark.parametrize("shadow", STEADY)
def test_a_wrong_outcome_is_corrected_in_all_rounds_that_carried_it_on(desk: Desk, shadow: str) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 1, "z": 0})
        program.learn(went("a", right) + went("b", 1 - right))
        pass_by(program, 3)
        close(program, [2, 3, 4], "a", "b")

    wrong = compare(
        desk, play, lambda p: p.learn(went("a", 1) + went("b", 0), round=1, correct=True), shadow=shadow
    )  # fmt: skip
    assert corrected(wrong) == [(1, "outcomes", [0, 1]), *((later, "states", [0, 1]) for later in (2, 3, 4))]


@pytest.mark.parametrize("shadow", STEADY)
def test_a_wrong_state_is_corrected_in_all_rounds_that_carried_it_on(desk: Desk, shadow: str) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": right, "b": 1, "z": 0})
        pass_by(program, 3, first=1)
        close(program, [1, 2, 3, 4], "a", "b")

    wrong = compare(desk, play, lambda p: p.correct_states({"a": 1, "b": 1}, round=1), shadow=shadow)
    assert corrected(wrong) == [(later, "states", [0]) for later in (1, 2, 3, 4)]


def test_a_correction_says_who_said_so_and_whether_the_state_is_an_older_one(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 0, "z": 0})
        program.learn(went("a", right))
        pass_by(program, 2, first=1)

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1), round=1, correct=True))
    _, second, third = (event for event in wrong.log() if event.kind == "corrected")
    assert [second.columns[name].tolist() for name in ("state", "carried_over", "reported")] == [[1], [False], [False]]
    assert [third.columns[name].tolist() for name in ("state", "carried_over", "reported")] == [[1], [True], [False]]
    assert wrong.get_round(2).reported.tolist() == wrong.get_round(3).reported.tolist() == [False, False, True]
    wrong.correct_states({"a": 0, "b": 1}, round=3)
    assert wrong.get_round(3).reported.tolist() == [True, True, True]
    assert wrong.get_round(3).carried_over.tolist() == [False, False, False]


def test_a_state_that_somebody_said_stops_it(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 0, "z": 0})
        program.learn(went("a", right) + went("b", right))
        pass_by(program, 1, first=1)
        program.decide({"a": 0, "z": 0})  # of b nothing is said
        pass_by(program, 1, first=1)
        close(program, [2, 3, 4], "a", "b")

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1) + went("b", 1), round=1, correct=True))
    assert corrected(wrong) == [(1, "outcomes", [0, 1]), (2, "states", [0, 1]), (3, "states", [1]), (4, "states", [1])]


def test_a_state_that_was_said_to_be_the_wrong_one_is_let_stand(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "z": 0})
        program.learn(went("a", right))
        program.decide({"a": 0, "z": 1})
        program.decide({"a": 1, "z": 0})
        close(program, [2, 3], "a")

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1), round=1, correct=True))
    assert states(wrong)[1][0] == 0
    assert corrected(wrong) == [(1, "outcomes", [0])]


def test_an_outcome_of_its_own_stops_it(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 0, "z": 0})
        program.learn(went("a", right) + went("b", right))
        pass_by(program, 1, first=1)
        program.learn(went("a", 0))
        pass_by(program, 2)
        close(program, [3, 4], "a", "b")

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1) + went("b", 1), round=1, correct=True))
    assert corrected(wrong) == [(1, "outcomes", [0, 1]), (2, "states", [0, 1]), (3, "states", [1]), (4, "states", [1])]


def test_a_late_outcome_is_corrected_where_it_was_known_and_not_before(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 0, "z": 0})
        pass_by(program, 1, first=1)  # goes on from the table of round 1
        program.learn(went("a", right), round=1)
        pass_by(program, 1)  # goes on from the outcome
        close(program, [2, 3], "a", "b")

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1), round=1, correct=True))
    assert states(wrong) == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert corrected(wrong) == [(1, "outcomes", [0]), (3, "states", [0])]


def test_a_wrong_state_went_on_until_its_outcome_was_reported_at_of(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": right, "b": 0, "z": 0})
        pass_by(program, 1, first=1)
        program.learn(went("a", 0), round=1)
        pass_by(program, 1)
        close(program, [2, 3], "a", "b")

    wrong = compare(desk, play, lambda p: p.correct_states({"a": 1}, round=1))
    assert corrected(wrong) == [(1, "states", [0]), (2, "states", [0])]


def test_an_outcome_of_a_later_round_that_came_first_is_the_newer_word(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "z": 0})
        pass_by(program, 1, first=1)
        program.learn(went("a", 0), round=2)
        program.learn(went("a", right), round=1)
        pass_by(program, 1)
        close(program, [3], "a")

    wrong = compare(desk, play, lambda p: p.learn(went("a", 1), round=1, correct=True))
    assert corrected(wrong) == [(1, "outcomes", [0])]


def test_who_is_left_out_for_a_while_still_goes_on_from_the_right_state(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": right, "z": 0})
        program.change(keep=0)
        pass_by(program, 1, first=1)
        program.change(keep=9)
        pass_by(program, 1)
        close(program, [1, 3], "a")

    wrong = compare(desk, play, lambda p: p.correct_states({"a": 1}, round=1))
    assert [program.size for program in (wrong.get_round(n).number for n in (1, 2, 3))] == [2, 1, 2]
    assert corrected(wrong) == [(1, "states", [0]), (3, "states", [0])]


def test_corrections_may_be_corrected_again_in_any_order(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": right, "b": right, "z": 0})
        program.learn(went("a", right))
        pass_by(program, 2, first=1)
        program.learn(went("b", right), round=2)
        pass_by(program, 2, first=1)
        close(program, [3, 4, 5], "a", "b")

    def fix(program: Program) -> None:
        program.learn(went("b", 1), round=2, correct=True)
        program.learn(went("a", 1), round=1, correct=True)
        program.learn(went("a", 0), round=1, correct=True)
        program.correct_states({"a": 1, "b": 1}, round=1)
        program.correct_states({"b": 0}, round=1)
        program.learn(went("a", 1), round=1, correct=True)
        program.correct_states({"b": 1}, round=1)

    compare(desk, play, fix, shadow="lagrange")


def test_one_table_may_correct_several_rounds_that_went_on_from_each_other(desk: Desk) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": 0, "z": 0})
        program.learn(went("a", right) + went("b", right))
        pass_by(program, 2, first=1)
        program.learn(went("a", 1 - right), round=3)
        pass_by(program, 3, first=1)
        program.learn(went("b", right), round=4)
        pass_by(program, 1)
        close(program, [2, 5, 6, 7], "a", "b")

    rows = went("a", 1, round=1) + went("a", 0, round=3) + went("b", 1, round=1) + went("b", 1, round=4)
    compare(desk, play, lambda p: p.learn(rows, correct=True))


def test_what_is_new_beside_a_correction_is_counted_though_the_round_was_long_ago(desk: Desk) -> None:
    program = make(desk, "long-ago", keep=9)
    program.decide({"a": 0, "b": 0, "c": 0, "z": 0})
    program.learn(went("a", 0))
    pass_by(program, 4, first=1)
    taken = program.learn(went("a", 1) + went("b", 1), round=1, correct=True)
    assert (taken.new, taken.corrected, taken.waiting) == (1, 1, 2)
    assert program.get_round(1).missing == 2


@pytest.mark.parametrize("place", range(4))
def test_a_snapshot_anywhere_in_between_makes_no_difference(desk: Desk, place: int) -> None:
    def play(program: Program, right: int) -> None:
        program.decide({"a": 0, "b": right, "z": 0})
        for number in range(4):
            if number == place:
                program.cache.save(now=True)
            if number == 1:
                program.learn(went("a", right), round=1)
            pass_by(program, 1, first=number + 1)
        close(program, [2, 3, 4, 5], "a", "b")

    def fix(program: Program) -> None:
        program.correct_states({"b": 1}, round=1)
        program.cache.save(now=True)
        program.learn(went("a", 1), round=1, correct=True)

    compare(desk, play, fix, shadow="lagrange")


def test_a_dry_run_fixs_no_round(desk: Desk) -> None:
    program = make(desk, "dry", keep=9)
    program.decide({"a": 0, "z": 0})
    program.learn(went("a", 0))
    pass_by(program, 2, first=1)
    before = know(program)
    assert program.learn(went("a", 1), round=1, correct=True, dry_run=True).corrected == 1
    assert program.correct_states({"a": 1}, round=1, dry_run=True) == 1
    assert (corrected(program), know(program)) == ([], before)
    assert program.correct_states({"a": 0}, round=1) == 0  # it is so already
    assert corrected(program) == []


def test_what_another_process_corrected_is_seen_in_the_rounds_at_hand(desk: Desk) -> None:
    one = make(desk, "seen", keep=9)
    one.decide({"a": 0, "z": 0})
    one.learn(went("a", 0))
    pass_by(one, 1, first=1)
    two = desk.program("seen")
    assert (one.get_round(2).state.tolist(), two.get_round(2).state.tolist()) == ([0, 1], [0, 1])
    one.learn(went("a", 1), round=1, correct=True)
    assert one.get_round(2).state.tolist() == two.get_round(2).state.tolist() == [1, 1]


@pytest.mark.parametrize("seed", [1, 2, 3, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 40))])
def test_any_story_with_gaps_and_delays_ends_as_if_right_at_once(desk: Desk, seed: int) -> None:
    """States go missing, outcomes come late or never; some of both are wrong, and corrected in any order."""
    rng, agents, rounds = np.random.default_rng(seed), call(6), 7
    said = [{name: int(rng.integers(2)) for name in agents if rng.random() < 0.4} for _ in range(rounds)]
    said[0] = dict.fromkeys(agents, 0)
    after = rng.integers(2, size=(rounds, len(agents)))
    reported_at = np.arange(rounds)[:, None] + rng.integers(0, 4, size=after.shape)  # after which round
    slips = [(number, name) for number in range(rounds) for name in said[number] if rng.random() < 0.3]
    lapses = [place for place in zip(*np.nonzero(reported_at < rounds), strict=True) if rng.random() < 0.3]

    def play(program: Program, right: int) -> None:
        for number in range(rounds):
            reported = {name: state ^ ((number, name) in slips and not right) for name, state in said[number].items()}
            program.decide(reported or None, again=True)
            rows = [
                went(agents[n], int(after[at, n]) ^ ((at, n) in lapses and not right), round=int(at) + 1, done=n < 2)[0]
                for at, n in zip(*np.nonzero(reported_at == number), strict=True)
            ]
            if rows:
                program.learn(rows)

    def fix(program: Program) -> None:
        todo: list[Any] = [*slips, *lapses]
        for place in rng.permutation(len(todo)):
            number, whom = todo[place]
            if isinstance(whom, str):
                assert program.correct_states({whom: said[number][whom]}, round=number + 1) == 1
            else:
                row = went(agents[whom], int(after[number, whom]), done=bool(whom < 2))
                assert program.learn(row, round=int(number) + 1, correct=True).corrected == 1

    compare(desk, play, fix, keep=99)


def test_a_story_where_everybody_always_has_a_state_is_corrected_in_place(desk: Desk) -> None:
    story, program = write(rounds=4), make(desk, "in-place", policy="random")
    record(program, story)
    row = story[1].rows[0]
    program.learn([row | {"next_state": 1 - row["next_state"]}], round=2, correct=True)
    program.correct_states({"a03": 1 - story[2].states["a03"]}, round=3)
    assert corrected(program) == [(2, "outcomes", [int(row["agent"][1:])]), (3, "states", [3])]


@pytest.mark.parametrize("policy", ["egt", "random"])
def test_a_report_that_is_withdrawn_is_as_if_it_had_not_been(desk: Desk, policy: str) -> None:
    names = f"withdrawn-{policy}", f"straight-{policy}"
    program, straight = (make(desk, name, policy=policy, cool_down=1) for name in names)
    for each in (program, straight):
        each.decide({"ann": 0, "ben": 1, "cem": 1})
    program.learn([{"agent": "ann", "done": True}, {"agent": "ben", "done": True, "next_state": 0}])
    program.learn([{"agent": "ann", "next_state": 1}])
    assert program.withdraw(["ann", "ben", "cem"], round=1, dry_run=True) == 2
    assert program.withdraw(["ann", "ben", "cem"], round=1) == 2
    assert program.withdraw(["ann"], round=1) == 0
    for each in (program, straight):
        each.learn([{"agent": "ann", "done": False, "next_state": 0}])
    assert know(program) == know(straight)
    rounds = program.get_round(1), straight.get_round(1)
    assert np.array_equal(rounds[0].reward, rounds[1].reward, equal_nan=True)
    assert [each.after.tolist() for each in rounds] == [[0, -1, -1]] * 2
    for each in (program, straight):
        each.decide({"cem": 0})
    refuse(program, "Round 2 .* was decided from this outcome of round 1", "withdraw", ["ann"], 1)
    assert know(program) == know(straight)
    assert replay(program).proven
