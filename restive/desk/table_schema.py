"""Validates tables of states, of outcomes and of agents; every fault is reported at once, by row and column.

The `read_...` functions take a frame (see `table_files`) and return columns of fixed types, or raise `TableError` with
all faults.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import polars as pl

from restive.desk.table_columns import AllKnown, ColumnNames, TableColumns, accept, match_headers
from restive.desk.table_files import AGENT_HEADERS, ROW, quote
from restive.desk.table_mapping import NO_MAPPING, TableMapping
from restive.errors import Hint

Features = Mapping[str, Sequence[str]]  # the categories of each feature of people; none: it is a number

AGENTS: ColumnNames = {"agent": AGENT_HEADERS}
STATES: ColumnNames = {**AGENTS, "state": ("state",), "group": ("group",)}
COST: ColumnNames = {"cost": ("cost",)}  # of acting on a person, in programs with costs
OUTCOMES: ColumnNames = {
    **AGENTS,
    "done": ("done",),
    "next_state": ("next_state", "after", "state"),
    "reward": ("reward",),
    "round": ("round",),
}
MAX_COST = 1e9
NOT_REACHED = "not reached"  # the action was not done
YES = {
    "1", "y", "yes", "t", "true", "x", "done", "j", "ja", "wahr", "o", "oui", "vrai", "s", "si", "sí", "sim",
    "✓", "✔", "✅", "☑", "reached", "answered",
}  # fmt: skip
NO = {
    "0", "n", "no", "f", "false", "nein", "falsch", "nee", "non", "faux", "falso", "não", "nao",
    "✗", "✘", "❌", "☐", "no answer", NOT_REACHED, "unreachable", "not done", "missed",
}  # fmt: skip
COMMON_YES_NO = ("yes", "no", "1", "0", "true", "false")


def read_states(
    frame: pl.DataFrame, where: str, states: Sequence[str], all_known: AllKnown | None = None,
    features: Features = MappingProxyType({}), mapping: TableMapping = NO_MAPPING, display: Sequence[str] = (), cost: bool = False,
) -> pl.DataFrame:  # fmt: skip
    """States by agent: agent (String), state (Int16, null where the cell is empty), group (String or null).

    Then, if people have costs, the cost (Float64); a column for each feature: a number, or the number of a category; the
    display columns that the table has, as texts; each null where the cell is empty; last the row. Rows that say the same about
    an agent are merged.

    A state is given by its name, in any case if that is unambiguous, or by its number from 0; names take precedence.

    >>> from restive.desk.table_files import as_frame
    >>> read_states(as_frame({"ann": "High", "ben": 0, "cem": None}), "monday", ["low", "high"]).rows()
    [('ann', 1, None, 1), ('ben', 0, None, 2), ('cem', None, None, 3)]
    """
    columns = state_columns(features, display, cost)
    table = TableColumns(frame, where, columns, ("agent", "state"), all_known, mapping, states)
    agent = table.ids()
    state = table.state_codes("state", states)
    group = table.texts("group")
    table.check_printable("group", group)
    costs = {"cost": _costs(table)} if cost else {}
    known = {name: table.feature(name, categories) for name, categories in features.items()}
    shown = {name: table.display(name) for name in display if name in table.headers}
    return table.merge(pl.DataFrame({"agent": agent, "state": state, "group": group, **costs, **known, **shown}))


def _costs(table: TableColumns) -> pl.Series:
    """What acting on each person costs, above 0."""
    cost = table.numbers("cost")
    wrong = (cost <= 0) | (cost > MAX_COST)
    table.add_faults("cost", wrong, lambda i: f"{cost[i]:g} is not a cost; it must be above 0, up to {MAX_COST:g}")
    return cost


def state_columns(features: Features, display: Sequence[str] = (), cost: bool = False) -> ColumnNames:
    """The columns of a table of states with these features and display columns, and with costs."""
    return {**STATES, **(COST if cost else {}), **{name: (name,) for name in (*features, *display)}}


def read_outcomes(
    frame: pl.DataFrame, where: str, states: Sequence[str], rewards_by_state: Sequence[float] | None,
    all_known: AllKnown | None = None, mapping: TableMapping = NO_MAPPING,
) -> pl.DataFrame:  # fmt: skip
    """Outcomes: agent (String), done (Boolean), reward (Float64), after (Int16), round (Int64); null: not reported.

    The last column is the row; rows that say the same about an agent and a round are merged.

    With rewards_by_state, reward = rewards_by_state[after], and a reward in the table must agree. Without, every row
    with a next state needs a reward. Rounds count from 1; an agent may appear once in each of them.

    >>> from restive.desk.table_files import as_frame
    >>> table = as_frame([{"agent": "ann", "done": "yes", "next_state": "high"}])
    >>> read_outcomes(table, "week 1", ["low", "high"], rewards_by_state=[0, 2.5]).rows()
    [('ann', True, 2.5, 1, None, 1)]
    """
    table = TableColumns(frame, where, OUTCOMES, ("agent",), all_known, mapping, states)
    if not any(name in table.headers for name in ("done", "next_state", "reward")):
        table.add_fault(None, None, "no column reports an outcome; one of done, next_state, reward is required", "done")
        table.hint = Hint.COLUMNS
    agent = table.ids()
    round_ = table.parsed(
        "round", pl.Int64, _parse_round, lambda text: f"{quote(text)} is not a round; rounds count from 1"
    )
    done = table.parsed("done", pl.Boolean, _parse_done, lambda text: f"{quote(text)} is not yes or no", COMMON_YES_NO)
    after = table.state_codes("next_state", states)
    reward = table.numbers("reward")
    if rewards_by_state is None:
        _check_rewards_given(table, after, reward)
    else:
        reward = _rewards_of_states(table, after, reward, rewards_by_state)
    outcomes = {"agent": agent, "done": done, "reward": reward, "after": after, "round": round_}
    return table.merge(pl.DataFrame(outcomes), ("agent", "round"))


def read_agents(frame: pl.DataFrame, where: str, mapping: TableMapping = NO_MAPPING) -> pl.Series:
    """The ids in the column agent; other columns are ignored.

    >>> from restive.desk.table_files import as_frame
    >>> read_agents(as_frame(["ann", "ben"]), "never.csv").to_list()
    ['ann', 'ben']
    """
    table = TableColumns(frame, where, AGENTS, ("agent",), mapping=mapping)
    return table.merge(pl.DataFrame({"agent": table.ids()}))["agent"]


def count_normalized(frame: pl.DataFrame, table: pl.DataFrame, mapping: TableMapping = NO_MAPPING) -> int:
    """How many ids differ from the cells that they were read from by more than surrounding blanks.

    >>> from restive.desk.table_files import as_frame
    >>> frame = as_frame([{"agent": "ann\\u200b", "state": 0}, {"agent": " ben", "state": 0}])
    >>> count_normalized(frame, read_states(frame, "monday.csv", ["low", "high"]))
    1
    """
    cells = frame[match_headers(frame, accept(AGENTS, mapping))["agent"]]
    if cells.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return 0
    kept = cells if len(table) == len(frame) else cells.filter(frame[ROW].is_in(table[ROW].implode()))
    if kept.dtype == pl.String and kept.equals(table["agent"]):
        return 0
    return int((kept.cast(pl.String).str.strip_chars() != table["agent"]).sum())


def _parse_done(text: str) -> bool | None:
    word = text.lower().removesuffix(".0")
    return True if word in YES else False if word in NO else None


def _parse_round(text: str) -> int | None:
    digits = text.removesuffix(".0")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 and int(digits) >= 1 else None


def _check_rewards_given(table: "TableColumns", after: pl.Series, reward: pl.Series) -> None:
    """Note next states without a reward, where rewards are reported."""
    missing = after.is_not_null() & reward.is_null()
    if not missing.any():
        return
    if "reward" in table.headers:
        empty = table.texts("reward").is_null()
        table.add_faults("reward", missing & empty, lambda _: "empty; every row with a next state needs a reward")
    else:
        table.add_fault(None, None, "no column 'reward'; in this program every row with a next state needs a reward")


def _rewards_of_states(
    table: "TableColumns", after: pl.Series, reward: pl.Series, rewards: Sequence[float]
) -> pl.Series:
    """The reward of each next state; note given rewards that differ from it or have no next state."""
    values = pl.Series(list(map(float, rewards)), dtype=pl.Float64)
    expected = values.gather(after) if after.null_count() else values[after]
    if reward.null_count() == len(reward):
        return expected
    differs = (reward - expected).abs() > 1e-9 * (1.0 + expected.abs())
    alone = reward.is_not_null() & table.texts("next_state").is_null()
    table.add_faults(
        "reward", differs, lambda i: f"{reward[i]:g} does not match the next state's reward {expected[i]:g}"
    )
    table.add_faults(
        "reward", alone, lambda _: "a reward without a next state; here rewards follow from the next state"
    )
    return expected
