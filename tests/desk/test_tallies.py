"""Sums by state and action are those of the log, also of a sample of people, and survive a snapshot."""

import numpy as np
import pytest

from restive.desk import tallies as module
from restive.desk.tallies import ACT, COUNT, SQUARES, SUM, WAIT, Tallies


def make_tallies(agents: int = 4) -> Tallies:
    tallies = Tallies.empty(3)
    tallies.grow(agents)
    return tallies


def add(tallies: Tallies, *rows: tuple[int, int, bool, float, int]) -> None:
    number, state, done, reward, after = (np.array(column) for column in zip(*rows, strict=True))
    tallies.add(number, state, done, reward.astype(float), after)


def test_outcomes_are_added_up_by_person_state_and_action() -> None:
    tallies = make_tallies()
    add(tallies, (0, 1, True, 2.0, 2), (3, 1, False, -1.0, 0))
    add(tallies, (0, 1, True, 3.0, 1))
    assert tallies.people[0, ACT, 1].tolist() == [2, 5, 13]
    assert tallies.people[3, WAIT, 1, [COUNT, SUM, SQUARES]].tolist() == [1, -1, 1]
    assert (tallies.people[..., COUNT].sum(), tallies.moves.sum()) == (3, 3)
    assert (tallies.moves[ACT, 1].tolist(), tallies.moves[WAIT, 1].tolist()) == ([0, 1, 1], [1, 0, 0])
    assert tallies.reward_range.tolist() == [-1, 3]


def test_better_is_a_higher_state_and_in_the_best_one_the_same() -> None:
    tallies = make_tallies()
    add(tallies, (0, 0, True, 0.0, 2), (1, 1, True, 0.0, 0), (2, 2, False, 0.0, 2), (3, 2, False, 0.0, 1))
    assert tallies.count_better() == {"outcomes": [[0, 0, 2], [1, 1, 0]], "better": [[0, 0, 1], [1, 0, 0]]}


def test_of_many_people_every_second_is_kept_whenever_they_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SAMPLED", 8)
    grown, whole = make_tallies(5), make_tallies(30)
    rows = [(number, number % 3, number % 2 == 0, float(number), 0) for number in range(5)]
    add(grown, *rows)
    grown.grow(30)
    add(whole, *rows)
    assert (int(whole.stride), len(whole.people)) == (4, 8)
    assert np.array_equal(grown.people, whole.people)
    assert whole.people[1, 0 if 4 % 2 else 1, 1, SUM] == 4.0
    assert grown.moves.sum() == 5  # of everybody
