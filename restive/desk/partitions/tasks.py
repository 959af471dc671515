"""What is done with one partition in a round: each task is a pure function of files that are there and of a few numbers.

    learn         one pass of the policy's step; the last one writes    -> BELIEF
    welcome       one pass of what newcomers are told by the policy
    join          people, states and beliefs with newcomers             -> PEOPLE, GIVEN, BELIEF
    rank          priorities, who may be chosen, counts for the rules   -> RANKED

before them those of `restive.desk.partitions.tables`, which read the states -> GIVEN, and then those of
`restive.desk.partitions.choices`: what the selection asks, and the record of the choices.

So a task whose worker dies is run again by another one and gives the same; nothing that it leaves behind is read unless
the round's record names it. Numbers of agents are those of the program; arrays are by place in the partition.
"""

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from restive.contract import Draws
from restive.desk.agents import NEVER, Activity
from restive.desk.config import Config, make_learner
from restive.desk.events import FREE, IN_CONTROL, ON_MUST
from restive.desk.ingest import as_integers, mark_present
from restive.desk.partitions.files import ACTIVITY, BELIEF, CHOICES, GIVEN, PEOPLE, RANKED, File, Folder
from restive.desk.partitions.selection import order_keys
from restive.desk.projection import in_control
from restive.desk.selection import find_exclusions
from restive.kernels import rng
from restive.kernels.block_sums import Nodes
from restive.policies.belief import agent_axes, flatten, unflatten
from restive.policies.lagrange import UNOBSERVED, Lagrange, LagrangeBelief, Observed
from restive.policies.lagrange_passes import Pass, Passes, learn_in_passes, welcome_in_passes
from restive.types import Bools, Floats, Ints

ABSENT = -1  # instead of an exclusion: without a state in the round


class Partition(NamedTuple):
    """The people of a range of numbers, and their files."""

    place: int  # among the partitions, from 0
    first: int
    size: int
    files: Mapping[str, File]

    @property
    def people(self) -> str:
        """The file of their ids and groups."""
        return self.files[PEOPLE].path

    @property
    def number(self) -> Ints:
        """The numbers of the people."""
        return np.arange(self.first, self.first + self.size)

    def having(self, **files: File) -> "Partition":
        """The same partition with other files."""
        return self._replace(files={**self.files, **files})

    def brief(self, *kinds: str) -> "Partition":
        """The partition with the paths of these kinds of files, for a task that needs no others."""
        return self._replace(files={kind: File(self.files[kind].path, "", 0) for kind in kinds if kind in self.files})


class Setting(NamedTuple):
    """What all tasks of a round share; it is sent by the name of its file, which each process reads once."""

    folder: str
    config: str  # as JSON
    round: int
    agents: int
    groups: tuple[str, ...]
    shared: Mapping[str, Any]  # the arrays of the belief that all agents share
    path: str = ""  # its file, once it is saved

    def save(self) -> "Setting":
        """The setting in a file, so that it can be sent."""
        shared = {name: np.asarray(array).tolist() for name, array in self.shared.items()}
        content = json.dumps({**self._asdict(), "shared": shared, "path": ""}).encode()
        file = Folder(self.folder).write_bytes(f"settings/{self.round:05d}-{{digest}}.json", content)
        return self._replace(path=file.path)

    def __reduce__(self) -> tuple[Any, ...]:
        assert self.path, "a setting is saved before it is sent"
        return load_setting, (self.folder, self.path)

    def name(self, partition: Partition, kind: str) -> str:
        """The name of a new file."""
        return f"parts/{partition.place:05d}/{kind}-{self.round:05d}-{{digest}}.parquet"

    def draws(self, partition: Partition) -> Draws:
        """The random numbers of the round for the people of a partition."""
        config = load_config(self.config)
        keys = rng.run_keys(config.seed, np.zeros(1, np.int64))
        return Draws(keys, partition.number, self.round - 1, 0, None, config.spend)


@lru_cache(maxsize=4)
def load_setting(folder: str, path: str) -> Setting:
    """The setting in a file."""
    record = json.loads(Folder(folder).read_bytes(path))
    shared = {name: np.array(values) for name, values in record["shared"].items()}
    return Setting(**{**record, "groups": tuple(record["groups"]), "shared": shared, "path": path, "folder": folder})


@lru_cache(maxsize=4)
def load_config(text: str) -> Config:
    """The config from its JSON."""
    return Config.from_json(json.loads(text))


@lru_cache(maxsize=4)
def load_policy(text: str) -> Lagrange:
    """The policy of a config."""
    policy = make_learner(load_config(text).policy)
    assert isinstance(policy, Lagrange)
    return policy


def load_belief(setting: Setting, partition: Partition, names: Sequence[str] | None = None) -> LagrangeBelief:
    """The belief about a partition; with `names`, the other arrays of agents are those of one agent without data."""
    policy, config = load_policy(setting.config), load_config(setting.config)
    one = policy.start(config.shape(1))
    axes, arrays = agent_axes(policy, one), flatten(one)
    arrays |= {name: np.array(array) for name, array in setting.shared.items()}
    stored = Folder(setting.folder).read(partition.files[BELIEF].path, names) if BELIEF in partition.files else None
    for name, axis in axes.items():
        if axis is not None and (names is None or name in names):
            shape = (1, partition.size, *arrays[name].shape[2:])
            if stored is not None and name in stored.columns:
                arrays[name] = stored[name].to_numpy(writable=True).reshape(shape)
            else:
                arrays[name] = np.repeat(arrays[name], partition.size, axis=axis)
    return unflatten(one, arrays)


def _save_belief(setting: Setting, partition: Partition, belief: LagrangeBelief) -> File:
    """Write the arrays of agents, except those that say nothing."""
    policy = load_policy(setting.config)
    one = policy.start(load_config(setting.config).shape(1))
    axes, blank = agent_axes(policy, one), flatten(one)
    known = {
        name: array[0]
        for name, array in flatten(belief).items()
        if axes[name] is not None and not (array == blank[name]).all()
    }
    return Folder(setting.folder).write(setting.name(partition, BELIEF), known)


class Learned(NamedTuple):
    """What a partition adds up in a pass, and its belief after the last one of a step."""

    nodes: Nodes
    belief: File | None = None


def learn(setting: Setting, partition: Partition, sums: Sequence[Floats]) -> Learned:
    """The pass that follows when these sums of earlier passes are known."""
    belief, observed = load_belief(setting, partition), observe(setting, partition)
    steps = learn_in_passes(load_policy(setting.config), belief, observed, setting.agents, first=partition.place == 0)
    found = _repeat(steps, sums)
    nodes = found.nodes(partition.first, setting.agents)
    return Learned(nodes, _save_belief(setting, partition, belief) if found.last else None)


def _repeat(steps: Passes, sums: Sequence[Floats]) -> Pass:
    """The pass that follows those with these sums."""
    found = next(steps)
    for known in sums:
        found = steps.send(known.copy())
    return found


def welcome(setting: Setting, partition: Partition, sums: Sequence[Floats]) -> Learned:
    """The pass for newcomers that follows when these sums of earlier passes are known."""
    steps = welcome_in_passes(load_policy(setting.config), load_belief(setting, partition), setting.agents)
    return Learned(_repeat(steps, sums).nodes(partition.first, setting.agents))


def join(
    setting: Setting, partition: Partition, before: int, path: str, first: int, newcomer: Mapping[str, Floats]
) -> tuple[dict[str, File], str]:
    """The files of a partition that had `before` people and is joined by newcomers, from row `first` of their file on.

    Returns the digest of what is given of its people, too.

    newcomer: the arrays of the belief about one of them; none before the first step
    """
    folder = Folder(setting.folder)
    news = folder.read(path).slice(first, partition.size - before)
    files, digest = {}, ""
    for kind, columns in ((PEOPLE, ["agent", "group", "joined"]), (GIVEN, ["state", "done", "must", "never", "left"])):
        parts = [folder.read(partition.files[kind].path)] if before else []
        table = pl.concat([*parts, news.select(columns)], how="diagonal")
        files[kind] = folder.write(setting.name(partition, kind), table.to_dict())
        if kind == GIVEN:
            digest = digest_columns({name: table[name].to_numpy() for name in columns})
    if newcomer:
        known = load_belief(setting, partition._replace(size=before))
        arrays = flatten(known)
        for name, array in newcomer.items():
            arrays[name] = np.concatenate([arrays[name], np.repeat(array, partition.size - before, axis=1)], axis=1)
        files[BELIEF] = _save_belief(setting, partition, unflatten(known, arrays))
    return files, digest


def digest_columns(columns: Mapping[str, Any]) -> str:
    """The digest of the states and lists that are given of a partition."""
    return sha256(b"|".join(np.ascontiguousarray(array).tobytes() for array in columns.values())).hexdigest()


class _Outcomes(NamedTuple):
    before: Ints  # the state in the round before, −1 for none
    done: Ints  # whether the action was done: as given, otherwise as advised
    after: Ints  # the state now, −1 for none
    reported: Bools  # whether it was given that the action was done, or not


def _read_outcomes(setting: Setting, partition: Partition) -> _Outcomes:
    folder = Folder(setting.folder)
    now = folder.read(partition.files[GIVEN].path, ["state", "done"])
    after, given = (now[name].to_numpy().astype(np.int64) for name in ("state", "done"))
    if CHOICES not in partition.files:
        nobody = np.full(partition.size, -1)
        return _Outcomes(nobody, nobody, after, given > 1)
    before = folder.read(partition.files[CHOICES].path, ["state", "chosen"])
    state, chosen = (_pad(before[name].to_numpy().astype(np.int64), partition, -1) for name in before.columns)
    return _Outcomes(state, np.where(given >= 0, given, chosen), after, given >= 0)


def _pad(array: Ints, partition: Partition, blank: int) -> Ints:
    """An array of the round before, with a blank for each newcomer."""
    return np.concatenate([array, np.full(partition.size - array.size, blank)])


def observe(setting: Setting, partition: Partition) -> Observed:
    """What is learned of the round before: everybody who was in it and has a state now."""
    outcomes = _read_outcomes(setting, partition)
    seen = (outcomes.before >= 0) & (outcomes.after >= 0)
    rewards = np.array(load_config(setting.config).rewards)
    reward = np.where(seen, rewards[np.maximum(outcomes.after, 0)], 0.0)
    here, done, there = (
        np.where(seen, each, UNOBSERVED)[None] for each in (outcomes.before, outcomes.done, outcomes.after)
    )
    return Observed(here, done, reward[None], there)


def update_activity(setting: Setting, partition: Partition) -> Activity:
    """States and actions of people, with the outcomes of the round before."""
    folder = Folder(setting.folder)
    blank = {"state": -1, "state_round": NEVER, "last_action": NEVER, "previous_action": NEVER}
    stored = folder.read(partition.files[ACTIVITY].path) if ACTIVITY in partition.files else None
    known = {name: np.zeros(0, np.int64) if stored is None else stored[name].to_numpy() for name in blank}
    activity = Activity(**{name: _pad(array.astype(np.int64), partition, blank[name]) for name, array in known.items()})
    outcomes = _read_outcomes(setting, partition)
    seen = (outcomes.before >= 0) & (outcomes.after >= 0)
    reported = np.flatnonzero(seen | ((outcomes.before >= 0) & outcomes.reported))
    activity.record_done(reported, outcomes.done[reported] > 0, setting.round - 1)
    numbers = np.flatnonzero(seen)
    activity.record_states(numbers, outcomes.after[numbers], setting.round)
    # A state of somebody who left is not carried over.
    left = folder.read(partition.files[GIVEN].path, ["left"])["left"].to_numpy() & (outcomes.after < 0)
    activity.state_round[left] = NEVER
    return activity


class Ranked(NamedTuple):
    """The ranking of a partition: what all rules and the selection need to know of it."""

    file: File
    free: Ints  # how many can be chosen by priority, of no group and of each group, [1 + G]
    worth: Ints  # of these, how many are expected to gain
    must: Ints  # how many are on the must list
    low: int  # the lowest key of a priority of those
    high: int
    states: Ints  # how many people are in each state, outside and in the control group, as far as it was given, [2, S]
    carried_over: int
    wrong_must: tuple[str, ...]  # people of the must list who cannot be on it
    no_number: bool  # whether a priority is NaN


def least_priority(config: Config, shared: Mapping[str, Any]) -> float:
    """The priority above which people are expected to gain; minus infinity if the budget is to be spent."""
    if config.spend == "exactly" or int(shared["step"]) == 0:
        return -math.inf
    return -float(np.asarray(shared["price"])[0])


def rank(setting: Setting, partition: Partition) -> Ranked:
    """Rank the people of a partition by the belief of the round."""
    config, folder, round_ = load_config(setting.config), Folder(setting.folder), setting.round
    given = folder.read(partition.files[GIVEN].path)
    people = folder.read(partition.people)
    activity = update_activity(setting, partition)
    everybody = np.ones(partition.size, np.bool_)
    present = mark_present(activity, everybody, given["state"].to_numpy().astype(np.int64), config.keep, round_)
    state, carried_over = np.full(partition.size, -1), np.zeros(partition.size, np.bool_)
    state[present.number], carried_over[present.number] = present.state, present.carried_over
    drawn = in_control(config.seed, config.control, partition.number)
    if config.control_until is not None and "joined" in people.columns:
        drawn &= people["joined"].fill_null(0).to_numpy() <= config.control_until
    cooling = round_ - activity.last_action < config.cool_down
    never, must = (given[name].to_numpy() for name in ("never", "must"))
    exclusion, as_treated = find_exclusions(cooling, never, must, drawn & config.has_control(round_))
    wrong = must & ((state < 0) | (exclusion == IN_CONTROL))
    as_treated = exclusion if as_treated is None else as_treated
    exclusion, as_treated = (np.where(state >= 0, each, ABSENT) for each in (exclusion, as_treated))
    belief = load_belief(setting, partition, ["posterior", "value", "cost"])
    policy, draws = load_policy(setting.config), setting.draws(partition)
    priority = policy.rank(belief, np.maximum(state, 0)[None], draws).priority[0]
    codes = {name: code for code, name in enumerate(setting.groups)}
    group = as_integers(people["group"].replace_strict(codes, default=-1, return_dtype=pl.Int64))
    columns = {
        "priority": priority, "exclusion": exclusion.astype(np.int8), "as_treated": as_treated.astype(np.int8),
        "group": group.astype(np.int16), "state": state.astype(np.int16), "carried_over": carried_over,
    }  # fmt: skip
    file = folder.write(setting.name(partition, RANKED), columns)
    free = exclusion == FREE
    worth = free & is_worth(priority, least_priority(config, setting.shared))
    keys = order_keys(priority[worth])
    fresh = (state >= 0) & ~carried_over
    cells = np.bincount(drawn[fresh] * len(config.states) + state[fresh], minlength=2 * len(config.states))

    def count(some: Bools) -> Ints:
        return np.bincount(group[some] + 1, minlength=len(codes) + 1)

    return Ranked(
        file,
        free=count(free),
        worth=count(worth),
        must=count(exclusion == ON_MUST),
        low=int(keys.min()) if keys.size else (1 << 64) - 1,
        high=int(keys.max()) if keys.size else 0,
        states=cells.reshape(2, -1),
        carried_over=int(carried_over.sum()),
        wrong_must=tuple(people["agent"].filter(pl.Series(wrong)).head(5).to_list()),
        no_number=bool(np.isnan(priority[state >= 0]).any()),
    )


def is_worth(priority: Floats, least: float) -> Bools:
    """Those with a priority above the least one that gains."""
    return np.ones(priority.size, np.bool_) if least == -math.inf else priority > least
