"""The status is plain data, its JSON has finite numbers only, and the next steps are those that wait."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from restive.desk.config import Words
from restive.desk.lift import compare_policies, lift, lift_by_round
from restive.desk.status import Learned, People, RoundRow, Status, Waiting, next_steps
from restive.version import __version__

WORDS = Words(person="shop", people="shops", action="a coupon", every="week", reward_unit="orders a week")


@pytest.fixture
def status() -> Status:
    luck = np.random.default_rng(4)
    reward, control = luck.gamma(2.0, 0.5, (3, 20)), np.arange(20) < 5
    sides = (~control, control)
    sums = np.array([[row[side].sum() for row in reward] for side in sides])
    squares = np.array([[(row[side] ** 2).sum() for row in reward] for side in sides])
    probability, agent = np.full(60, 0.2), np.tile(np.arange(20), 3)
    rounds = [RoundRow(n + 1, "2026-03-02T08:15:00.000000+00:00", 20, 4, 4, 3, 1, 20, n, 1, 1.0 + n) for n in range(3)]
    return Status(
        name="shops",
        title="Coupons",
        store="shops.db",
        policy="lagrange",
        seed=7,
        people=People(active=20, control=5),
        words=WORDS,
        rounds=rounds,
        lift=lift(reward.sum(axis=0), np.full(20, 3), control),
        curve=lift_by_round(sums, squares, np.array([[15] * 3, [5] * 3])),
        shadow=compare_policies(reward.ravel(), luck.random(60) < 0.2, probability, probability, agent),
        learned=[Learned("silent", 20, 0.4, math.nan, 15)],
    )


def test_json_is_strict_and_holds_everything(status: Status) -> None:
    record = json.loads(json.dumps(status.as_json(), allow_nan=False))
    assert record["rounds"][2]["reward_mean"] == 3.0
    assert record["rounds"][2]["control_mean"] is None
    assert record["learned"][0]["spread"] is None
    assert record["lift"]["control"] == 5
    assert len(record["curve"]["lift"]["low"]) == 3
    assert record["shadow"]["mean"] == 0.0
    assert record["words"]["reward_unit"] == "orders a week"
    assert record["version"] == __version__
    assert [(row["done"], row["unasked"]) for row in record["rounds"]] == [(3, 0), (3, 1), (3, 2)]
    assert (record["actions"], record["budget_used"]) == (12, 0.75)  # what nobody asked for uses no budget
    assert status.lift is not None
    assert record["extra_per_action"][0] == pytest.approx(status.lift.extra / 12)


def test_a_program_that_has_not_begun_has_a_status_too(status: Status) -> None:
    fresh = replace(status, rounds=(), lift=None, curve=None, shadow=None, learned=(), people=People(0))
    record = json.loads(json.dumps(fresh.as_json(), allow_nan=False))
    assert record["budget_used"] is None
    assert record["extra_per_action"] is None
    assert record["curve"] is None


def test_rounds_that_wait_come_first_and_in_order() -> None:
    waiting = [Waiting(8, 1), Waiting(7, 1200)]
    steps = next_steps("shops", WORDS, People(40, control=4), waiting, decided=8)
    assert [*map(str, steps)] == [
        "Round 7 waits for outcomes of 1,200 shops: restive desk learn shops --outcomes OUTCOMES.csv",
        "Round 8 waits for outcomes of 1 shop: restive desk learn shops --outcomes OUTCOMES.csv",
        "Round 9 can be decided as soon as states are there: restive desk decide shops --states STATES.csv",
    ]


def test_an_open_round_is_decided_before_the_next() -> None:
    steps = next_steps("shops", WORDS, People(40, control=4), [Waiting(3, 0, decided=False)], decided=2)
    assert [*map(str, steps)] == ["Round 3 is open and has no list yet: restive desk decide shops"]


def test_the_first_the_last_and_the_missing_control_group_are_spoken_of() -> None:
    assert "Nobody has joined yet" in next_steps("shops", WORDS, People(0), [], decided=0)[0].sentence
    (over,) = next_steps("shops", WORDS, People(40, control=4), [Waiting(30, 5)], decided=30, horizon=30)[1:]
    assert over.sentence.startswith("All 30 rounds are decided")
    assert "no control group" in next_steps("shops", WORDS, People(40), [], decided=3)[-1].sentence
    assert len(next_steps("shops", WORDS, People(40), [], decided=0)) == 1
