"""A trace: its measures by hand, and files that come back bit for bit or are refused."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from restive import InputError, Trace, files, make_policy, make_problems, simulate
from restive.policies.egt import Egt


def trace_of(reward: list[list[float]], instance: list[int], cost: list[list[float]] | None = None) -> Trace:
    array = np.array(reward)
    costs = np.zeros_like(array) if cost is None else np.array(cost)
    return Trace(array, costs, np.array(instance), {"seed": 1, "version": "9"})


def played(**settings: Any) -> Trace:
    problems = make_problems("two-state-v1", instances=2, agents=4, budget=1, seed=5)
    return simulate(problems, **{"policy": "egt", "horizon": 12, "runs": 3, "noise": 0.1, "seed": 4, **settings})


def test_bands_are_over_instances_when_there_are_several() -> None:
    trace = trace_of([[1, 3], [3, 3], [5, 7], [7, 7]], [0, 0, 1, 1])
    assert trace.running_mean().tolist() == [[1, 2], [3, 3], [5, 6], [7, 7]]
    assert trace.by_instance(trace.running_mean()).tolist() == [[2.0, 2.5], [6.0, 6.5]]
    assert trace.bands().mean.tolist() == [4.0, 4.5]
    assert trace.bands().error.tolist() == [2.0, 2.0]
    reward = trace.mean_reward()
    assert (float(reward.mean), float(reward.error)) == (4.5, 2.0)
    assert float(trace.mean_reward(first=1).mean) == 5.0


def test_bands_are_over_runs_when_there_is_one_instance() -> None:
    trace = trace_of([[1, 1], [3, 3]], [0, 0])
    assert trace.bands().mean.tolist() == [2.0, 2.0]
    assert float(trace.mean_reward().error) == 1.0


def test_regret_is_cumulated_cost_less_that_of_a_reference() -> None:
    trace = trace_of([[0, 0, 0]], [0], cost=[[1, 0, 2]])
    reference = trace_of([[0, 0, 0]], [0], cost=[[0, 1, 1]])
    assert trace.regret().tolist() == [[1, 1, 3]]
    assert trace.regret(reference).tolist() == [[1, 0, 1]]


def test_the_gap_closed_is_the_way_from_floor_to_ceiling() -> None:
    floor, middle, ceiling = (trace_of([[x, x], [x + 1, x + 3]], [0, 1]) for x in (0.0, 1.0, 4.0))
    assert float(middle.gap_closed(floor, ceiling).mean) == 0.25
    assert float(floor.gap_closed(floor, ceiling).mean) == 0.0
    assert float(ceiling.gap_closed(floor, ceiling, step=1).mean) == 1.0
    assert float(middle.gap_closed(floor, ceiling, step=2).mean) == 0.25


def test_the_gap_at_a_step_uses_only_what_came_before() -> None:
    floor, ceiling = trace_of([[0, 0, 9]], [0]), trace_of([[2, 4, 0]], [0])
    assert float(trace_of([[1, 2, 50]], [0]).gap_closed(floor, ceiling, step=2).mean) == 0.5


@pytest.mark.parametrize("step", [0, -1, 13, 2.0])
def test_a_step_that_was_not_simulated_is_refused(step: Any) -> None:
    trace = played()
    with pytest.raises(InputError, match=f"step is {step}; it must be a whole number from 1 to 12"):
        trace.gap_closed(trace, trace, step=step)


@pytest.mark.parametrize("first", [-1, 12])
def test_a_first_step_that_was_not_simulated_is_refused(first: int) -> None:
    with pytest.raises(InputError, match=f"first is {first}; it must be a whole number from 0 to 11"):
        played().mean_reward(first=first)


def test_seed_and_version_are_at_hand() -> None:
    trace = trace_of([[0.0]], [0])
    assert (trace.seed, trace.version) == (1, "9")


@pytest.mark.parametrize(
    "settings", [{}, {"horizon": 1}, {"runs": 1}, {"horizon": 1, "runs": 1}, {"threshold": np.inf}]
)
def test_a_file_round_trips_bit_for_bit(tmp_path: Path, settings: dict[str, Any]) -> None:
    trace = played(**settings)
    trace.save(tmp_path / "trace.parquet")
    again = Trace.load(tmp_path / "trace.parquet")
    for name in ("reward", "cost", "instance"):
        one, other = getattr(trace, name), getattr(again, name)
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()
        assert other.flags.c_contiguous
    assert again.spec == trace.spec
    assert sorted(path.name for path in tmp_path.iterdir()) == ["trace.parquet", "trace.parquet.sha256"]


def test_odd_numbers_and_odd_names_survive_a_file(tmp_path: Path) -> None:
    trace = trace_of([[np.nan, np.inf, -0.0, 2.0**-1074]], [0])
    trace.save(tmp_path / "a [1]*.parquet")
    assert Trace.load(str(tmp_path / "a [1]*.parquet")).reward.tobytes() == trace.reward.tobytes()


def test_numbers_of_numpy_in_the_settings_survive_a_file(tmp_path: Path) -> None:
    settings = {"seed": np.int64(4), "runs": np.int32(3), "horizon": np.int16(12), "noise": np.float32(0.125)}
    trace = played(policy=Egt(gamma=np.int64(0)), **settings)  # type: ignore[arg-type]
    trace.save(tmp_path / "trace.parquet")
    assert Trace.load(tmp_path / "trace.parquet").spec == trace.spec
    assert trace.spec == played(policy=Egt(gamma=0), noise=0.125).spec


def test_a_loaded_trace_can_be_made_again_from_its_spec(tmp_path: Path) -> None:
    trace = played(policy="wiql:discount=0.5")
    trace.save(tmp_path / "trace.parquet")
    spec = Trace.load(tmp_path / "trace.parquet").spec
    family = make_problems(
        spec["problem"], instances=spec["instances"], agents=spec["agents"], budget=spec["budget"], seed=5
    )
    policy = type(make_policy(spec["policy"]))(**spec["settings"])
    again = simulate(family, policy, spec["horizon"], spec["runs"], spec["seed"], spec["noise"])
    assert again.reward.tobytes() == trace.reward.tobytes()
    assert again.spec == trace.spec


def test_the_spec_distinguishes_problems() -> None:
    first, second = make_problems("two-state-v1", instances=2, agents=4, budget=1)
    digests = {
        simulate(each, "random", 1).spec["fingerprint"] for each in (first, second, [first, second], [second, first])
    }
    assert len(digests) == 4
    assert simulate(first, "random", 1).spec["fingerprint"] == simulate([first], "egt", 2).spec["fingerprint"]


def test_what_is_no_parquet_file_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"PAR1", b"hello", b"PAR1" + b"\0" * 50 + b"PAR"):
        (tmp_path / "a.parquet").write_bytes(content)
        with pytest.raises(InputError, match=r"a\.parquet: not a Parquet file, or an incomplete one") as caught:
            Trace.load(tmp_path / "a.parquet")
        assert "\n" not in str(caught.value)
    with pytest.raises(FileNotFoundError):
        Trace.load(tmp_path / "none.parquet")


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    polars.DataFrame({"reward": [1.0]}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"a\.parquet: not a trace of this version \(format None"):
        Trace.load(tmp_path / "a.parquet")
    files.write_parquet(tmp_path / "a.parquet", "restive-trace-9", {}, {"reward": np.ones(1)})
    with pytest.raises(InputError, match=r"format 'restive-trace-9', not 'restive-trace-2'"):
        Trace.load(tmp_path / "a.parquet")


def test_a_trace_can_be_read_as_any_other_parquet_file(tmp_path: Path) -> None:
    trace = played()
    trace.save(tmp_path / "a.parquet")
    frame = polars.read_parquet(tmp_path / "a.parquet")
    assert frame["reward"].to_numpy().tobytes() == trace.reward.tobytes()
    assert json.loads(polars.read_parquet_metadata(tmp_path / "a.parquet")["spec"]) == trace.spec


def test_a_trace_cut_short_anywhere_is_refused(tmp_path: Path) -> None:
    played().save(tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    for length in range(0, len(content), 41):
        (tmp_path / "cut.parquet").write_bytes(content[:length])
        with pytest.raises(InputError, match=r"cut\.parquet: not a Parquet file, or an incomplete one"):
            Trace.load(tmp_path / "cut.parquet")


def test_a_flipped_bit_in_a_trace_is_refused(tmp_path: Path) -> None:
    played().save(tmp_path / "whole.parquet")
    content = (tmp_path / "whole.parquet").read_bytes()
    for place in range(0, len(content), 29):
        flipped = content[:place] + bytes([content[place] ^ 1 << place % 8]) + content[place + 1 :]
        (tmp_path / "whole.parquet").write_bytes(flipped)
        with pytest.raises(InputError, match=r"whole\.parquet: (damaged|not a Parquet file)"):
            Trace.load(tmp_path / "whole.parquet")


def test_a_half_written_trace_never_replaces_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "trace.parquet"
    played().save(path)
    before = path.read_bytes()

    def stop(descriptor: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(OSError, match="the disk is full"):
        played(seed=99).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_regret_refuses_a_reference_of_another_world_or_threshold() -> None:
    for other in ({"seed": 5}, {"threshold": 0.2}, {"runs": 1}):
        with pytest.raises(InputError, match=f"they differ in {next(iter(other))}"):
            played().regret(played(**other))
