"""Drift alarms: known changes are found, dated and placed, and nothing is said where nothing changed."""

import numpy as np

from restive.logs.acceptance.drift import check_detection, check_false_alarms
from restive.logs.drift import WARM_UP, find_alarms

BEFORE = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.4, 0.6], [0.1, 0.9]]])
PEOPLE = np.array([[60, 60], [15, 15]])  # by action and state


def draw_moves(rows: np.ndarray, rounds: int, seed: int, factor: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).multinomial(factor * PEOPLE, rows, (rounds, 2, 2))


def change(action: int, state: int, row: list[float]) -> np.ndarray:
    after = BEFORE.copy()
    after[action, state] = row
    return after


def test_a_changed_row_is_found_with_its_date_and_probabilities() -> None:
    for action, state in ((0, 0), (0, 1), (1, 0), (1, 1)):
        after = change(action, state, [0.95, 0.05] if BEFORE[action, state, 0] < 0.5 else [0.4, 0.6])
        moves = np.concatenate([draw_moves(BEFORE, 40, seed=3), draw_moves(after, 15, seed=4)])
        [alarm] = find_alarms(moves)
        assert (alarm.action, alarm.state) == (action, state)
        assert abs(alarm.since - 40) <= 1
        assert alarm.found < 48
        assert np.abs(alarm.before - BEFORE[action, state]).max() < 0.06
        assert np.abs(alarm.after - after[action, state]).max() < 0.2


def test_small_changes_everywhere_are_found_together() -> None:
    after = 0.9 * BEFORE + [0.1, 0.0]
    moves = np.concatenate([draw_moves(BEFORE, 40, seed=5), draw_moves(after, 30, seed=55)])
    [alarm] = find_alarms(moves)
    assert (alarm.action, alarm.state) == (None, None)
    assert abs(alarm.since - 40) <= 2


def test_a_million_people_are_no_reason_for_alarm() -> None:
    assert find_alarms(draw_moves(BEFORE, 100, seed=7, factor=10_000)) == []


def test_rows_without_moves_and_short_programs_say_nothing() -> None:
    moves = draw_moves(BEFORE, 30, seed=8)
    moves[:, 1] = 0
    assert find_alarms(moves) == []
    assert find_alarms(moves[:0]) == []
    turned = np.concatenate([draw_moves(BEFORE, 3, seed=9), draw_moves(BEFORE[..., ::-1], WARM_UP - 4, seed=9)])
    assert find_alarms(turned) == []


def test_false_alarms_and_detection_in_a_small_form() -> None:
    results = [*check_false_alarms(quick=True), *check_detection(quick=True)]
    assert len(results) == 5
    assert all(result.holds for result in results), results
