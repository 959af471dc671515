"""A program that starts from a history: the model of `restive fit` as the second event of its log, and as names.

The people of the history get the first numbers. They are not in the program until they have a state in a round; then
their moves in the history count for them, and until then for the prior of everybody else.
"""

from os import PathLike
from typing import Any

import numpy as np
import polars as pl

from restive.contract import scale_counts
from restive.desk.config import Config, make_learner
from restive.desk.events import WarmStarted
from restive.desk.features import encode_known
from restive.desk.projection import MAX_BELIEF_BYTES, PolicyState
from restive.desk.roster import find_key, normalize_names
from restive.errors import InputError
from restive.logs.model import FittedModel
from restive.policies.base import Policy


def read_model(history: FittedModel | str | PathLike[str]) -> FittedModel:
    """The model, or the one in a file that `restive fit --out` wrote."""
    return history if isinstance(history, FittedModel) else FittedModel.load(history)


def default_settings(model: FittedModel) -> dict[str, Any]:
    """The states of the history, and their rewards if each state has the same for everybody."""
    known = not np.nan_to_num(model.value_error).any()
    return {"states": list(model.states), "rewards": model.value.tolist() if known else None}


def check_match(model: FittedModel, config: Config) -> None:
    """Refuse a program that cannot start from this history."""
    policy = make_learner(config.policy)
    if type(policy).warm_start is Policy.warm_start:
        raise InputError(f"{policy.name} cannot start from a history; lagrange can.", location="history")
    if sorted(model.states) != sorted(config.states):
        raise InputError(
            f"The states of the history are {', '.join(model.states)}; those of the program are "
            f"{', '.join(config.states)}. They must be the same.",
            location="history",
        )
    people, room = len(model.agents), MAX_BELIEF_BYTES // PolicyState(config.policy, config).bytes_per_agent
    if people > room:
        raise InputError(f"The history has {people} people; a program has room for {room:.0f}.", location="history")


def make_warm_start(model: FittedModel, config: Config) -> tuple[pl.Series, WarmStarted]:
    """The names of the people, as the roster holds them, and the event."""
    check_match(model, config)
    names = normalize_names(model.agents.cast(pl.String))
    if (twice := names.filter(names.is_duplicated())).len():
        raise InputError(f"{twice[0]!r} is in the history twice, in two spellings.", location="history")
    if config.pseudonyms is not None:
        names = pl.Series(find_key(config.pseudonyms).hide(names.to_list()), dtype=pl.String)
    order = [model.states.index(state) for state in config.states]
    moves = scale_counts(model.counts, 1.0)[:, :, order][..., order].astype(np.int64)
    value = model.value[order] if config.rewards is None else config.rewards
    about = {"value": [float(each) for each in value], "power": float(model.power), "rounds": int(model.logged.rounds)}
    features = encode_known(model.known_features, config.features, len(names))
    return names, WarmStarted(np.arange(len(names)), moves, features, about)
