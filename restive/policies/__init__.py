"""The registry of policies by name; `make_policy` makes one from a name with settings."""

import difflib
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from restive.errors import InputError
from restive.policies.base import Policy
from restive.policies.bcor_like import BcorLike
from restive.policies.cet_whittle import CetWhittle
from restive.policies.egt import Egt
from restive.policies.greedy_oracle import GreedyOracle
from restive.policies.lagrange import Lagrange
from restive.policies.loader import load_policy
from restive.policies.lp_update import LpUpdate
from restive.policies.omr_oracle import OmrOracle
from restive.policies.random import Random
from restive.policies.rma2b import Rma2b
from restive.policies.thompson_whittle import ThompsonWhittle
from restive.policies.threshold_oracle import ThresholdOracle
from restive.policies.ucwhittle import UCWhittle
from restive.policies.whittle_oracle import WhittleOracle
from restive.policies.wiql import Wiql

POLICIES: Mapping[str, type[Policy[Any]]] = {
    policy.name: policy
    for policy in (
        Random,
        Egt,
        Wiql,
        UCWhittle,
        Rma2b,
        ThompsonWhittle,
        CetWhittle,
        Lagrange,
        LpUpdate,
        BcorLike,
        ThresholdOracle,
        GreedyOracle,
        WhittleOracle,
        OmrOracle,
    )
}


def find_policy(name: str) -> type[Policy[Any]]:
    """The policy class of that name, or in that file if it ends in .py."""
    if name.endswith(".py"):
        return load_policy(name)
    if name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InputError(f"there is no policy {name!r}; there are {', '.join(POLICIES)}{hint}")
    return POLICIES[name]


def make_policy(spec: str | Policy[Any], **settings: Any) -> Policy[Any]:
    """Make a policy from a text such as "egt" or "egt:eta=0.5".

    Parameters
    ----------
    spec
        The name of a registered policy, or the path of a Python file that defines one, followed by a colon and,
        separated by commas, settings `name=value` that differ from the defaults, or the name of a preset, which later
        settings may change. A policy is returned as it is, but for the settings given here.
    settings
        More settings by name, which are fields of the policy's class with their types, such as `curiosity` of
        `restive.policies.lagrange.Lagrange`.

    Returns
    -------
    Policy
        Frozen settings; what it learns is kept elsewhere, so that one policy can play many simulations.

    Raises
    ------
    InputError
        If there is no such policy or setting, or a value is not valid.

    Examples
    --------
    >>> make_policy("egt:eta=0.5,exploration=most")
    Egt(gamma=None, eta=0.5, D=0.3, p=1.0, exploration='most', unseen='zero', width='howard')
    >>> make_policy("lagrange", curiosity=2).curiosity
    2
    >>> make_policy("egt:authors,p=2")
    Egt(gamma=None, eta=1.0, D='theory', p=2, exploration='least', unseen='first', width='howard')
    """
    if isinstance(spec, Policy):
        _require_known(spec.name, type(spec), settings)
        return replace(spec, **settings) if settings else spec
    if not isinstance(spec, str):
        raise InputError(
            f"policy is {spec!r}; it must be a policy such as Egt(eta=0.5), or a text such as 'egt:eta=0.5'."
        )
    name, _, rest = spec.partition(":")
    policy = find_policy(name)
    known = [field.name for field in fields(policy)]
    written: dict[str, Any] = {}
    for item in filter(None, rest.split(",")):
        key, equals, value = item.partition("=")
        if item in policy.presets:
            written |= policy.presets[item]
        elif equals and key in known:
            written[key] = _read_value(value)
        else:
            raise InputError(f"{name}: {item!r} is not a setting; write setting=value. {_list_settings(policy)}")
    _require_known(name, policy, settings)
    return policy(**(written | settings))


def _require_known(name: str, policy: type[Policy[Any]], settings: Mapping[str, object]) -> None:
    """Refuse a setting that the policy does not have."""
    if unknown := set(settings) - {field.name for field in fields(policy)}:
        raise InputError(f"{name}: {min(unknown)!r} is not a setting. {_list_settings(policy)}")


def _list_settings(policy: type[Policy[Any]]) -> str:
    known = ", ".join(field.name for field in fields(policy)) or "none"
    return f"Settings: {known}." + (f" Presets: {', '.join(policy.presets)}." if policy.presets else "")


def _read_value(text: str) -> object:
    constants: dict[str, object] = {"none": None, "true": True, "false": False}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
