"""Checks of `examine`: how often each test rejects when its assumption holds and people differ, and when it does not."""

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from restive.logs.acceptance import Check, Result
from restive.logs.examine import examine
from restive.logs.history import History
from restive.types import Bools, Floats, Ints

SEED = 0
LEVEL = 0.05
SHUFFLES = 199


@dataclass(frozen=True)
class World:
    """People with two states who differ; every field beyond the first line breaks one assumption."""

    agents: int = 150
    rounds: int = 16
    spread: float = 0.2  # standard deviation between people of the probability of the good state
    effect: float = 0.1
    by_state: bool = True  # whether acting is more likely in the bad state
    recorded: bool = True  # whether propensities are in the table
    memory: float = 0.0  # what a good state before adds, compared with a bad one
    drift: float = 0.0  # what the last round adds, compared with the first
    step: float = 0.0  # what the second half of the rounds adds, compared with the first
    hidden: float = 0.0  # by how much people who do well are acted on more often, one standard deviation
    past: float = 0.0  # by how much acting is less likely after acting
    ramp: float = 0.0  # by how much acting is more likely in the last round than in the first
    missing: float = 0.0  # share of unknown next states, different between people
    missing_by_action: float = 0.0
    followed: float = 1.0  # share of advice that is followed, different between people
    selective: float = 0.0  # by how much more often those follow who would do well anyway
    groups: int = 0
    influence: float = 0.0  # what acting on the whole group adds

    def play(self, seed: int) -> History:
        """A history of these people."""
        generator = np.random.default_rng([seed, 16])
        n, rounds = self.agents, self.rounds
        ability = generator.standard_normal(n)
        group = np.arange(n) % max(1, self.groups)
        if self.groups:
            ability = 0.6 * generator.standard_normal(self.groups)[group] + 0.8 * ability
        base = np.stack(
            [0.35 + self.spread * ability, 0.6 + self.spread * (0.5 * ability + generator.standard_normal(n) / 2)]
        )
        base = np.clip(base, 0.05, 0.95)
        state = np.empty((n, rounds + 1), np.int64)
        draw, action = np.empty((2, n, rounds), np.int64)
        propensity = np.empty((n, rounds))
        state[:, 0] = generator.random(n) < 0.5
        willing = np.clip(self.followed + 0.2 * generator.standard_normal(n), 0, 1) if self.followed < 1 else np.ones(n)
        before = state[:, 0]
        for t in range(rounds):
            now = state[:, t]
            e = np.where(now == 0, 0.45, 0.25) if self.by_state else np.full(n, 0.3)
            e = e + self.hidden * ability - (self.past * action[:, t - 1] if t else 0.0)
            e = e + self.ramp * (t / (rounds - 1) - 0.5)
            propensity[:, t] = e = np.clip(e, 0.05, 0.95)
            draw[:, t] = generator.random(n) < e
            chance = generator.random(n)
            follows = generator.random(n) < np.clip(willing + self.selective * (chance < 0.4), 0, 1)
            action[:, t] = draw[:, t] * follows
            good = base[now, np.arange(n)] + self.effect * action[:, t] + self.memory * (before - 0.5)
            good += self.drift * (t / (rounds - 1) - 0.5) + self.step * ((t >= rounds / 2) - 0.5)
            if self.influence:
                share = np.bincount(group, action[:, t]) / np.bincount(group)
                good += self.influence * (share[group] - 0.3)
            state[:, t + 1] = chance < np.clip(good, 0.01, 0.99)
            before = now
        return self._table(generator, state, draw, action, propensity, group)

    def _table(
        self, generator: np.random.Generator, state: Ints, draw: Ints, action: Ints, propensity: Floats, group: Ints
    ) -> History:
        n, rounds = draw.shape
        after = state[:, 1:].copy()
        if self.missing:
            rate = np.clip(self.missing * (1 + 0.7 * generator.standard_normal(n)), 0, 0.9)[:, None]
            after[generator.random(after.shape) < rate + self.missing_by_action * draw] = -1
        known = after.ravel() >= 0
        return History(
            agents=pl.Series([f"p{number}" for number in range(n)]),
            states=("bad", "good"),
            rounds=pl.Series(range(1, rounds + 1)),
            agent=np.repeat(np.arange(n), rounds),
            round=np.tile(np.arange(1, rounds + 1), n),
            state=state[:, :-1].ravel(),
            action=action.ravel(),
            next_state=after.ravel(),
            reward=np.where(known, after.ravel(), np.nan),
            value=np.array([0.0, 1.0]),
            propensity=propensity.ravel() if self.recorded else None,
            advised=draw.ravel() if self.followed < 1 else None,
            group=np.repeat(group, rounds) if self.groups else None,
            groups=tuple(f"g{number}" for number in range(self.groups)),
        )


NULLS: tuple[tuple[str, World, tuple[str, ...]], ...] = (
    ("people differ, propensities recorded", World(), ("randomised", "hidden", "memory", "change")),
    ("people differ, propensities unknown", World(recorded=False), ("randomised", "hidden")),
    ("people differ, acting does nothing", World(effect=0.0), ("effect",)),
    ("acting does nothing, propensities unknown", World(effect=0.0, recorded=False), ("effect",)),
    ("people differ, acting grows", World(ramp=0.4, effect=0.25), ("memory", "change", "randomised", "hidden")),
    ("people alike", World(spread=0.0), ("people",)),
    ("people differ, also in how often they are missing", World(missing=0.15), ("missing", "memory", "change")),
    ("people differ, also in how often they follow", World(followed=0.7), ("advice",)),
    ("people differ, groups are alike", World(groups=15), ("influence",)),
)
LARGE = World(agents=300, rounds=30)
BROKEN: tuple[tuple[str, World, str, float], ...] = (
    ("10 points of memory", replace(LARGE, memory=0.1), "memory", 0.9),
    ("drift of 5 points between halves", replace(LARGE, step=0.05), "change", 0.8),
    (
        "drift of 5 points from the first round to the last, 2.5 between halves",
        replace(LARGE, drift=0.05),
        "change",
        0.8,
    ),
    ("acting adds 5 points", replace(LARGE, effect=0.05), "effect", 0.8),
    ("people differ by 10 points", replace(LARGE, spread=0.1), "people", 0.8),
    ("acting 10 points less likely after acting", replace(LARGE, past=0.1, recorded=False), "randomised", 0.8),
    ("able people acted on 5 points more", replace(LARGE, hidden=0.05, recorded=False), "hidden", 0.8),
    ("5 points more missing after acting", replace(LARGE, missing=0.1, missing_by_action=0.05), "missing", 0.8),
    ("30 points more followed by those who do well", replace(LARGE, followed=0.5, selective=0.3), "advice", 0.8),
    ("acting on the whole group adds 50 points", replace(LARGE, groups=60, influence=0.5), "influence", 0.8),
)


def check_type_one(quick: bool, seed: int = SEED) -> list[Result]:
    """How often each test rejects at the 5% level although its assumption holds."""
    histories, low, high = (40, 0.0, 0.15) if quick else (1000, 0.03, 0.07)
    results = []
    for name, world, keys in NULLS:
        rejected = reject(world, keys, histories, seed)
        for key in keys:
            share = float(rejected[key].mean())
            what, wanted = f"type I error of {key}: {name}", f"{low:.2f}–{high:.2f}"
            results.append(Result(what, wanted, f"{share:.3f}", low <= share <= high, f"{histories} histories"))
    return results


def check_power(quick: bool, seed: int = SEED) -> list[Result]:
    """How often each test rejects at the 5% level when its assumption does not hold: 300 people, 30 rounds."""
    histories = 20 if quick else 300
    results = []
    for name, world, key, wanted in BROKEN:
        share = float(reject(world, (key,), histories, seed)[key].mean())
        what, note = f"power of {key}: {name}", f"{histories} histories"
        noise = 2 * (wanted * (1 - wanted) / histories) ** 0.5 * quick
        results.append(Result(what, f"≥ {wanted}", f"{share:.3f}", share >= wanted - noise, note))
    return results


def reject(world: World, keys: tuple[str, ...], histories: int, seed: int) -> dict[str, Bools]:
    """Whether tests reject, in each of many histories."""
    p = np.empty((histories, len(keys)))
    shuffles = SHUFFLES if {"memory", "change"} & set(keys) else 1
    for number in range(histories):
        answer = examine(world.play(seed * 1_000_000 + number), max_shuffles=shuffles)
        p[number] = [1.0 if answer[key].p is None else answer[key].p for key in keys]
    return dict(zip(keys, (p <= LEVEL).T, strict=True))


CHECKS = (Check("type I error", check_type_one), Check("power", check_power))
