"""The list: exactly what was decided, in finite numbers, now or later."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from restive.desk import Desk, Recommendation
from restive.desk.agents import RoundTotals
from restive.desk.config import Config, Words
from restive.desk.events import Decided, DecisionInput, States
from restive.desk.roster import Names
from restive.desk.rounds import Round

COLUMNS = [
    "round", "rank", "agent", "group", "list", "state_now", "exploration", "probability", "priority",
    "margin", "reason",
]  # fmt: skip


def make_recommendation(**changed: Any) -> Recommendation:
    """Two on the list, one of whom must be, and two spares; six people, one in the control group, one cooling down."""
    listed = {
        "agent": np.array([4, 0, 2, 5]), "kind": np.array([0, 1, 2, 2], np.uint8), "state": np.array([1, 0, 0, 1]),
        "carried_over": np.array([False, False, True, False]), "group": np.array([1, -1, 0, 1], np.int16),
        "explored": np.array([False, False, False, False]), "probability": np.array([0.75, 1.0, 0.25, 0.0]),
        "priority": np.array([2.0, math.inf, 1.0, -math.inf]), "margin": np.array([1.0, math.inf, -1.0, -math.inf]),
        "since": np.array([-1, 2, -1, 3]),
    }  # fmt: skip
    bar = np.array([4, 1, 0, 3, 0, 0], np.uint8)
    unknown, chosen = np.full(6, -1), np.array([1, 0, 0, 0, 1, 0]) > 0
    about = {
        "policy": "egt", "explored": 0, "left_out": 0, "displaced": {"must list": 1},
        "outcomes": [[40, 30], [8, 0]], "better": [[5, 20], [3, 0]],
    }  # fmt: skip
    kept = np.arange(6) == 2
    states = States(np.arange(6), np.array([0, 1, 0, 0, 1, 1]), kept, ~kept)
    decided = Decided(DecisionInput(states, 2), about, {"exclusion": bar, "chosen": chosen}, listed)
    nothing = np.full(6, math.nan), unknown, unknown, unknown > 0, unknown > 0, unknown + 1
    found = Round(3, "later", decided, states, unknown, *nothing)
    names = Names(pl.Series("name", ["ann", "ben", None, "dee", "eve", "fay"]))
    totals = RoundTotals(3, "later", "2026-11-16", "week", 2, 5, 6, 1)
    given: dict[str, Any] = {"program": "one", "config": Config(("low", "high")), "found": found, "totals": totals}
    given["names"] = names
    return Recommendation(**given | {"groups": ["north", "south"]} | changed)


def test_the_list_is_ranked_and_the_spares_have_ranks_of_their_own() -> None:
    recommendation = make_recommendation()
    assert (recommendation.round, recommendation.budget) == (3, 2)
    assert (recommendation.chosen, recommendation.reserve) == (["eve", "ann"], ["(erased)", "fay"])
    assert recommendation.table.columns == COLUMNS
    assert recommendation.table.select("round", "rank", "agent", "group", "list", "state_now").rows() == [
        (3, 1, "eve", "south", "chosen", "high"), (3, 2, "ann", None, "must", "low"),
        (3, 1, "(erased)", "north", "reserve", "low"), (3, 2, "fay", "south", "reserve", "high"),
    ]  # fmt: skip


def test_what_is_not_finite_is_null_in_the_table_and_in_json() -> None:
    recommendation = make_recommendation()
    assert recommendation.table["priority"].to_list() == [2.0, None, 1.0, None]
    record = json.loads(json.dumps(recommendation.as_json(), allow_nan=False))
    assert record["displaced"] == {"must list": 1}
    assert record["people"][1]["margin"] is None
    assert (record["round"], record["present"], record["decided_at"]) == (3, 6, "later")


def test_people_in_json_are_the_rows_of_the_table() -> None:
    recommendation = make_recommendation()
    assert recommendation.as_json()["people"] == [
        {**row, "cost": None, "display": {}} for row in recommendation.table.to_dicts()
    ]


def test_the_call_list_has_no_erased_people_and_the_reasons_of_the_table() -> None:
    recommendation = make_recommendation()
    call_list = recommendation.call_list
    assert call_list.select("rank", "agent", "state_now", "round").rows() == [
        ("1", "eve", "high", 3), ("2", "ann", "low", 3), ("reserve 2", "fay", "high", 3),
    ]  # fmt: skip
    reasons = dict(recommendation.table.select("agent", "reason").rows())
    assert call_list["reason"].to_list() == [reasons[agent] for agent in ("eve", "ann", "fay")]


def test_those_who_could_not_be_chosen_are_counted_by_reason() -> None:
    assert make_recommendation().exclusions() == {"control group": 1, "cooling down": 1}


def test_every_line_has_its_reason() -> None:
    reasons = make_recommendation().table["reason"].to_list()
    low = "Better a round later: 3 of 8 times after an action, 5 of 40 times without."
    assert reasons[0].startswith("An action was never tried in this state.")
    assert reasons[1].startswith(f"On the must list. {low}")
    assert reasons[2].startswith(low)


def test_a_reason_says_when_the_state_is_from_an_earlier_round() -> None:
    older = " The state is from an earlier week."
    recommendation = make_recommendation(config=Config(("low", "high"), words=Words(every="week")))
    reasons = recommendation.table["reason"].to_list()
    assert [reason.endswith(older) for reason in reasons] == [False, False, True, False]
    assert recommendation.as_json()["carried_over"] == 1


def test_a_state_that_was_carried_on_is_called_so_on_the_list_and_one_of_an_outcome_is_not(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], control=0.0, seed=3, budget=1, keep=2)
        program.decide(dict.fromkeys(["ann", "ben", "cem"], 0))
        program.learn([{"agent": "ben", "next_state": "high"}])
        program.decide({"ann": 0})
        listed = program.recommendation(2).table
    older = {row["agent"] for row in listed.to_dicts() if "from an earlier round" in row["reason"]}
    assert (listed.height, older) == (3, {"cem"})


@pytest.mark.parametrize("policy", ["lagrange", "egt", "wiql", "random", "thompson-whittle"])
def test_a_list_is_the_same_years_later_and_its_numbers_are_finite(policy: str, tmp_path: Path) -> None:
    states = {f"p{n:02}": n % 3 for n in range(20)}
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", template="loyalty", policy=policy, shadow="egt", budget=4, seed=3)
        made = []
        for round_ in range(4):
            made.append(program.decide(states, again=True))
            program.learn([{"agent": name, "next_state": (n + round_) % 3} for n, name in enumerate(states)])
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.program("one")
        for recommendation in made:
            later = program.recommendation(recommendation.round)
            assert later.table.equals(recommendation.table)
            assert json.dumps(later.as_json() | {"notes": []}) == json.dumps(recommendation.as_json() | {"notes": []})
            assert len(recommendation.chosen) == 4
            assert len(recommendation.reserve) == min(
                10, int((recommendation.found.choice["exclusion"] == 0).sum()) - 4
            )
            json.dumps(recommendation.as_json(), allow_nan=False)
            probability = recommendation.table["probability"]
            assert probability.is_between(0, 1).all()
            assert (probability[:4] > 0).all()


def test_an_empty_list_has_all_columns(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", template="loyalty", control=0.999, seed=3)
        recommendation = program.decide({"ann": 0})
    assert (recommendation.table.height, recommendation.table.columns) == (0, COLUMNS)
    assert recommendation.as_json()["people"] == []


def test_the_groups_on_a_list_are_those_of_the_day_that_it_was_decided(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", template="loyalty", control=0.0, seed=3, cool_down=0)
        people = {"zoe": (0, "west"), "ann": (0, "north"), "ben": (0, None), "cem": (0, "south")}
        first = program.decide(people, never=["zoe"])  # so that places on the list are not those in the round
        second = program.decide({"ann": (0, "south"), "ben": (0, "east"), "cem": (0, None)}, never=["zoe"])
        later = program.recommendation(1)
    groups = [dict(zip(each.table["agent"], each.table["group"], strict=True)) for each in (first, second)]
    assert groups == [
        {"ann": "north", "ben": None, "cem": "south"}, {"ann": "south", "ben": "east", "cem": "south"},
    ]  # fmt: skip
    assert later.table.equals(first.table)


def test_the_first_people_of_a_list_are_those_of_the_whole() -> None:
    recommendation = make_recommendation()
    whole = recommendation.as_json()
    assert (recommendation.size, len(whole["people"])) == (recommendation.table.height, recommendation.table.height)
    for most in (0, 1, 3, 100):
        assert recommendation.as_json(most) == whole | {"people": whole["people"][:most]}


def test_who_is_still_to_be_reported_at_of_can_be_filled_in_and_brought_back(tmp_path: Path) -> None:
    with Desk(tmp_path / "desk.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], budget=2, control=0.0, policy="egt")
        chosen = program.decide(dict.fromkeys(("ann", "ben", "cem", "dee", "eve"), "low")).chosen
        reported_at, gone = chosen[0], next(name for name in ("ann", "ben", "cem", "dee", "eve") if name not in chosen)
        program.learn([{"agent": reported_at, "next_state": "high"}])
        program.erase([gone])
        table = program.recommendation(1).to_report
        assert table["advised"].to_list() == [True, False, False]
        assert table["agent"][0] == chosen[1]
        assert reported_at not in table["agent"]
        assert table.select("done", "next_state").null_count().row(0) == (3, 3)
        taken = program.learn(table.with_columns(done=pl.lit("yes"), next_state=pl.lit("low")))
        assert (taken.new, taken.waiting) == (3, 0)
        assert program.recommendation(1).to_report.height == 0


def test_some_rows_are_what_they_are_in_the_whole_list() -> None:
    recommendation = make_recommendation()
    rows = recommendation.table.to_dicts()
    for part in (slice(0), slice(1, 3), slice(2, 9), slice(7, 9), slice(None)):
        assert recommendation.people(part) == [{**row, "cost": None, "display": {}} for row in rows[part]]
