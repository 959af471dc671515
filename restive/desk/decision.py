"""The decision of a round, a pure function of the projection and the input of the round."""

import hashlib
import math
from typing import Any

import numpy as np

from restive.contract import Draws, Estimate, Ranking
from restive.desk.events import Decided, DecisionInput, States
from restive.desk.projection import NEVER, Projection
from restive.desk.selection import (
    COOLING,
    FREE,
    IN_CONTROL,
    ON_MUST,
    ON_NEVER,
    Choice,
    Rules,
    choose_agents,
    price_rules,
)
from restive.errors import InputError
from restive.types import Bools, Floats, Ints
from restive.version import __version__

RESERVE_SIZE = 10
# The parts of a list: chosen by the policy, on the must list, on the reserve list.
CHOSEN, MUST, RESERVE = range(3)


def decide(projection: Projection, round_: int, given: DecisionInput) -> Decided:
    """Decide a round."""
    present, budget = given.states, given.budget
    rules = find_rules(projection, round_, given)
    draws = projection.draws(present, round_, budget)
    rankings = projection.rank(present, round_, budget)
    ranking, estimate = rankings["policy"]
    choice = _choose(projection, "policy", ranking, estimate, rules, draws)
    explored = choice.chosen & (rules.exclusion == FREE) & (choice.by_noise | choice.random)
    columns: dict[str, Any] = {
        "chosen": choice.chosen,
        "probability": choice.probability,
        "exclusion": rules.exclusion.astype(np.uint8),
    }
    header = {
        "policy": projection.config.policy,
        "version": __version__,
        "priority": hashlib.sha256(np.ascontiguousarray(ranking.priority[0]).data).hexdigest(),
        "explore": float(ranking.explore[0]),
        "random": choice.random,
        "explored": int(explored.sum()),
        "benefit": _expected(estimate.benefit[0][choice.chosen]),
        "prices": _finite(price_rules(estimate.benefit[0], rules, dict(enumerate(projection.groups)))),
    }
    if "shadow" in rankings:
        shadow = _choose(projection, "shadow", *rankings["shadow"], rules, draws)
        columns |= {"shadow_chosen": shadow.chosen, "shadow_probability": shadow.probability}
        header["shadow"] = {
            "policy": projection.config.shadow,
            "common": int((shadow.chosen & choice.chosen).sum()),
            "benefit": _expected(estimate.benefit[0][shadow.chosen]),
        }
    listed = _make_list(projection, round_, present, ranking.priority[0], estimate, rules, choice, explored)
    return Decided(given, header, columns, listed)


def find_rules(projection: Projection, round_: int, given: DecisionInput) -> Rules:
    """The rules of a round; the must list overrides the cool-down."""
    agents, config, present = projection.agents, projection.config, given.states
    exclusion = np.full(present.number.size, FREE)
    exclusion[round_ - agents.last_action[present.number] < config.cool_down] = COOLING
    for code, listed in ((ON_NEVER, given.never), (ON_MUST, given.must)):
        exclusion[np.isin(present.number, listed)] = code
    exclusion[agents.control[present.number]] = IN_CONTROL
    known = {name: code for code, name in enumerate(projection.groups)}
    shares = {known[name]: share for name, share in config.shares.items() if name in known and share > 0}
    return Rules(exclusion, agents.group[present.number], shares, given.budget)


def _choose(
    projection: Projection, slot: str, ranking: Ranking, estimate: Estimate, rules: Rules, draws: Draws
) -> Choice:
    if np.isnan(ranking.priority).any():
        name = projection.policy_states[slot].policy.name
        raise InputError(f"{name}: a priority is NaN in round {draws.step + 1}; nothing was recorded.")
    return choose_agents(ranking, estimate, rules, draws)


def _make_list(
    projection: Projection, round_: int, present: States, priority: Floats, estimate: Estimate, rules: Rules, choice: Choice,
    explored: Bools,
) -> dict[str, Any]:  # fmt: skip
    """The chosen by priority, then the reserve list."""
    free = rules.exclusion == FREE
    chosen = _by_priority(priority, np.flatnonzero(choice.chosen), present.number)
    waiting = np.flatnonzero(free & ~choice.chosen)
    reserve = _first_by_priority(priority, waiting, present.number, RESERVE_SIZE)
    places = np.concatenate([chosen, reserve])
    kind = np.where(rules.exclusion[places] == ON_MUST, MUST, CHOSEN)
    kind[chosen.size :] = RESERVE
    last = projection.agents.last_action[present.number[places]]
    return {
        "agent": present.number[places],
        "kind": kind.astype(np.uint8),
        "group": rules.group[places].astype(np.int16),
        "state": present.state[places].astype(np.int16),
        "carried_over": present.carried_over[places],
        "priority": priority[places],
        "benefit": estimate.benefit[0][places],
        "error": estimate.error[0][places],
        "margin": _margins(priority, places, kind, waiting, chosen[rules.exclusion[chosen] == FREE]),
        "explored": explored[places],
        "probability": choice.probability[places],
        "seen": projection.agents.seen[present.number[places]],
        "since": np.where(last == NEVER, -1, round_ - last),
    }


def _by_priority(priority: Floats, places: Ints, numbers: Ints) -> Ints:
    """Places in descending order of priority; ties in the order of joining."""
    return places[np.lexsort((numbers[places], -priority[places]))]


def _first_by_priority(priority: Floats, places: Ints, numbers: Ints, wanted: int) -> Ints:
    if places.size > wanted:
        cutoff = np.partition(priority[places], -wanted)[-wanted]
        places = places[priority[places] >= cutoff]
    return _by_priority(priority, places, numbers)[:wanted]


def _margins(priority: Floats, places: Ints, kind: Ints, waiting: Ints, chosen: Ints) -> Floats:
    """Priority minus that of the first agent not chosen; on the reserve list, minus that of the last one chosen."""
    first = priority[waiting].max() if waiting.size else -math.inf
    last = priority[chosen].min() if chosen.size else math.inf
    with np.errstate(invalid="ignore"):
        return np.where(kind == RESERVE, priority[places] - last, priority[places] - first)


def _expected(benefit: Floats) -> float | None:
    total = float(benefit.sum())
    return total if math.isfinite(total) else None


def _finite(prices: dict[str, float]) -> dict[str, float | None]:
    return {name: price if math.isfinite(price) else None for name, price in prices.items()}
