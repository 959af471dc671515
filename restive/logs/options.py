"""How the table of a history is read: the options of every verb, as data and as people write them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from restive.errors import InputError, did_you_mean, parse_pairs

COLUMNS = (
    "agent", "time", "state", "action", "reward", "next_state", "propensity", "advised", "arm", "group", "available"
)  # fmt: skip
PERIOD = re.compile(r"([1-9]\d{0,5})(h|d|w|mo|y|)")


@dataclass(frozen=True)
class ReadOptions:
    """How a table is read.

    Attributes
    ----------
    columns
        The header of a column that is called differently: {"agent": "customer_id"}.
    states
        The names of the states, the worst first; by default those of the table, in the order of their rewards.
    rewards
        The reward of arriving in each state; by default the column reward.
    action_is
        The texts that mean acting; every other text means not acting. By default cells are 0 or 1, false or true.
    every
        The length of a round, such as 12h, 7d, 2w, 1mo or, for whole numbers, 7; by default each time is a round.
    reward_on
        Whether the reward of a row belongs to the state that follows ("arrival") or to its own ("departure").
    propensity_of
        Whether propensities are those of acting, or of what was done.
    features
        The columns to use as features: their first value of each agent. By default all that never change.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    states: Sequence[str] = ()
    rewards: Mapping[str, float] = field(default_factory=dict)
    action_is: Sequence[str] = ()
    every: str | None = None
    reward_on: Literal["arrival", "departure"] | None = None
    propensity_of: Literal["acting", "done"] | None = None
    features: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if wrong := next((name for name in self.columns if name not in COLUMNS), None):
            raise InputError(f"{wrong!r} is not a column of a history{did_you_mean(wrong, COLUMNS)}", location="column")
        for name in ("reward_on", "propensity_of"):
            allowed = ReadOptions.__annotations__[name].__args__[0].__args__
            if getattr(self, name) not in (None, *allowed):
                raise InputError(
                    f"{name} is {getattr(self, name)!r}; it must be {' or '.join(allowed)}.", location=name
                )
        if self.every is not None and not PERIOD.fullmatch(self.every):
            raise InputError(f"{self.every!r} is not a period; write it like 7d, 2w, 1mo, 12h or 7.", location="every")


def parse_options(
    column: Sequence[str] = (),
    states: str | None = None,
    rewards: str | None = None,
    action_is: str | None = None,
    every: str | None = None,
    reward_on: str | None = None,
    propensity_of: str | None = None,
    features: tuple[str, ...] | None = None,
) -> ReadOptions:
    """Options as people write them, in a command or a form; empty ones are left to the defaults.

    >>> parse_options(["agent=customer_id"], rewards="lapsed=0, active=1").rewards
    {'lapsed': 0.0, 'active': 1.0}
    """
    return ReadOptions(
        columns=parse_pairs(column, "column"),
        states=split_names(states),
        rewards=split_numbers(rewards, "rewards"),
        action_is=split_names(action_is),
        every=every or None,
        reward_on=reward_on or None,  # type: ignore[arg-type] # checked there
        propensity_of=propensity_of or None,  # type: ignore[arg-type]
        features=features or None,
    )


def split_names(text: str | None) -> tuple[str, ...]:
    """Names with commas between.

    >>> split_names("lapsed, active")
    ('lapsed', 'active')
    """
    return tuple(part.strip() for part in text.split(",")) if text else ()


def split_numbers(text: str | None, option: str) -> dict[str, float]:
    """Numbers by name.

    >>> split_numbers("lapsed=0,active=1", "rewards")
    {'lapsed': 0.0, 'active': 1.0}
    """
    numbers = {}
    for name, value in parse_pairs(split_names(text), option).items():
        try:
            numbers[name] = float(value)
        except ValueError:
            raise InputError(f"{value!r} is not a number, of {name!r}.", location=option) from None
    return numbers
