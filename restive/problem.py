"""A restless bandit problem: transition probabilities, rewards and the budget of N agents with S states.

A problem is validated once, here, and its arrays are read-only. Files are `.json` (readable) or `.npz` (compact), by
their suffix.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from restive.display import Displayed, axes_of
from restive.errors import InputError
from restive.files import read_npz, write_atomic, write_npz
from restive.types import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMAT = "restive-problem-1"
MAX_NAMED = 6  # states that a figure names
TOLERANCE = 1e-9
# Whether the budget is spent in every step, or only on agents that are expected to gain.
EXACTLY, AT_MOST = "exactly", "at most"
# A slow drift is a sequence of at most so many models between its two ends.
MAX_SEGMENTS = 64
MAX_STEP = 10**9
MAX_FEATURES = 100


class Drift(NamedTuple):
    """How dynamics change: from step `first` to step `last` they move in equal parts to these, and stay there.

    With `first` = `last` they change at once. Between the ends a model is the linear mix of the two.
    """

    transition: Floats  # [N, A, S, S] from step `last` on
    reward: Floats  # [N, S]
    first: int
    last: int

    @property
    def changes(self) -> Ints:
        """The step with which each segment of constant dynamics begins, [G].

        >>> Drift(np.eye(2), np.eye(2), first=10, last=10).changes, Drift(np.eye(2), np.eye(2), 10, 14).changes
        (array([ 0, 10]), array([ 0, 11, 12, 13, 14]))
        """
        length = self.last - self.first
        segments = max(1, min(MAX_SEGMENTS, length))
        return np.append(0, self.first + np.arange(1, segments + 1) * length // segments)

    def mix(self, segment: int, transition: Floats, reward: Floats) -> tuple[Floats, Floats]:
        """Transitions and rewards in a segment, if these are the first ones."""
        share = segment / (self.changes.size - 1)
        return (1 - share) * transition + share * self.transition, (1 - share) * reward + share * self.reward


class People(Protocol):
    """Something that knows people as a problem: a history or a fitted model."""

    def problem(self, budget: int) -> "Problem":
        """The people with a budget."""


class Problem(Displayed):
    """N agents with S states and two actions, and the number of agents acted on in every step.

    Parameters
    ----------
    transition
        [N, 2, S, S]; transition[n, a, s, t] is the probability that agent n moves from state s to t under action a.
    reward
        [N, S], the expected reward of an agent on arriving in a state; [S] if it is the same for all agents.
    budget
        Exactly this many agents get action 1 in every step, from 0 to N; with costs, the sum of their costs is at most
        this, a whole number from 0 on.
    start
        [N], the first state of each agent; None for a uniformly random one in each run.
    states
        A name for each state; empty for none.
    name
        A name for the problem, used in traces and output.
    drift
        How the dynamics change over the run; None if they do not. `change_to` makes it of another problem.
    features
        [N, F], fixed numbers that are known of each agent, such as age, NaN where unknown; None for none. The dynamics
        do not use them; learners may.
    cost
        [N], above 0: what acting on each agent takes of the budget; None if it is 1 for all of them. With costs, agents
        are taken in the order of their priority, and those whose cost exceeds what is left of the budget are skipped.
    spend
        "exactly" to spend the budget in every step as far as possible; "at most" to leave out agents that the policy
        expects to lose by the action.

    Raises
    ------
    InputError
        If a shape does not fit, a probability or reward is not valid, or a row does not sum to 1.

    Examples
    --------
    >>> stay, leave = [[1, 0], [0, 1]], [[0, 1], [1, 0]]
    >>> Problem([[stay, leave]] * 3, reward=[0, 1], budget=1)
    Problem(agents=3, states=2, budget=1)
    """

    def __init__(
        self,
        transition: ArrayLike,
        reward: ArrayLike,
        budget: int,
        start: ArrayLike | None = None,
        states: Sequence[str] = (),
        name: str = "",
        drift: Drift | None = None,
        features: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        spend: str = EXACTLY,
    ) -> None:
        self.transition = _transition(transition)
        agents, size = self.shape
        self.reward = _reward(reward, agents, size)
        self.cost = None if cost is None else check_cost(cost, agents)
        self.spend = check_spend(spend)
        self.budget = _budget(budget, None if self.cost is not None else agents)
        self.start = None if start is None else _start(start, agents, size)
        self.states = _states(states, size)
        self.name = str(name)
        self.drift = None if drift is None else _drift(drift, agents, size)
        self.features = None if features is None else check_features(features, agents)

    @property
    def shape(self) -> tuple[int, int]:
        """The number of agents and of states."""
        return self.transition.shape[0], self.transition.shape[2]

    def replace(self, **changes: Any) -> "Problem":
        """The same problem; `changes` are arguments of `Problem` that replace its own."""
        return Problem(**{name: getattr(self, name) for name in ARGUMENTS} | changes)

    def with_budget(self, budget: int) -> "Problem":
        """The same agents with another `budget`."""
        return self.replace(budget=budget)

    def change_to(self, later: "Problem", first: int, last: int | None = None) -> "Problem":
        """The same agents, whose transitions and rewards are those of `later` from a step on.

        Without `last` they change at once, before step `first`; with it they move there from step `first` to `last`.
        """
        return self.replace(drift=Drift(later.transition, later.reward, first, first if last is None else last))

    def at(self, step: int) -> "Problem":
        """The problem whose dynamics stay as they are at a `step`, counted from 0."""
        if self.drift is None:
            return self
        segment = int(np.searchsorted(self.drift.changes, step, side="right")) - 1
        transition, reward = self.drift.mix(segment, self.transition, self.reward)
        return self.replace(transition=transition, reward=reward, drift=None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write to the `.json` or `.npz` file `path`, atomically."""
        writer = _choose(WRITERS, Path(path))
        record = {"format": FORMAT, "name": self.name, "states": list(self.states), "budget": self.budget}
        if self.spend != EXACTLY:
            record["spend"] = self.spend
        arrays = {"transition": self.transition, "reward": self.reward, "start": self.start, "cost": self.cost}
        arrays["features"] = self.features
        if self.drift is not None:
            arrays |= {"later_transition": self.drift.transition, "later_reward": self.drift.reward}
            arrays["change"] = np.array(self.drift[2:])
        writer(Path(path), record, {key: array for key, array in arrays.items() if array is not None})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Problem":
        """Read the `.json` or `.npz` file `path`; what is wrong with it is an `InputError` that names the entry."""
        file = Path(path)
        record = _choose(READERS, file)(file)
        if not isinstance(record, Mapping):
            raise InputError(f"{file}: a problem is one JSON object; the file holds a {type(record).__name__}.")
        if str(record.get("format", FORMAT)) != FORMAT:
            raise InputError(f"{file}: format is {record['format']!r}; this version reads {FORMAT!r}.")
        known = {*ARGUMENTS, *LATER} - {"drift"}
        if missing := {"transition", "reward", "budget"} - set(record):
            raise InputError(
                f"{file}: {' and '.join(sorted(missing))} missing; a problem has {', '.join(sorted(known))}."
            )
        if unknown := set(record) - known - {"format", "note"}:
            raise InputError(
                f"{file}: unknown entry {', '.join(sorted(unknown))}; a problem has {', '.join(sorted(known))} and a note."
            )
        try:
            given = {key: record[key] for key in known & set(record)}
            return cls(**_read_drift(given))
        except InputError as error:
            raise InputError(f"{file}: {error}") from None

    @classmethod
    def from_history(cls, history: People, budget: int) -> "Problem":
        """The people of a `history`, or of a model fitted to one, with a `budget`.

        Each has the moves that are expected of it, and starts in its last state.
        """
        return history.problem(budget)

    def facts(self) -> dict[str, object]:
        """Name and size."""
        named = {"name": self.name} if self.name else {}
        given = {"states": ", ".join(self.states) or self.shape[1], "budget": self.budget, "spend": self.spend}
        extra = {name: "given" for name in ("start", "drift", "features", "cost") if getattr(self, name) is not None}
        return {**named, "agents": self.shape[0], **given, **extra}

    def to_frame(self) -> pl.DataFrame:
        """One row for each agent, action, state and next state, with the probability of the move and its reward."""
        agents, states = self.shape
        places = np.indices((agents, 2, states, states)).reshape(4, -1)
        columns = dict(zip(("agent", "action", "state", "next_state"), places, strict=True))
        rewards = self.reward[places[0], places[3]]
        return pl.DataFrame({**columns, "probability": self.transition.ravel(), "reward": rewards})

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw on `ax`, or on new axes, what the action adds to the reward of a step: by state, agents from most to least."""
        benefit = ((self.transition[:, 1] - self.transition[:, 0]) * self.reward[:, None]).sum(axis=2)
        names = self.states or tuple(map(str, range(self.shape[1])))
        with axes_of(ax) as drawn:
            for s, name in enumerate(names):
                drawn.plot(
                    np.sort(benefit[:, s])[::-1],
                    label=f"in state {name}" if len(names) <= MAX_NAMED else None,
                    linewidth=1.4,
                )
            drawn.set(xlabel="agents, by benefit", ylabel="reward that the action\nadds in a step")
        return drawn

    def __repr__(self) -> str:
        named = f"{self.name!r}, " if self.name else ""
        rules = ", cost=[...]" * (self.cost is not None) + f", spend={self.spend!r}" * (self.spend != EXACTLY)
        return f"Problem({named}agents={self.shape[0]}, states={self.shape[1]}, budget={self.budget}{rules})"


ARGUMENTS = ("transition", "reward", "budget", "start", "states", "name", "drift", "features", "cost", "spend")
LATER = ("later_transition", "later_reward", "change")  # the entries of a drift in a file


def _read_drift(record: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a problem: the entries of a drift as one."""
    given = [record.pop(key, None) for key in LATER]
    if all(part is None for part in given):
        return record
    if any(part is None for part in given):
        raise InputError(f"a drift has all of {', '.join(LATER)}; some are missing.")
    transition, reward, steps = given
    first, last = _steps(steps)
    return {**record, "drift": Drift(transition, reward, first, last)}


def _steps(given: Any) -> tuple[int, int]:
    steps = _numbers(given, "change")
    whole = steps.shape == (2,) and bool((steps == np.floor(steps)).all())
    if not whole or not 0 <= steps[0] <= steps[1] <= MAX_STEP:
        raise InputError(
            f"change is {given!r}; it must be two steps, the first and the last of the change, from 0 to {MAX_STEP}, "
            "in order."
        )
    return int(steps[0]), int(steps[1])


def check_features(given: ArrayLike, agents: int) -> Floats:
    """Validate the features of so many agents, [N, F]; NaN is an unknown one."""
    array = _numbers(given, "features")
    if array.ndim != 2 or array.shape[0] != agents or not 1 <= array.shape[1] <= MAX_FEATURES:
        raise InputError(
            f"features has shape {list(array.shape)}; it must be [{agents}, F], 1 to {MAX_FEATURES} numbers for each agent."
        )
    bad = np.isinf(array)
    if bad.any():
        agent, feature = np.argwhere(bad)[0]
        raise InputError(f"feature {feature} of agent {agent} is infinite; features are finite, or NaN if unknown.")
    frozen: Floats = _frozen(array)
    return frozen


def _drift(given: Drift, agents: int, states: int) -> Drift:
    try:
        transition, reward = _transition(given.transition), _reward(given.reward, agents, states)
    except InputError as error:
        raise InputError(f"after the change: {error}") from None
    if transition.shape != (agents, 2, states, states):
        raise InputError(
            f"after the change: transition has shape {list(transition.shape)}; before it "
            f"[{agents}, 2, {states}, {states}]."
        )
    return Drift(transition, reward, *_steps([given.first, given.last]))


def _numbers(values: ArrayLike, what: str) -> Floats:
    try:
        return np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{what} must be a full array of numbers; an entry is missing or not a number.") from None


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _transition(values: ArrayLike) -> Floats:
    array = _numbers(values, "transition")
    if array.ndim != 4 or array.shape[1] != 2 or array.shape[2] != array.shape[3] or 0 in array.shape:
        raise InputError(
            f"transition has shape {list(array.shape)}; it must be [agents, 2, states, states], none of them 0."
        )
    bad = ~((array >= 0) & (array <= 1))
    if bad.any():
        agent, action, state, after = np.argwhere(bad)[0]
        raise InputError(
            f"transition of agent {agent}, action {action}, from state {state} to state {after} is "
            f"{array[agent, action, state, after]}; probabilities lie between 0 and 1{_more(bad)}."
        )
    total = array.sum(axis=3)
    bad = np.abs(total - 1) > TOLERANCE
    if bad.any():
        agent, action, state = np.argwhere(bad)[0]
        raise InputError(
            f"transition of agent {agent}, action {action}, from state {state} sums to "
            f"{total[agent, action, state]:.12g}; every row must sum to one{_more(bad)}."
        )
    frozen: Floats = _frozen(array)
    return frozen


def _more(bad: Any) -> str:
    others = int(bad.sum()) - 1
    return f" ({others} more such)" if others else ""


def _reward(values: ArrayLike, agents: int, states: int) -> Floats:
    array = _numbers(values, "reward")
    if array.shape not in ((states,), (agents, states)):
        raise InputError(
            f"reward has shape {list(array.shape)}; transition says [{agents}, {states}] (or [{states}] for all alike)."
        )
    array = np.ascontiguousarray(np.broadcast_to(array, (agents, states)))
    bad = ~np.isfinite(array)
    if bad.any():
        agent, state = np.argwhere(bad)[0]
        raise InputError(
            f"reward of agent {agent}, state {state} is {array[agent, state]}; rewards must be finite{_more(bad)}."
        )
    frozen: Floats = _frozen(array)
    return frozen


def _budget(value: object, agents: int | None) -> int:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    number = int(value) if whole else -1  # type: ignore[call-overload]
    if number < 0 or (agents is not None and number > agents):
        allowed = "from 0 on" if agents is None else f"from 0 to {agents}, the number of agents"
        raise InputError(f"budget is {value!r}; it must be a whole number {allowed}.")
    return number


def check_cost(values: ArrayLike, agents: int) -> Floats:
    """Validate costs, [N]."""
    array = _numbers(values, "cost")
    if array.shape != (agents,):
        raise InputError(f"cost has shape {list(array.shape)}; it must be [{agents}], one number for each agent.")
    bad = ~((array > 0) & np.isfinite(array))
    if bad.any():
        agent = int(bad.argmax())
        raise InputError(f"cost of agent {agent} is {array[agent]:g}; a cost is above 0 and finite{_more(bad)}.")
    frozen: Floats = _frozen(array)
    return frozen


def check_spend(value: object) -> str:
    """Validate how the budget is spent."""
    if value not in (EXACTLY, AT_MOST):
        raise InputError(f"spend is {value!r}; it must be {EXACTLY!r} or {AT_MOST!r}.")
    return str(value)


def _start(values: ArrayLike, agents: int, states: int) -> Ints:
    array = _numbers(values, "start")
    if array.shape != (agents,):
        raise InputError(f"start has shape {list(array.shape)}; it must be [{agents}], one state for each agent.")
    bad = ~((array >= 0) & (array < states) & (array == np.floor(array)))
    if bad.any():
        agent = int(np.argwhere(bad)[0][0])
        raise InputError(
            f"start of agent {agent} is {array[agent]:g}; states are whole numbers from 0 to {states - 1}{_more(bad)}."
        )
    frozen: Ints = _frozen(array.astype(np.int64))
    return frozen


def _states(names: object, states: int) -> tuple[str, ...]:
    listed = tuple(str(name) for name in names) if isinstance(names, list | tuple | np.ndarray) else None
    if listed is None or (listed and (len(listed) != states or len(set(listed)) != states)):
        raise InputError(f"states is {names!r}; give {states} different names, one for each state, or none.")
    return listed


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a JSON file ({error}).") from None


def _read_npz(path: Path) -> Any:
    return {key: value.item() if value.ndim == 0 else value for key, value in read_npz(path).items()}


def _write_json(path: Path, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    write_atomic(path, json.dumps({**record, **{key: value.tolist() for key, value in arrays.items()}}).encode())


def _write_npz(path: Path, record: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    write_npz(path, {**record, **arrays}, compress=True)


READERS: Mapping[str, Callable[[Path], Any]] = {".json": _read_json, ".npz": _read_npz}
WRITERS: Mapping[str, Callable[[Path, Mapping[str, Any], Mapping[str, Any]], None]] = {
    ".json": _write_json,
    ".npz": _write_npz,
}


def _choose(by_suffix: Mapping[str, Any], path: Path) -> Any:
    if path.suffix not in by_suffix:
        raise InputError(f"{path}: a problem file ends in {' or '.join(by_suffix)}.")
    return by_suffix[path.suffix]
