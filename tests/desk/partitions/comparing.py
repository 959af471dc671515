"""A program on one machine and the same one in partitions, round by round on the same simulated states."""

from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from restive.desk import Desk
from restive.desk.config import Config
from restive.desk.decision import RESERVE_SIZE
from restive.desk.events import FREE, ON_MUST
from restive.desk.partitions.files import CHOICES, LIST
from restive.desk.partitions.program import Decision, PartitionedProgram, create
from restive.desk.partitions.tasks import load_belief
from restive.desk.program import Program
from restive.policies.belief import flatten
from restive.types import Ints

CONFIG: dict[str, Any] = {
    "states": ["away", "here"], "rewards": [0.0, 1.0], "seed": 4, "control": 0.1,
}  # fmt: skip


GROUPS = ["north", "south", "west"]


class World:
    """People who move between states; some are missing from some tables, and some actions are not as advised.

    moving    the share of people who change their group in a round
    arriving  the number of people who come in each round
    """

    def __init__(
        self,
        people: int,
        seed: int = 1,
        missing: float = 0.0,
        unlike: float = 0.0,
        moving: float = 0.0,
        arriving: int = 0,
    ) -> None:
        self.numbers, self.people, self.missing, self.unlike = np.random.default_rng(seed), 0, missing, unlike
        self.moving, self.arriving = moving, arriving
        self.agent, self.group = list[str](), np.zeros(0, "<U9")
        self.stay, self.gain, self.state = np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
        self.advised = np.zeros(0, np.bool_)
        self.arrive(people, GROUPS)

    def arrive(self, people: int, groups: list[str]) -> None:
        """People of these groups come."""
        self.agent += [f"p{n:07d}" for n in range(self.people, self.people + people)]
        kind = self.numbers.integers(0, 3, people)
        self.people += people
        self.group = np.concatenate([self.group, self.numbers.choice(groups, people)])
        self.stay = np.concatenate([self.stay, 0.2 + 0.3 * kind])
        self.gain = np.concatenate([self.gain, self.numbers.beta(1, 4, people)])
        self.state = np.concatenate([self.state, self.numbers.integers(0, 2, people)])
        self.advised = np.concatenate([self.advised, np.zeros(people, np.bool_)])

    def next_table(self, first: bool) -> pl.DataFrame:
        """The states of everybody, null where they are missing, and `done`, null where it is as advised."""
        if not first:
            moved = self.numbers.random(self.people) < self.moving
            self.group = np.where(moved, self.numbers.choice([*GROUPS, "elsewhere"], self.people), self.group)
            self.arrive(self.arriving, [*GROUPS, "abroad"])
        wrong = self.numbers.random(self.people) < self.unlike
        done = self.advised ^ (wrong & self.advised) if not first else self.advised
        up = np.clip(np.where(self.state == 1, self.stay, 0.3) + done * self.gain, 0, 1)
        self.state = (self.numbers.random(self.people) < up).astype(np.int64)
        there = self.numbers.random(self.people) >= self.missing
        name = np.array(CONFIG["states"])[self.state]
        reported = pl.Series(np.where(self.advised & wrong, "no", "")).replace({"": None})
        return pl.DataFrame(
            {"agent": self.agent, "state": name, "group": self.group, "done": reported, "there": there}
        ).with_columns(pl.when("there").then("state"))


class Pair:
    """Both programs."""

    def __init__(self, folder: Path, world: World, size: int, engine: Executor, **settings: Any) -> None:
        self.world, self.engine, self.folder = world, engine, folder
        folder.mkdir(exist_ok=True)
        config = Config.from_json({**CONFIG, **settings})
        pl.DataFrame({"agent": world.agent, "group": world.group}).write_parquet(folder / "people.parquet")
        self.parts: PartitionedProgram = create(
            str(folder / "program"), str(folder / "people.parquet"), config, engine, size
        )
        self.desk = Desk(str(folder / "store.db"))
        self.whole: Program = self.desk.create("whole", config)

    def decide(self, must: int = 0, in_one_file: bool = False, **given: Any) -> Decision:
        """Decide the next round of both from the same states, with so many people on the must list."""
        first = self.parts.rounds == 0
        table = self.world.next_table(first)
        if must:
            known = table[: self.parts.agents]
            treated = known.filter(pl.Series(~self.whole.projection.agents.control) & pl.col("state").is_not_null())
            given["must"] = treated["agent"][-must:].to_list()
        where = self.write(table, in_one_file)
        if not first and (unlike := table.filter(pl.col("done").is_not_null())).height:
            self.whole.learn(unlike.select("agent", "done"), round=self.parts.rounds)
        left = given.pop("left", ())
        if left:
            self.whole.leave(left)
        self.whole.decide(table.select("agent", "state", "group"), **given)
        decided = self.parts.decide(str(where), self.engine, left=left, **given)
        found = self.whole.get_round(decided.round)
        self.world.advised[:] = False
        self.world.advised[found.number[found.chosen]] = True
        return decided

    def write(self, table: pl.DataFrame, in_one_file: bool) -> Path:
        """Write a table of states for the partitions."""
        where = self.folder / f"states-{self.parts.rounds + 1}"
        columns = ["agent", "state", "done", *(["group"] if self.world.moving else [])]
        if in_one_file:
            table.select("agent", "state", "done", "group").write_parquet(where.with_suffix(".parquet"))
            return where.with_suffix(".parquet")
        where.mkdir(exist_ok=True)
        if len(table) > self.parts.agents:
            newcomers = table[self.parts.agents :].select("agent", "state", "group")
            newcomers.write_parquet(where / "newcomers.parquet")
        for part in self.parts.partitions:
            rows = table[part.first : part.first + part.size].select(columns)
            if not self.world.moving:
                rows = rows.filter(rows["state"].is_not_null() | rows["done"].is_not_null())
                rows = rows.sample(fraction=1.0, shuffle=True, seed=part.place)
            rows.write_parquet(where / f"part-{part.place:05d}.parquet")
        return where

    def choices(self) -> dict[str, Any]:
        """The choices of the last round in partitions, of everybody present."""
        read = self.parts.folder.read
        frame = pl.concat([read(part.files[CHOICES].path) for part in self.parts.partitions])
        number = np.flatnonzero(frame["state"].to_numpy() >= 0)
        return {"number": number, **{name: frame[name].to_numpy()[number] for name in frame.columns}}

    def compare(self, decided: Decision) -> None:
        """Assert that both decided the same, bit for bit, and know the same."""
        found, mine = self.whole.get_round(decided.round), self.choices()
        for name, expected in (
            ("number", found.number), ("state", found.state), ("carried_over", found.carried_over), *found.choice.items()
        ):  # fmt: skip
            if name in mine:
                assert (mine[name] == expected).all(), name
        listed = found.decided.listed
        kept = listed["kind"] < 2
        frame = pl.concat([self.parts.folder.read(part.files[LIST].path) for part in self.parts.partitions])
        frame = frame.sort("priority", "number", descending=[True, False], maintain_order=True)
        for name in ("kind", "priority", "margin", "probability", "since", "state"):
            assert (frame[name].to_numpy() == listed[name][kept]).all(), name
        assert (frame["number"].to_numpy() == listed["agent"][kept]).all()
        assert [spare["number"] for spare in decided.reserve] == listed["agent"][~kept].tolist()
        assert [spare["margin"] for spare in decided.reserve] == listed["margin"][~kept].tolist()
        self.compare_beliefs()

    def compare_beliefs(self) -> None:
        state = self.whole.projection.policy_states["policy"]
        whole, setting = flatten(state.belief), self.parts._setting()
        for part in self.parts.partitions:
            for name, array in flatten(load_belief(setting, part)).items():
                some: Any = slice(None) if state.axes[name] is None else (0, slice(part.first, part.first + part.size))
                expected = whole[name][some] if array.ndim else whole[name]
                assert (array.reshape(expected.shape) == expected).all(), (part.place, name)
        agents = self.whole.projection.agents
        for part in self.parts.partitions:
            stored = self.parts.folder.read(part.files["activity"].path)
            for name in stored.columns:
                same = stored[name].to_numpy() == getattr(agents, name)[part.number]
                # What is known of people who left is not kept.
                assert (same | ~agents.active[part.number] if name == "state_round" else same).all(), name
        people = pl.concat([self.parts.folder.read(part.people, ["agent", "group"]) for part in self.parts.partitions])
        codes = people["group"].replace_strict(self.whole.projection.groups, range(len(self.whole.projection.groups)))
        assert (codes.to_numpy() == agents.group).all()
        assert list(self.parts.groups) == self.whole.projection.groups
        assert self.whole.names.call(np.arange(len(people))) == people["agent"].to_list()

    def has_types(self) -> bool:
        """Whether a mixture of types is used."""
        return bool(self.whole.projection.policy_states["policy"].belief.responsibility.any())

    def close(self) -> None:
        self.desk.close()


def some_free(pair: Pair, count: int) -> list[str]:
    """Ids of people who could be on the last list."""
    mine = pair.choices()
    places: Ints = mine["number"][np.isin(mine["exclusion"], [FREE, ON_MUST])][:count]
    return [pair.world.agent[place] for place in places.tolist()]


def describe(decided: Decision) -> Mapping[str, Any]:
    """What a decision says, without what depends on the machine or on partitions."""
    known = decided._asdict()
    assert len(decided.reserve) <= RESERVE_SIZE
    return {name: known[name] for name in ("round", "present", "outcomes", "listed", "price", "reserve")}
