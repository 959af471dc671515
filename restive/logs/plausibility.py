"""Finds columns of a history that do not mean what they are called, and what a history cannot say.

A reward may belong to the state that was left, a propensity to what was done, a state may be known only of people who
were acted on. Such tables are refused, with the option that says what is meant.
"""

from dataclasses import replace

import numpy as np
import polars as pl

from restive.logs.columns import HistoryTable, Rows
from restive.logs.history import History
from restive.logs.options import ReadOptions
from restive.types import Bools, Floats, Ints

MIN_ROWS = 10  # fewer rows prove nothing
MIN_MOVES = 30  # of a state and an action
EVIDENCE = 20.0  # in twice the difference of log likelihoods, beyond what chance explains


def check_propensity(table: HistoryTable, rows: Rows, options: ReadOptions) -> None:
    """Note probabilities that are missing, outside [0, 1], of what was done, or that contradict it.

    They become those of acting; where advice is recorded, those of being advised.
    """
    if rows.propensity is None:
        return
    given, drawn = rows.propensity, rows.action if rows.advised is None else rows.advised
    impossible = np.zeros(given.size, bool) if rows.available is None else ~rows.available
    given[impossible & np.isnan(given)] = 0.0
    outside = pl.Series((given < 0) | (given > 1))
    table.add_faults("propensity", outside, lambda i: f"{given[i]:g} is not a probability from 0 to 1")
    empty = pl.Series(np.isnan(given) & (drawn >= 0)) & table.texts("propensity").is_null()
    table.add_faults("propensity", empty, lambda _: "empty; every row needs its probability, or leave the column out")
    used = (drawn >= 0) & ~impossible & (given >= 0) & (given <= 1)
    if options.propensity_of is None and is_of_what_was_done(given[used], drawn[used]):
        message = "these are probabilities of what was done, not of acting; set propensity-of to done (or to acting)"
        table.add_fault(None, table.headers["propensity"], message)
        return
    if options.propensity_of == "done":
        rows.propensity = given = np.where(impossible, 0.0, np.where(drawn == 1, given, 1.0 - given))
    did = "acted on" if rows.advised is None else "advised"
    for probability, done, which in ((0, 1, ""), (1, 0, "not ")):
        other = pl.Series((given == probability) & (drawn == done))
        message = f"the probability is {probability}, but the person was {which}{did}"
        table.add_faults("propensity", other, lambda _, message=message: message)  # type: ignore[misc]


def is_of_what_was_done(probability: Floats, action: Ints) -> bool:
    """Whether probabilities fit the actions only as those of what was done.

    >>> action = np.arange(200) % 5 // 4
    >>> is_of_what_was_done(np.where(action == 1, 0.2, 0.8), action), is_of_what_was_done(np.full(200, 0.2), action)
    (True, False)
    """
    as_acting = _miscalibration(probability, action)
    as_done = _miscalibration(np.where(action == 1, probability, 1.0 - probability), action)
    return as_acting > 3 * EVIDENCE and as_done < max(EVIDENCE + MIN_ROWS, as_acting / EVIDENCE)


def _miscalibration(probability: Floats, action: Ints) -> float:
    """χ² of the number of actions in ten bins by probability."""
    near = np.clip(probability, 0.001, 0.999)
    tenth = (near * 10 + 1e-9).astype(np.int64)  # 1 − 0.8 belongs to 0.2
    excess = np.bincount(tenth, action - near, minlength=10)
    variance = np.bincount(tenth, near * (1 - near), minlength=10)
    return float((excess**2 / np.maximum(variance, 1e-9)).sum())


def check_plausible(table: HistoryTable, rows: Rows, options: ReadOptions, n_states: int) -> None:
    """Note columns that do not mean what they are called, and tables without a move."""
    _check_known_in_both_actions(table, rows)
    moves = rows.next_state >= 0
    if not moves.any():
        period = "" if options.every else "; set the period of a round (every) if times differ between people"
        table.add_fault(None, None, f"no move is known: nobody has states in two successive rounds{period}")
    elif rows.reward is not None and options.reward_on is None and not options.rewards:
        used = moves & ~np.isnan(rows.reward) & (rows.state >= 0)
        if is_on_departure(rows.reward[used], rows.state[used], rows.next_state[used], n_states):
            table.add_fault(
                None, table.headers["reward"],
                "rewards follow from the state of their own row, not from the next one; "
                "set reward-on to departure (or to arrival, if they are right)",
            )  # fmt: skip


def _check_known_in_both_actions(table: HistoryTable, rows: Rows) -> None:
    """Note states that are known only of people who were acted on."""
    given = "next_state" in table.headers
    has_next = np.ones(rows.agent.size, bool) if given else rows.follows & (rows.state >= 0)
    questions: list[tuple[str, Bools, Bools]] = [
        ("state", np.ones(rows.agent.size, bool), rows.state >= 0),
        ("next_state" if given else "state", has_next, rows.next_state >= 0),
    ]
    for name, base, known in questions:
        acted, waited = known[base & (rows.action == 1)], known[base & (rows.action == 0)]
        if waited.size >= MIN_ROWS and acted.any() and not waited.any():
            what = "the state" if base is not has_next else "the state that follows"
            message = f"{what} is known only of people who were acted on; nothing can be said about acting"
            table.add_fault(None, table.headers[name], message)
            return


def is_on_departure(reward: Floats, state: Ints, next_state: Ints, n_states: int) -> bool:
    """Whether rewards follow from the state left, and the state arrived in adds nothing.

    >>> state, after = np.arange(200) % 2, np.arange(200) // 2 % 2
    >>> is_on_departure(state * 5.0, state, after, 2), is_on_departure(after * 5.0, state, after, 2)
    (True, False)
    """
    total = float(((reward - reward.mean()) ** 2).sum()) if reward.size else 0.0
    if reward.size < MIN_ROWS or total < 1e-12:
        return False
    pair = state * n_states + next_state
    left, arrived, both = (max(_unexplained(reward, code), 1e-9 * total) for code in (state, next_state, pair))
    better = reward.size * np.log(arrived / left)
    added = reward.size * np.log(left / both)
    parameters = np.unique(pair).size - np.unique(state).size
    return bool(better > EVIDENCE and added < parameters + 3 * np.sqrt(2 * parameters))


def _unexplained(reward: Floats, code: Ints) -> float:
    """The sum of squares within codes."""
    number, total = np.bincount(code), np.bincount(code, reward)
    mean = total / np.maximum(number, 1)
    return float(((reward - mean[code]) ** 2).sum())


def describe_history(history: History) -> History:
    """The history with notes about what it cannot say."""
    notes = list(history.notes)
    if len(history.actions) < 2:
        who = "Nobody was ever" if history.actions == (0,) else "Everybody was always"
        notes.append(f"{who} acted on: what acting changes cannot be seen in this history; a trial would show it.")
    elif history.decided_by_state:
        notes.append("Acting was decided by the state alone: its effect cannot be separated from that of the state.")
    codes = (history.action * history.n_states + history.state)[history.known]
    moves = np.bincount(codes, minlength=2 * history.n_states).reshape(2, history.n_states)
    thin = [
        f"{('waiting', 'acting')[action]} in {history.states[state]} ({moves[action, state]})"
        for action, state in np.argwhere(moves < MIN_MOVES)
    ]
    if thin:
        notes.append(f"Fewer than {MIN_MOVES} moves, estimated mostly from the others: {', '.join(thin)}.")
    return replace(history, notes=tuple(notes))
