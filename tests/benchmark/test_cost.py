"""Costs are measured in turns, the best of each counts, and a slow policy gets fewer rounds."""

import pytest

from restive.benchmark import cost
from restive.benchmark.cost import Costs, measure_costs
from restive.paper.jobs import Size
from restive.policies.base import Policy
from restive.world import World


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Who played, and with how many states; the very first turn is disturbed and takes three times as long."""
    turns: list[tuple[str, int]] = []

    def play(world: World, player: Policy[object]) -> float:
        turns.append((player.name, world.shape.states))
        seconds = {"egt": 0.2, "wiql": 0.1, "rma2b": 3.0}[player.name]
        return seconds if len(turns) != 1 else 3 * seconds

    monkeypatch.setattr(cost, "_time", play)
    return turns


def test_policies_take_turns_and_the_best_turn_counts(played: list[tuple[str, int]]) -> None:
    costs = measure_costs(["wiql"], Size(quick=True))
    assert [turn for turn in played if turn[1] == 2][:4] == [("egt", 2), ("wiql", 2), ("egt", 2), ("wiql", 2)]
    cells = 10 * cost.RUNS * 50 * 1000
    assert costs.nanoseconds[2] == pytest.approx({"egt": 1e9 * 0.2 / cells, "wiql": 1e9 * 0.1 / cells})
    assert costs.nanoseconds[10]["egt"] == pytest.approx(1e9 * 0.2 / (cells / 2))
    assert costs.ratio(10, "wiql") == pytest.approx(0.5)


def test_a_slow_policy_is_measured_once(played: list[tuple[str, int]]) -> None:
    measure_costs(["rma2b", "wiql"], Size(quick=True))
    assert played.count(("rma2b", 10)) == 1
    assert played.count(("wiql", 10)) == cost.ROUNDS


def test_eps_gt_is_always_measured_beside(played: list[tuple[str, int]]) -> None:
    lines: list[str] = []
    assert set(measure_costs(["wiql"], Size(quick=True), lines.append).nanoseconds[2]) == {"egt", "wiql"}
    assert lines == ["cost of a step, S = 2", "cost of a step, S = 10"]


def test_costs_as_data_have_policy_states_and_ratio() -> None:
    assert Costs({2: {"egt": 20.0, "wiql": 15.0}}).as_json()[1] == {
        "policy": "wiql",
        "states": 2,
        "nanoseconds_per_agent_step": 15.0,
        "ratio_to_egt": 0.75,
    }


def test_a_turn_is_a_whole_run_on_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "HORIZON", 20)
    costs = measure_costs(["random"], Size(quick=True))
    assert all(taken > 0 for policies in costs.nanoseconds.values() for taken in policies.values())
