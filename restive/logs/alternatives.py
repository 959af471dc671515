"""Other models of a history, for a forecast beside the first: where one state of memory is not enough, or people changed.

    memory   a person's row depends on the state before too: states are pairs (before, now), and a row of a pair has the S
             states as destinations. Moves without a known state before are left out.
    change   only moves of the last third of the rounds count

Both are fitted as the first model is, with types of people as chosen by held-out people and without features. Policies
meet these people as they would in a program: they see the present state, and start from the first model.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from restive.logs.assumptions.finding import DOES_NOT
from restive.logs.history import History
from restive.logs.mixture import sample_priors
from restive.logs.model import Alternative, FittedModel, Prior, center
from restive.logs.model_selection import choose
from restive.types import Floats, Ints

if TYPE_CHECKING:
    from restive.logs.examine import Examination

MEMORY, CHANGE = "memory", "change"  # the questions of `examine` that they answer
DRAWS, LAST_PART = 100, 3
UNREACHABLE = 1e-300  # the parameter of a destination that no move leads to


def add_examination(model: FittedModel, history: History, examination: "Examination", seed: int = 0) -> FittedModel:
    """The model with the verdicts of an examination, and with the alternatives that they ask for."""
    asked = [key for key in (MEMORY, CHANGE) if examination[key].verdict == DOES_NOT]
    return replace(model, verdicts=examination.verdicts(), alternatives=find_alternatives(history, asked, seed))


def find_alternatives(history: History, keys: Sequence[str], seed: int = 0) -> tuple[Alternative, ...]:
    """The alternatives of these names; those without any move are left out."""
    if history.available is not None:
        history = history.select(history.available)
    found = []
    for number, key in enumerate(keys):
        counts, last = count_pairs(history) if key == MEMORY else _count_last(history)
        if counts.any():
            generator = np.random.default_rng([seed, 7, number])
            types = choose(counts, None, generator).types
            draws = sample_priors(counts, types, DRAWS, generator)
            found.append(Alternative(key, counts, last, center(draws), draws))
    return tuple(found)


def count_pairs(history: History) -> tuple[Floats, Ints]:
    """Moves by pair of states, [N, A, S · S, S], and the last pair of each agent, [N].

    The pair of an agent without two states in a row is twice its last state.
    """
    follows = np.append(False, (np.diff(history.agent) == 0) & (np.diff(history.round) == 1))
    follows &= np.roll(history.next_state, 1) == history.state
    states, before = history.n_states, np.roll(history.state, 1)
    rows = follows & history.known
    shape = history.n_agents, 2, states * states, states
    pair = before * states + history.state
    place = np.ravel_multi_index(
        (history.agent[rows], history.action[rows], pair[rows], history.next_state[rows]), shape
    )
    counts = np.bincount(place, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
    last = np.append(np.flatnonzero(np.diff(history.agent)), history.agent.size - 1)
    earlier = np.where(history.known[last], history.state[last], np.where(follows, before, history.state)[last])
    return counts, earlier * states + history.last_state


def _count_last(history: History) -> tuple[Floats, Ints]:
    late = history.round > history.n_rounds - history.n_rounds // LAST_PART
    return history.select(late).counts, history.last_state


def people_of(model: FittedModel, alternative: Alternative) -> FittedModel:
    """The people of an alternative, as a model whose states are those of the alternative."""
    pairs, states = alternative.counts.shape[2], len(model.states)
    whole: dict[str, Any] = {"last_state": alternative.last_state, "features": None, "power": 1.0, "alternatives": ()}
    if pairs == states:
        return replace(model, counts=alternative.counts, prior=alternative.prior, draws=alternative.draws, **whole)
    repeats = pairs // states
    return replace(
        model,
        states=tuple(f"{before}, {now}" for before in model.states for now in model.states),
        value=np.tile(model.value, repeats),
        value_error=np.tile(model.value_error, repeats) if model.value_error.size else model.value_error,
        counts=as_pairs(alternative.counts, 0.0),
        prior=_pair_prior(alternative.prior),
        draws=tuple(map(_pair_prior, alternative.draws)),
        **whole,
    )


def as_pairs(rows: Floats, nothing: float) -> Floats:
    """Rows [..., S · S, S] with pairs as destinations, [..., S · S, S · S]: from (before, now) to (now, next)."""
    states = rows.shape[-1]
    found = np.full((*rows.shape[:-1], states, states), nothing)
    pair = np.arange(states * states)
    found[..., pair, pair % states, :] = rows
    return found.reshape(*rows.shape[:-1], states * states)


def _pair_prior(prior: Prior) -> Prior:
    return Prior(prior.share, as_pairs(prior.alpha, UNREACHABLE))
