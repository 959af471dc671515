"""Drift alarms of programs in which nothing changes, and of programs in which something does.

People differ, and a learner selects whom to act on, so those in a row are others in each round. The false alarms of the
learner are shown beside those of acting at random, where there is no selection.
"""

from collections.abc import Sequence

import numpy as np

from restive.contract import as_ranking
from restive.logs.acceptance import Check, Result
from restive.logs.drift import THRESHOLD, Alarm, find_alarms
from restive.policies import make_policy
from restive.problem import Problem
from restive.problems import make_problems
from restive.types import Ints
from restive.world import World

SEED = 0
FAMILIES = (
    "general-usage-v1", "e-commerce-v1", "e-learning-v1", "loyalty-v1", "patient-management-v1", "pharmacy-v1"
)  # fmt: skip
THRESHOLDS = (3.0, 4.0, THRESHOLD, 6.0, 8.0)  # of the table that the threshold was chosen by
PER_ROUNDS = 500
MANY = 5000  # people
SOON, NEAR = 10, 3  # rounds until a change is found, and by which it is dated wrongly


def check_false_alarms(quick: bool, seed: int = SEED) -> list[Result]:
    """Alarms in 500 rounds of programs in which nothing changes, by threshold."""
    results, rates = [], dict[str, list[float]]()
    programs = [("lagrange", 200, 16), ("random", 200, 16), ("lagrange", MANY, 2)]
    for policy, agents, runs in [("lagrange", 100, 4), ("random", 100, 4)] if quick else programs:
        for family in FAMILIES[:1] if quick else FAMILIES:
            rounds, who = 60 if quick else 250, f"{policy}, {agents} people"
            problems = make_problems(family, instances=runs, agents=agents, budget=agents // 10, seed=seed)
            moves = simulate_moves(problems, policy, rounds, seed)
            found = [_rate(moves, threshold) for threshold in THRESHOLDS]
            rates.setdefault(who, []).append(found[THRESHOLDS.index(THRESHOLD)])
            note = ", ".join(f"{rate:.1f} at {threshold:g}" for threshold, rate in zip(THRESHOLDS, found, strict=True))
            rate, most = rates[who][-1], 8.0 if quick else 3.0
            where = f"{family}, {who}, {runs} programs of {rounds} rounds"
            results.append(
                Result(
                    f"false alarms in {PER_ROUNDS} rounds, {where}", f"≤ {most:g}", f"{rate:.1f}", rate <= most, note
                )
            )
    for who, each in rates.items():
        mean, most = float(np.mean(each)), 8.0 if quick else 1.5
        what = f"false alarms in {PER_ROUNDS} rounds, mean of families, {who}"
        results.append(Result(what, f"≤ {most:g}", f"{mean:.1f}", mean <= most))
    return results


def _rate(moves: Ints, threshold: float) -> float:
    """Alarms in 500 rounds of all programs, [T, R, A, S, S]."""
    rounds, runs = moves.shape[:2]
    alarms = sum(len(find_alarms(moves[:, run], threshold)) for run in range(runs))
    return float(alarms * PER_ROUNDS / (rounds * runs))


def check_detection(quick: bool, seed: int = SEED) -> list[Result]:
    """How many changes are found soon, in the right row, and with the right date."""
    results = []
    for family in FAMILIES[:1] if quick else FAMILIES[:4]:
        agents, change, runs = (100, 40, 4) if quick else (200, 100, 16)
        problems = make_problems(family, instances=runs, agents=agents, budget=agents // 10, seed=seed)
        ended = [each.change_to(each.replace(transition=each.transition[:, [0, 0]]), change) for each in problems]
        moves = simulate_moves(ended, "lagrange", change + SOON, seed)
        alarms = [_first_after(find_alarms(moves[:, run]), change) for run in range(runs)]
        found = [each for each in alarms if each is not None and each.action == 1]
        share, least = len(found) / runs, 0.5 if quick else 0.8
        near = np.mean([abs(each.since - change) <= NEAR for each in found]) if found else 0.0
        what = f"acting ends to help: found in {SOON} rounds, {family}, {agents} people"
        note = f"{near:.0%} dated within {NEAR} rounds"
        results.append(Result(what, f"≥ {least}", f"{share:.2f}", share >= least, note))
    return results


def _first_after(alarms: Sequence[Alarm], change: int) -> Alarm | None:
    return next((each for each in alarms if each.found >= change), None)


def simulate_moves(problems: Sequence[Problem], policy: str, rounds: int, seed: int) -> Ints:
    """How many people moved in each round of a program for each problem, [T, R, A, S, S]."""
    world, player = World(problems, seed=seed), make_policy(policy)
    belief, state = player.begin(world.shape, world.model), world.first_states()
    moves = np.zeros((rounds, len(problems), 2, world.shape.states, world.shape.states), np.int64)
    run = np.arange(len(problems))[:, None]
    for step in range(rounds):
        draws = world.draws(step)
        action = world.choose(as_ranking(player.rank(belief, state, draws), world.shape, player.name), draws)
        outcome = world.advance(state, action, draws)
        player.learn(belief, state, action, outcome.reward, outcome.after)
        np.add.at(moves[step], (run, action, state, outcome.after), 1)
        state = outcome.after
    return moves


CHECKS = (Check("false alarms", check_false_alarms), Check("detection", check_detection))
