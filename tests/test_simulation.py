"""The loop: the same bits however it is split, a known course in a clockwork world, and anyone's policy plays."""

import threading
import tracemalloc
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from restive import InputError, Problem, Simulation, Trace, World, make_policy, make_problems, simulate
from restive.contract import Draws, Ranking, Shape
from restive.policies.base import Learner, Policy
from restive.types import Floats, Ints

MODULE = import_module("restive.simulation")
CORE = ["random", "egt", "wiql", "threshold-oracle", "greedy-oracle", "whittle-oracle"]
STAY, LEAVE = [[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]


def some(instances: int = 3, agents: int = 6, budget: int = 2, seed: int = 1) -> list[Problem]:
    return make_problems("two-state-v1", instances=instances, agents=agents, budget=budget, seed=seed)


def same(one: Trace, other: Trace) -> bool:
    return one.reward.tobytes() == other.reward.tobytes() and one.cost.tobytes() == other.cost.tobytes()


class Memory(NamedTuple):
    seen: Floats  # [R, N]


@dataclass(frozen=True)
class Rotate(Learner[Memory]):
    """Acts on the agents that were acted on least, in NumPy only."""

    name: ClassVar[str] = "rotate"

    def start(self, shape: Shape) -> Memory:
        return Memory(np.zeros((shape.runs, shape.agents)))

    def rank(self, belief: Memory, state: Ints, draws: Draws) -> Ranking | Floats:
        return -belief.seen

    def learn(self, belief: Memory, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        belief.seen[...] += action


@pytest.mark.parametrize("policy", CORE)
def test_threads_and_chunks_change_nothing(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def split(threads: int) -> Trace:
        return simulate(some(), policy, horizon=40, runs=5, seed=2, noise=0.5, threads=threads)

    whole = split(1)
    monkeypatch.setattr(MODULE, "MIN_THREAD_CELLS", 1)
    assert all(same(whole, split(threads)) for threads in (2, 3, 15, 64))
    monkeypatch.setattr(MODULE, "fitting_runs", lambda shape: 1)
    assert all(same(whole, split(threads)) for threads in (1, 4))
    monkeypatch.setattr(MODULE, "fitting_runs", lambda shape: 4)
    assert same(whole, split(2))


@pytest.mark.parametrize(("agents", "states", "runs"), [(50, 2, 400), (50, 10, 80), (50, 99, 80), (10**6, 2, 1)])
def test_a_chunk_has_as_many_runs_as_fit_the_cache(agents: int, states: int, runs: int) -> None:
    assert MODULE.fitting_runs(Shape(10**6, agents, states, 1, None, np.ones(1))) == runs


@pytest.mark.parametrize("policy", CORE)
def test_a_simulation_in_pieces_is_the_whole(policy: str) -> None:
    world = World(some(), runs=2, seed=3, noise=0.1, horizon=30)
    whole = simulate(some(), policy, horizon=30, runs=2, seed=3, noise=0.1)
    simulation = Simulation(world, make_policy(policy))
    pieces = [simulation.advance(steps) for steps in (1, 1, 17, 11)]
    assert simulation.step == 30
    assert np.hstack([reward for reward, _ in pieces]).tobytes() == whole.reward.tobytes()
    assert np.hstack([cost for _, cost in pieces]).tobytes() == whole.cost.tobytes()


def test_a_deterministic_world_follows_its_known_course() -> None:
    # Agents stay while waiting and swap when acted on; each is acted on every third step, in turn.
    problem = Problem([[STAY, LEAVE]] * 3, [0, 1], budget=1, start=[0, 0, 0])
    trace = simulate(problem, Rotate(), horizon=9, runs=2)
    assert trace.reward.tolist() == [[1.0, 2.0, 3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0]] * 2


def test_the_cost_is_that_of_acting_below_the_threshold() -> None:
    # The benefit of acting is 1 in state 0 and −1 in state 1, where a threshold of 0 makes it cost 1.
    problem = Problem([[STAY, LEAVE]], [0, 1], budget=1, start=[0])
    assert simulate(problem, "random", horizon=4, threshold=0.0).cost.tolist() == [[0.0, 1.0, 0.0, 1.0]]
    assert simulate(problem, "random", horizon=4).cost.tolist() == [[0.0] * 4]


def test_runs_of_an_instance_stay_the_same_when_instances_are_added() -> None:
    problems = some(4)
    few, many = (simulate(each, "egt", horizon=50, runs=3, seed=6) for each in (problems[:2], problems))
    assert few.reward.tobytes() == many.reward[:6].tobytes()
    assert few.cost.tobytes() == many.cost[:6].tobytes()


def test_a_longer_run_begins_like_a_shorter_one() -> None:
    short, long = (simulate(some(), "wiql", horizon=horizon, runs=2, seed=7) for horizon in (20, 60))
    assert np.array_equal(short.reward, long.reward[:, :20])


class Record(NamedTuple):
    pass


@dataclass(frozen=True)
class Fixed(Learner[Record]):
    """The first B agents, always, or only from a certain step on at random; keeps what it was shown."""

    name: ClassVar[str] = "fixed"
    shown: ClassVar[list[tuple[Ints, Ints]]] = []
    stray: int = 10**9

    def start(self, shape: Shape) -> Record:
        return Record()

    def rank(self, belief: Record, state: Ints, draws: Draws) -> Floats:
        priority = np.broadcast_to(-np.arange(state.shape[1], dtype=np.float64), state.shape)
        return draws.uniform() if draws.step >= self.stray else priority

    def learn(self, belief: Record, state: Ints, action: Ints, reward: Floats, after: Ints) -> None:
        self.shown.append((state.copy(), action.copy()))


def test_policies_get_the_same_random_numbers_while_they_act_the_same() -> None:
    shown = []
    for policy in (Fixed(), Fixed(stray=12)):
        Fixed.shown.clear()
        simulate(some(1)[0], policy, horizon=30, runs=4, seed=8, threads=1)
        shown.append(list(Fixed.shown))
    one, other = shown
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(one[:13], other[:13], strict=True))
    assert not all(np.array_equal(a[0], b[0]) for a, b in zip(one[13:], other[13:], strict=True))
    for (state, action), (elsewhere, reaction), (then, _), (there, _) in zip(
        one[:-1], other[:-1], one[1:], other[1:], strict=True
    ):
        alike = (state == elsewhere) & (action == reaction)
        assert np.array_equal(then[alike], there[alike])


@pytest.mark.parametrize("policy", CORE)
@pytest.mark.parametrize(("agents", "budget"), [(1, 0), (1, 1), (4, 0), (4, 4), (5, 2)])
def test_exactly_the_budget_is_spent_in_every_step(policy: str, agents: int, budget: int) -> None:
    world, player = World(some(2, agents, budget), runs=3, horizon=25), make_policy(policy)
    belief, state = player.begin(world.shape, world.model), world.first_states()
    for step in range(25):
        draws = world.draws(step)
        action = world.choose(MODULE.as_ranking(player.rank(belief, state, draws), world.shape, policy), draws)
        assert (action.sum(axis=1) == budget).all()
        assert np.isin(action, (0, 1)).all()
        outcome = world.advance(state, action, draws)
        player.learn(belief, state, action, outcome.reward, outcome.after)
        state = outcome.after


@pytest.mark.parametrize("policy", CORE)
def test_agents_with_a_single_state_can_be_simulated(policy: str) -> None:
    problem = Problem(np.ones((3, 2, 1, 1)), [2.0], budget=1)
    trace = simulate(problem, policy, horizon=5, runs=2)
    assert (trace.reward == 6.0).all()
    assert (trace.cost == 0.0).all()


@pytest.mark.parametrize("policy", CORE)
def test_reordering_the_agents_reorders_what_happens_to_them(policy: str) -> None:
    world = World(some(2), runs=3, seed=5, noise=0.2, horizon=60)
    order = np.array([4, 1, 5, 0, 3, 2])
    plain, turned = (Simulation(each, make_policy(policy)) for each in (world, world.permute(order)))
    for _ in range(60):
        plain.advance(1)
        turned.advance(1)
        assert np.array_equal(plain.state[:, order], turned.state)


@pytest.mark.parametrize(
    "make",
    [
        lambda priority: priority,
        lambda priority: priority.astype(np.float32),
        lambda priority: priority.astype(np.int64),
        lambda priority: np.asfortranarray(priority),
        lambda priority: priority.tolist(),
        lambda priority: Ranking(priority, np.zeros(len(priority))),
    ],
)
def test_a_policy_in_plain_numpy_can_return_any_kind_of_array(make: Any) -> None:
    @dataclass(frozen=True)
    class Odd(Rotate):
        name: ClassVar[str] = "odd"

        def rank(self, belief: Memory, state: Ints, draws: Draws) -> Ranking | Floats:
            ranked: Ranking | Floats = make(-belief.seen)
            return ranked

    whole = simulate(some(), Rotate(), horizon=20, runs=2)
    assert same(whole, simulate(some(), Odd(), horizon=20, runs=2))


@dataclass(frozen=True)
class Faulty(Rotate):
    """Gives NaN for one agent from a certain step on."""

    name: ClassVar[str] = "faulty"
    step: int = 3
    explore: float = 0.0

    def rank(self, belief: Memory, state: Ints, draws: Draws) -> Ranking:
        priority = belief.seen * 1.0
        if draws.step >= self.step:
            priority[-1, 4] = np.nan
        return Ranking(priority, np.full(len(priority), self.explore))


@pytest.mark.parametrize("explore", [0.0, 1.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_missing_priority_ends_in_a_sentence(explore: float, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "MIN_THREAD_CELLS", 1)
    run = "(3|7|11)" if threads == 3 else "11"  # the last of its chunk, whichever chunk was first
    with pytest.raises(
        InputError, match=f"^faulty: the priority of agent 4 is NaN in step 3 of run {run}; it must be a number"
    ):
        simulate(some(), Faulty(explore=explore), horizon=9, runs=4, threads=threads)


def test_an_error_spares_the_chunks_that_have_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []

    @dataclass(frozen=True)
    class Failing(Rotate):
        name: ClassVar[str] = "failing"

        def start(self, shape: Shape) -> Memory:
            begun.append(threading.get_ident())
            raise ZeroDivisionError("as it happens")

    monkeypatch.setattr(MODULE, "fitting_runs", lambda shape: 1)
    with pytest.raises(ZeroDivisionError, match="as it happens"):
        simulate(some(1)[0], Failing(), horizon=5, runs=2000, threads=1)
    assert len(begun) < 2000


def test_progress_counts_every_step_of_every_run_one_call_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MODULE, "MIN_THREAD_CELLS", 1)
    counted, busy = [], threading.Lock()

    def progress(steps: int) -> None:
        assert busy.acquire(blocking=False)
        counted.append(steps)
        busy.release()

    simulate(some(), "random", horizon=250, runs=4, threads=3, progress=progress)
    assert sum(counted) == 12 * 250
    assert min(counted) > 0


def test_a_trace_says_what_it_was_made_of() -> None:
    trace = simulate(some(2), "egt:eta=0.5", horizon=7, runs=3, seed=9, noise=0.25, threshold=0.1)
    assert trace.reward.shape == trace.cost.shape == (6, 7)
    assert trace.instance.tolist() == [0, 0, 0, 1, 1, 1]
    wanted = {
        "policy": "egt", "problem": "two-state-v1", "instances": 2, "runs": 3, "agents": 6, "states": 2, "budget": 2,
        "horizon": 7, "noise": 0.25, "seed": 9, "threshold": [0.1, 0.1],
    }  # fmt: skip
    assert wanted.items() <= trace.spec.items()
    assert trace.spec["settings"] == make_policy("egt:eta=0.5").settings()


def peak(horizon: int, policy: str | Policy[Any]) -> int:
    """The most memory that was held at once, less that of the answer itself."""
    problem = make_problems("two-state-v1", agents=200, budget=20)[0]
    simulate(problem, policy, horizon=horizon, runs=4, threads=1)  # whatever is loaded at first use is not counted
    tracemalloc.start()
    try:
        simulate(problem, policy, horizon=horizon, runs=4, threads=1)
        return tracemalloc.get_traced_memory()[1] - 2 * 4 * horizon * 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("policy", ["random", "egt", "wiql", "greedy-oracle"])
def test_memory_does_not_grow_with_the_horizon(policy: str) -> None:
    short, long = peak(100, policy), peak(2000, policy)
    # States and actions of all steps would be 2 · 4 · 200 · 1,900 · 8 bytes more: 24 MB.
    assert long < short + 100_000


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"horizon": 0}, "horizon is 0; it must be a whole number from 1 on"),
        ({"horizon": 1.5}, "horizon is 1.5; it must be a whole number from 1 on"),
        ({"horizon": True}, "horizon is True; it must be a whole number from 1 on"),
        ({"horizon": "9"}, "horizon is '9'; it must be a whole number from 1 on"),
        ({"runs": 0}, "runs is 0; it must be a whole number from 1 on"),
        ({"seed": -3}, "seed is -3; it must be a whole number from 0 to 9223372036854775807"),
        ({"noise": -1}, "noise is -1; it is a variance, a finite number from 0 on"),
        ({"threshold": float("nan")}, "threshold is nan; it must be a number, or None"),
        ({"threads": 0}, "threads is 0; it must be a whole number from 1 on"),
        ({"policy": "rnadom"}, "there is no policy 'rnadom'; there are .*did you mean 'random'"),
        ({"policy": Rotate}, "policy is <class .*Rotate'>; it must be a policy such as"),
        ({"problem": None}, "problems must be one Problem or a list of at least one"),
        ({"problem": "two-state-v1"}, "problems must be one Problem or a list of at least one"),
    ],
)
def test_invalid_arguments_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        simulate(**{"problem": some(), "policy": "random", "horizon": 5, **settings})


@pytest.mark.parametrize("agents", [100_000, pytest.param(1_000_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("policy", ["egt", "wiql", "random"])
def test_exactly_the_budget_is_spent_with_very_many_agents(policy: str, agents: int) -> None:
    good = np.random.default_rng(1).random((agents, 2, 2))
    problem = Problem(np.stack([1 - good, good], axis=-1), [0.0, 1.0], budget=agents // 20)
    simulation = Simulation(World(problem, seed=2, noise=0.1, horizon=20), make_policy(policy))
    for _ in range(5):
        ranking, action = simulation.decide()
        assert action.sum() == agents // 20
        assert np.isin(action, (0, 1)).all()
        if not ranking.explore.any():
            assert ranking.priority[action == 1].min() >= ranking.priority[action == 0].max()
        reward, _ = simulation.advance()
        assert 0.4 < float(reward[0, 0]) / agents < 0.6


def test_problems_may_come_from_a_generator() -> None:
    listed, streamed = (simulate(each, "egt", 9) for each in (some(), (problem for problem in some())))
    assert same(listed, streamed)
    assert listed.spec == streamed.spec
