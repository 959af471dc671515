"""The decision of a round: the choice of the policy and of its shadow under the rules, and the list with its reserve."""

import hashlib
import math
from typing import Any

import numpy as np

from restive.contract import Draws, Estimate, Ranking
from restive.desk.agents import NEVER
from restive.desk.cost_selection import choose_by_cost, count_displaced_by_cost
from restive.desk.events import FREE, ON_MUST, Decided, DecisionInput, States
from restive.desk.projection import Projection
from restive.desk.selection import Choice, Rules, choose_agents, count_displaced, find_rules
from restive.errors import InputError
from restive.kernels import rng
from restive.types import Bools, Floats, Ints
from restive.version import __version__

# The random stream of the reserve list, beyond those of the policies, of the control group and of the selection.
SPARES = 2**32 + 3
# The parts of a list: chosen by the policy, on the must list, on the reserve list.
CHOSEN, MUST, RESERVE = range(3)
RESERVE_SIZE = 10


def decide(projection: Projection, round_: int, given: DecisionInput) -> Decided:
    """Decide a round."""
    rules = find_rules(projection, round_, given)
    draws = projection.draws(given, round_)
    rankings = projection.rank(given, round_)
    ranking, estimate = rankings["policy"]
    choice = _select(projection, "policy", ranking, estimate, rules, draws)
    explored = choice.chosen & (rules.exclusion == FREE) & (choice.by_noise | choice.random)
    columns: dict[str, Any] = {
        "chosen": choice.chosen,
        "probability": choice.probability,
        "exclusion": rules.exclusion.astype(np.uint8),
        "would_act": choice.would_act,
        **({"probability_error": choice.error} if choice.error.any() else {}),
    }
    header = {
        "policy": projection.config.policy,
        "version": __version__,
        "priority": hashlib.sha256(np.ascontiguousarray(ranking.priority[0]).data).hexdigest(),
        "explore": float(ranking.explore[0]),
        "random": choice.random,
        "explored": int(explored.sum()),
        "left_out": int(choice.left_out.sum()),
        "displaced": _count_displaced(projection, ranking, choice.random, rules, draws),
        **projection.tallies.count_better(),
    }
    if "shadow" in rankings:
        shadow = _select(projection, "shadow", *rankings["shadow"], rules, draws)
        columns |= {"shadow_chosen": shadow.chosen, "shadow_probability": shadow.probability}
        header["shadow"] = {
            "policy": projection.config.shadow,
            "common": int((shadow.chosen & choice.chosen).sum()),
        }
    listed = _make_list(projection, round_, given.states, ranking.priority[0], rules, choice, explored, draws)
    return Decided(given, header, columns, listed)


def _select(
    projection: Projection, slot: str, ranking: Ranking, estimate: Estimate, rules: Rules, draws: Draws
) -> Choice:
    if np.isnan(ranking.priority).any():
        name = projection.policy_states[slot].policy.name
        raise InputError(f"{name}: a priority is NaN in round {draws.step + 1}; nothing was recorded.")
    choose = choose_agents if rules.cost is None else choose_by_cost
    return choose(ranking, estimate, rules, draws)


def _count_displaced(
    projection: Projection, ranking: Ranking, random: bool, rules: Rules, draws: Draws
) -> dict[str, int]:
    tie = rng.uniform(draws.branch(rng.TIE), draws.agents)[0]
    priority, least = (np.zeros(tie.size), -math.inf) if random else (ranking.priority[0], ranking.least(draws)[0])
    count = count_displaced if rules.cost is None else count_displaced_by_cost
    return count(priority, tie, rules, dict(enumerate(projection.groups)), float(least))


def _make_list(
    projection: Projection,
    round_: int,
    present: States,
    priority: Floats,
    rules: Rules,
    choice: Choice,
    explored: Bools,
    draws: Draws,
) -> dict[str, Any]:
    """The chosen by priority, then the reserve list."""
    free = rules.exclusion == FREE
    chosen = _by_priority(priority, np.flatnonzero(choice.chosen), present.number)
    waiting = np.flatnonzero(free & ~choice.chosen & ~choice.left_out)
    reserve = _find_spares(draws, priority, waiting, choice.random)
    places = np.concatenate([chosen, reserve])
    kind = np.where(rules.exclusion[places] == ON_MUST, MUST, CHOSEN)
    kind[chosen.size :] = RESERVE
    last = projection.agents.last_action[present.number[places]]
    return {
        "agent": present.number[places],
        "kind": kind.astype(np.uint8),
        "group": rules.group[places].astype(np.int16),
        "state": present.state[places].astype(np.int16),
        **({} if rules.cost is None else {"cost": rules.cost[places]}),
        "carried_over": present.carried_over[places],
        "priority": priority[places],
        "margin": _margins(priority, places, kind, waiting, chosen[rules.exclusion[chosen] == FREE]),
        "explored": explored[places],
        "probability": choice.probability[places],
        "since": np.where(last == NEVER, -1, round_ - last),
    }


def _by_priority(priority: Floats, places: Ints, numbers: Ints) -> Ints:
    """Places in descending order of priority; ties in the order of joining."""
    return places[np.lexsort((numbers[places], -priority[places]))]


def _find_spares(draws: Draws, priority: Floats, places: Ints, random: bool) -> Ints:
    """The places of the reserve list: the best of those who wait, ties in random order; all at random if the list is."""
    if places.size > RESERVE_SIZE and not random:
        cutoff = np.partition(priority[places], -RESERVE_SIZE)[-RESERVE_SIZE]
        places = places[priority[places] >= cutoff]
    drawn = rng.uniform(draws.branch(SPARES), np.ascontiguousarray(draws.agents[places]))[0]
    order = np.argsort(drawn) if random else np.lexsort((drawn, -priority[places]))
    return places[order][:RESERVE_SIZE]


def _margins(priority: Floats, places: Ints, kind: Ints, waiting: Ints, chosen: Ints) -> Floats:
    """Priority minus that of the first agent not chosen; on the reserve list, minus that of the last one chosen."""
    first = priority[waiting].max() if waiting.size else -math.inf
    last = priority[chosen].min() if chosen.size else math.inf
    with np.errstate(invalid="ignore"):
        return np.where(kind == RESERVE, priority[places] - last, priority[places] - first)
