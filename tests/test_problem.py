"""An invalid problem is refused in one sentence that names the place; a valid one round-trips through its files bit for bit."""

import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive import InputError, Problem
from restive.problem import Drift
from restive.types import Floats

STAY, LEAVE = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]


def rows(agents: int, states: int, seed: int = 0) -> Floats:
    drawn = np.random.default_rng(seed).random((agents, 2, states, states)) + 0.01
    total: Floats = drawn / drawn.sum(axis=-1, keepdims=True)
    return total


def small(**changes: Any) -> Problem:
    return Problem(**{"transition": rows(3, 2), "reward": [0.0, 1.0], "budget": 1, **changes})


def same(one: Problem, two: Problem) -> bool:
    starts = one.start is two.start is None or np.array_equal(np.array(one.start), np.array(two.start))
    arrays = one.transition.tobytes() == two.transition.tobytes() and one.reward.tobytes() == two.reward.tobytes()
    costs = one.cost is two.cost is None or np.array_equal(np.array(one.cost), np.array(two.cost))
    facts = [(each.budget, each.states, each.name, each.spend) for each in (one, two)]
    return starts and arrays and costs and facts[0] == facts[1]


def test_one_row_of_rewards_is_every_agents() -> None:
    problem = small(reward=[3.0, 4.0])
    assert problem.reward.tolist() == [[3.0, 4.0]] * 3
    assert problem.shape == (3, 2)
    assert problem.start is None


def test_each_agent_may_have_its_own_rewards() -> None:
    assert small(reward=[[0, 1], [2, 3], [4, 5]]).reward.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_a_problem_keeps_its_own_copy_and_cannot_be_written_to() -> None:
    transition, reward, start = rows(3, 2), np.zeros((3, 2)), np.array([0, 1, 0])
    problem = Problem(transition, reward, 1, start)
    original = problem.transition.copy()
    transition[:], reward[:], start[:] = 0.5, 9.0, 1
    assert np.array_equal(problem.transition, original)
    assert (problem.reward == 0).all()
    assert problem.start is not None
    assert problem.start.tolist() == [0, 1, 0]
    for array in (problem.transition, problem.reward, problem.start):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 1


def test_another_budget_leaves_the_agents_as_they_are() -> None:
    problem = small(start=[1, 0, 1], states=["low", "high"], name="mine")
    other = problem.with_budget(3)
    assert other.budget == 3
    assert same(problem, other.with_budget(1))


def test_fortran_ordered_and_sliced_input_becomes_contiguous() -> None:
    transition = np.asfortranarray(rows(3, 4))
    problem = Problem(transition[::-1], [0, 1, 2, 3], 2)
    assert problem.transition.flags.c_contiguous
    assert np.array_equal(problem.transition, transition[::-1])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"transition": np.ones((3, 2, 2))}, r"transition has shape \[3, 2, 2\]; it must be \[agents, 2, states, st"),
        ({"transition": rows(3, 2)[:, :1]}, r"transition has shape \[3, 1, 2, 2\]"),
        ({"transition": rows(3, 2)[:, :, :1]}, r"transition has shape \[3, 2, 1, 2\]"),
        ({"transition": np.empty((0, 2, 2, 2))}, r"transition has shape \[0, 2, 2, 2\].*none of them 0"),
        ({"transition": [[STAY, [[1, 0], [1]]]]}, "transition must be a full array of numbers"),
        ({"transition": [[STAY, [["a", 0], [1, 0]]]]}, "transition must be a full array of numbers"),
        ({"transition": [[STAY, [[10**400, 0], [1, 0]]]]}, "transition must be a full array of numbers"),
        ({"reward": [0, 1, 2]}, r"reward has shape \[3\]; transition says \[3, 2\] \(or \[2\] for all alike\)"),
        ({"reward": 1.0}, r"reward has shape \[\]"),
        ({"reward": [[0, 1]] * 2}, r"reward has shape \[2, 2\]; transition says \[3, 2\]"),
        ({"reward": [[0, 1], [0, np.nan], [0, 1]]}, r"reward of agent 1, state 1 is nan; rewards must be finite\.$"),
        ({"reward": [np.inf, 1]}, r"reward of agent 0, state 0 is inf; rewards must be finite \(2 more such\)"),
        ({"reward": [0, None]}, "reward of agent 0, state 1 is nan"),
        ({"budget": -1}, "budget is -1; it must be a whole number from 0 to 3, the number of agents"),
        ({"budget": 4}, "budget is 4; it must be a whole number from 0 to 3"),
        ({"budget": 1.5}, "budget is 1.5; it must be a whole number"),
        ({"budget": True}, "budget is True; it must be a whole number"),
        ({"budget": "2"}, "budget is '2'; it must be a whole number"),
        ({"budget": None}, "budget is None; it must be a whole number"),
        ({"start": [0, 1]}, r"start has shape \[2\]; it must be \[3\], one state for each agent"),
        ({"start": [0, 2, 0]}, r"start of agent 1 is 2; states are whole numbers from 0 to 1\.$"),
        ({"start": [0.5, -1, 0]}, r"start of agent 0 is 0.5; states are whole numbers from 0 to 1 \(1 more such\)"),
        ({"start": [0, 0, np.nan]}, "start of agent 2 is nan"),
        ({"states": ["a"]}, r"states is \['a'\]; give 2 different names, one for each state, or none"),
        ({"states": ["a", "a"]}, "give 2 different names"),
        ({"states": "ab"}, "states is 'ab'; give 2 different names"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        small(**changes)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert "array(" not in text


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_a_wrong_probability_is_named_by_agent_action_and_states(value: float) -> None:
    transition = rows(3, 2)
    transition[2, 1, 0, 1] = value
    with pytest.raises(InputError, match=f"agent 2, action 1, from state 0 to state 1 is {value}; probabilities lie"):
        small(transition=transition)


def test_a_row_that_does_not_sum_to_one_is_named() -> None:
    transition = rows(3, 2)
    transition[1, 0, 1] = [0.25, 0.5]
    transition[2, 1, 1] = [0.25, 0.5]
    with pytest.raises(
        InputError, match=r"agent 1, action 0, from state 1 sums to 0.75; every row must sum to one \(1 more such\)"
    ):
        small(transition=transition)


def test_rounding_errors_of_a_row_are_tolerated_and_larger_errors_are_not() -> None:
    transition = np.array([[STAY, LEAVE]])
    transition[0, 0, 0, 0] = 1 - 5e-10
    assert Problem(transition, [0, 1], 1).shape == (1, 2)
    transition[0, 0, 0, 0] = 1 - 5e-9
    with pytest.raises(InputError, match=r"sums to 0\.999999995"):
        Problem(transition, [0, 1], 1)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(data=st.data(), agents=st.integers(1, 4), states=st.integers(1, 4))
def test_exactly_the_stochastic_arrays_are_accepted(data: st.DataObject, agents: int, states: int) -> None:
    transition = rows(agents, states)
    assert Problem(transition, np.zeros(states), 0).shape == (agents, states)
    place = tuple(data.draw(st.integers(0, size - 1)) for size in transition.shape)
    change = data.draw(st.floats(1e-6, 2.0)) * data.draw(st.sampled_from([-1, 1]))
    transition[place] += change
    with pytest.raises(InputError, match=f"agent {place[0]}, action {place[1]}, from state {place[2]}"):
        Problem(transition, np.zeros(states), 0)


@pytest.mark.parametrize("ending", [".json", ".npz"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"start": [1, 0, 1], "states": ["gut", "schlecht é"], "name": "naïve 'name'"},
        {"reward": [[1e-300, -1e300], [0.1, 1 / 3], [2**-1074, -0.0]], "budget": 0},
        {"transition": rows(3, 7, seed=3), "reward": np.arange(7), "budget": np.int64(3)},
    ],
)
def test_a_file_round_trips_bit_for_bit(tmp_path: Path, ending: str, changes: dict[str, Any]) -> None:
    problem = small(**changes)
    problem.save(tmp_path / f"problem{ending}")
    assert same(problem, Problem.load(tmp_path / f"problem{ending}"))
    assert [path.name for path in tmp_path.iterdir()] == [f"problem{ending}"]


def test_a_file_written_by_hand_is_read(tmp_path: Path) -> None:
    text = (
        '{"note": "two clinics", "transition": [[[[1, 0], [0, 1]], [[0, 1], [1, 0]]]], "reward": [0, 1], "budget": 1}'
    )
    (tmp_path / "hand.json").write_text(text)
    problem = Problem.load(str(tmp_path / "hand.json"))
    assert problem.transition.tolist() == [[STAY, LEAVE]]
    assert problem.name == ""


def test_a_numpy_file_of_another_program_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", transition=rows(3, 2), reward=np.array([0, 1]), budget=np.array(2, np.int8))
    assert same(Problem.load(tmp_path / "other.npz"), small(budget=2))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.txt", "{}", r"a\.txt: a problem file ends in \.json or \.npz"),
        ("a.json", "[1, 2]", r"a\.json: a problem is one JSON object; the file holds a list"),
        ("a.json", "{", r"a\.json: not a JSON file"),
        ("a.json", "", r"a\.json: not a JSON file"),
        ("a.json", "[" * 100_000, r"a\.json: not a JSON file"),
        ("a.json", '{"reward": 1' + "0" * 5000 + "}", r"a\.json: not a JSON file"),
        ("a.json", '{"format": "restive-problem-9"}', r"a\.json: format is 'restive-problem-9'; this version reads"),
        (
            "a.json",
            "{}",
            r"a\.json: budget and reward and transition missing; a problem has budget, change, cost, features, later_rew",
        ),
        ("a.json", '{"transition": [], "budget": 1}', r"a\.json: reward missing"),
        ("a.json", '{"transition": 0, "reward": 0, "budget": 0, "bugdet": 1}', r"a\.json: unknown entry bugdet;"),
        ("a.json", '{"transition": [], "reward": [], "budget": 1}', r"a\.json: transition has shape \[0\]"),
        ("a.npz", "not a zip", r"a\.npz: not an \.npz file of plain arrays"),
        ("a.npz", "", r"a\.npz: not an \.npz file of plain arrays"),
    ],
)
def test_a_file_that_is_no_problem_is_refused_by_name(tmp_path: Path, name: str, content: str, sentence: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=sentence) as caught:
        Problem.load(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"a\.json: not a JSON file"):
        Problem.load(tmp_path / "a.json")


def test_a_missing_file_stays_a_missing_file(tmp_path: Path) -> None:
    for name in ("none.json", "none.npz"):
        with pytest.raises(FileNotFoundError):
            Problem.load(tmp_path / name)


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "letter.npz", "w") as archive:
        archive.writestr("letter.txt", "dear reader")
    with pytest.raises(InputError, match=r"letter\.npz: not an \.npz file of plain arrays \(letter\.txt: .+\)\."):
        Problem.load(tmp_path / "letter.npz")
    with (tmp_path / "one.npz").open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(InputError, match=r"one\.npz: not an \.npz file"):
        Problem.load(tmp_path / "one.npz")


class Trap:
    """What an unpickler would run."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.place,))


def test_a_pickle_in_a_numpy_file_is_refused_and_not_run(tmp_path: Path) -> None:
    trap = Trap(tmp_path / "sprung")
    pickle.loads(pickle.dumps(trap))
    assert trap.place.exists(), "the trap works"
    trap.place.unlink()
    np.savez(tmp_path / "trap.npz", transition=rows(3, 2), reward=np.array([trap], dtype=object), budget=1)
    with pytest.raises(
        InputError, match=r"trap\.npz: not an \.npz file of plain arrays \(reward\.npy: Object arrays cannot be loaded"
    ):
        Problem.load(tmp_path / "trap.npz")
    assert not trap.place.exists()


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, ending: str) -> None:
    whole, cut = tmp_path / f"whole{ending}", tmp_path / f"cut{ending}"
    small().save(whole)
    content = whole.read_bytes()
    for length in range(0, len(content), 7):
        cut.write_bytes(content[:length])
        with pytest.raises(InputError, match="cut"):
            Problem.load(cut)


def test_a_flipped_bit_in_a_numpy_file_is_refused_or_harmless(tmp_path: Path) -> None:
    problem = small(name="bits")
    problem.save(tmp_path / "whole.npz")
    content, refused = (tmp_path / "whole.npz").read_bytes(), 0
    for place in range(0, len(content), 5):
        (tmp_path / "flipped.npz").write_bytes(
            content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        )
        try:
            assert same(problem, Problem.load(tmp_path / "flipped.npz")), place
        except InputError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_a_half_written_file_is_never_taken_for_a_whole_one(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"problem{ending}"
    small(budget=1).save(path)

    def stop(*_: Any, **__: Any) -> None:
        (tmp_path / f"problem{ending}.part").write_bytes(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(np, "savez_compressed", stop)
    monkeypatch.setattr(json, "dumps", stop)
    with pytest.raises(OSError, match="the disk is full"):
        small(budget=2).save(path)
    assert Problem.load(path).budget == 1
    with pytest.raises(InputError, match=r"\.part: a problem file ends in"):
        Problem.load(tmp_path / f"problem{ending}.part")


def test_an_unknown_suffix_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"problem\.csv: a problem file ends in \.json or \.npz"):
        small().save(tmp_path / "problem.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("key", ["transition", "reward", "budget", "start", "states"])
def test_a_wrong_entry_in_a_file_is_named_with_the_file(tmp_path: Path, key: str) -> None:
    small(start=[0, 0, 0], states=["a", "b"]).save(tmp_path / "a.json")
    record = json.loads((tmp_path / "a.json").read_text())
    record[key] = {"nested": True}
    (tmp_path / "a.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match=rf"a\.json: {key}"):
        Problem.load(tmp_path / "a.json")


def test_a_problem_says_what_it_is() -> None:
    assert repr(small()) == "Problem(agents=3, states=2, budget=1)"
    assert repr(small(name="clinics")) == "Problem('clinics', agents=3, states=2, budget=1)"


def drifting(first: int = 3, last: int = 7) -> Problem:
    return small(start=[0, 1, 0]).change_to(small(transition=rows(3, 2, seed=1), reward=[2.0, 5.0]), first, last)


def test_a_problem_that_changes_is_a_mix_of_its_two_ends() -> None:
    problem, later = drifting(), small(transition=rows(3, 2, seed=1), reward=[2.0, 5.0])
    assert problem.at(3).transition.tobytes() == problem.transition.tobytes()
    assert np.allclose(problem.at(5).transition, (problem.transition + later.transition) / 2, rtol=1e-15)
    assert problem.at(6).reward[0].tolist() == [1.5, 4.0]
    for step in (7, 999):
        assert problem.at(step).transition.tobytes() == later.transition.tobytes()
        assert problem.at(step).drift is None


def test_a_long_drift_has_a_limited_number_of_segments() -> None:
    changes = drifting(0, 1_000_000).drift.changes  # type: ignore[union-attr]
    assert (changes.size, changes[0], changes[-1]) == (65, 0, 1_000_000)
    assert small().change_to(small(), 0).at(0).drift is None


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_a_problem_that_changes_comes_back_from_its_file(tmp_path: Path, ending: str) -> None:
    problem, path = drifting(), tmp_path / f"problem{ending}"
    problem.save(path)
    back = Problem.load(path)
    assert same(problem, back)
    assert back.drift is not None
    assert problem.drift is not None
    assert [np.asarray(part).tobytes() for part in back.drift] == [np.asarray(part).tobytes() for part in problem.drift]


def test_the_same_problem_with_another_budget_keeps_its_drift() -> None:
    assert drifting().with_budget(2).at(9).reward[0].tolist() == [2.0, 5.0]


@pytest.mark.parametrize(
    ("drift", "sentence"),
    [
        (Drift(rows(3, 2), np.zeros(2), 5, 3), r"change is \[5, 3\]; it must be two steps, .* in order"),
        (Drift(rows(3, 2), np.zeros(2), -1, 3), "from 0 to 1000000000"),
        (
            Drift(rows(4, 2), np.zeros(2), 0, 3),
            r"after the change: transition has shape \[4, 2, 2, 2\]; before it \[3, 2, 2, 2\]",
        ),
        (Drift(rows(3, 2) / 2, np.zeros(2), 0, 3), "after the change: transition of agent 0, action 0, .* sums to 0.5"),
        (Drift(rows(3, 2), np.zeros(3), 0, 3), "after the change: reward has shape"),
    ],
)
def test_a_drift_that_cannot_be_is_refused(drift: Drift, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        small(drift=drift)


def test_a_file_with_half_a_drift_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    drifting().save(path)
    record = json.loads(path.read_text())
    del record["change"]
    path.write_text(json.dumps(record))
    with pytest.raises(InputError, match="a drift has all of later_transition, later_reward, change"):
        Problem.load(path)


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_features_come_back_from_a_file_with_the_unknown_ones(tmp_path: Path, ending: str) -> None:
    problem, path = small(features=[[1.5, 2], [np.nan, 0], [3, 4]]), tmp_path / f"problem{ending}"
    problem.save(path)
    back = Problem.load(path)
    assert back.features is not None
    assert np.array_equal(back.features, np.array([[1.5, 2], [np.nan, 0], [3, 4]]), equal_nan=True)
    with pytest.raises(ValueError, match="read-only"):
        back.features[0] = 0
    assert small().features is None


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ([[1], [2]], r"features has shape \[2, 1\]; it must be \[3, F\], 1 to 100 numbers for each agent"),
        ([1, 2, 3], r"features has shape \[3\]"),
        (np.zeros((3, 101)), "1 to 100 numbers"),
        ([[1], [np.inf], [2]], "feature 0 of agent 1 is infinite; features are finite, or NaN if unknown"),
        ([[1], ["old"], [2]], "features must be a full array of numbers"),
    ],
)
def test_features_that_cannot_be_are_refused(features: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        small(features=features)


@pytest.mark.parametrize("ending", [".json", ".npz"])
def test_costs_and_how_the_budget_is_spent_survive_files_and_another_budget(tmp_path: Path, ending: str) -> None:
    problem = small(budget=7, cost=[0.5, 3, 1e3], spend="at most")
    problem.save(tmp_path / f"problem{ending}")
    assert same(Problem.load(tmp_path / f"problem{ending}"), problem)
    assert same(problem.with_budget(9).with_budget(7), problem)
    assert repr(problem) == "Problem(agents=3, states=2, budget=7, cost=[...], spend='at most')"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cost": [1, 0, 2]}, "cost of agent 1 is 0; a cost is above 0 and finite."),
        ({"cost": [1, -2, -3]}, "cost of agent 1 is -2; a cost is above 0 and finite (1 more such)."),
        ({"cost": [1, 2]}, "cost has shape [2]; it must be [3], one number for each agent."),
        ({"cost": [1, None, 2]}, "cost of agent 1 is nan; a cost is above 0 and finite."),
        ({"cost": [1, 1, 1], "budget": -1}, "budget is -1; it must be a whole number from 0 on."),
        ({"spend": "most"}, "spend is 'most'; it must be 'exactly' or 'at most'."),
    ],
)
def test_invalid_costs_and_spending_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        small(**changes)
    assert str(refused.value) == message
