"""Drift alarms: Page's CUSUM on the moves of each action and state, and on all moves of waiting people, from round totals.

moves  [T, A, S, S]  how many people moved from s to t under a in each round

The moves of a round are scored by how much better the rounds just before predict them than all earlier ones do:

    score(a, s) = part · Σ_t moves(t) (log( recent(t) / fitted(t) ) − TOLERANCE)    part = 1 / (1 + Σ moves / MAX_MOVES)
    fitted ∝ 1/S + moves before, with a half-life of FITTED rounds
    recent ∝ SHRINKAGE · fitted + moves before, with a half-life of RECENT rounds
    cusum  = max(0, cusum + score)                                        (Page 1954)

If nothing changes, the score is negative on average, because recent is the noisier estimate. Above the threshold the row
has changed, since the round, from the last one with a cusum of 0 on, at which the likelihood of one row before and another
one after is largest; the chart then begins again with the rounds since. `part` is what
makes many people no surer than MAX_MOVES of them are: people differ and those in a row are others in each round, so its
row varies about the mean however many they are. Most so the rows of acting, for which a learner selects people: there
fewer moves count, and TOLERANCE is the divergence of a change that does not matter, of 3 points at a probability of one
half: among many people, those whom a learner comes to prefer would else raise alarms. It was chosen on other seeds than
those of the checks. The chart of all moves has those of waiting only.

The threshold is for about one false alarm in 500 rounds, of programs whose learner selects people who differ;
`restive check-logs --only drift` prints the rates by threshold.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from restive.types import Floats, Ints

FITTED, RECENT = 32.0, 4.0
SHRINKAGE = 20.0
TOLERANCE = 0.0, 0.002  # waiting and acting
MAX_MOVES = 400.0, 50.0  # waiting and acting
WARM_UP = 10  # rounds of a row before it is judged
THRESHOLD = 5.0


class Alarm(NamedTuple):
    """A change of the moves from a state under an action, or of all moves of waiting people."""

    action: int | None  # None for all moves of waiting people
    state: int | None
    since: int  # the first round with other moves, from 0
    found: int  # the round in which the alarm was raised
    before: Floats  # [S] the row before; empty for all moves
    after: Floats  # the row in the rounds since then


def find_alarms(moves: Ints, threshold: float = THRESHOLD) -> list[Alarm]:
    """All alarms of a program, in the order of rounds.

    >>> before, after = [[[30, 10], [10, 30]], [[5, 5], [5, 5]]], [[[30, 10], [25, 15]], [[5, 5], [5, 5]]]
    >>> alarm = find_alarms(np.array([before] * 30 + [after] * 10))[0]
    >>> alarm.action, alarm.state, alarm.since, alarm.before.tolist(), alarm.after.tolist()
    (0, 1, 30, [0.25, 0.75], [0.625, 0.375])
    """
    states = moves.shape[-1]
    rows = moves.reshape(len(moves), moves.shape[1] * states, states).astype(np.float64)  # [T, A · S, S]
    charts = Charts.start(*rows.shape[1:])
    everything = rows.shape[1]  # the place of the chart of all rows of waiting
    alarms = []
    for number, moved in enumerate(rows):
        charts.add(number, moved)
        raised = np.flatnonzero(charts.cusum > threshold).tolist()
        for row in raised if raised[:1] == [everything] else [row for row in raised if row != everything]:
            part, begun = slice(everything // 2) if row == everything else row, int(charts.begun[row])
            since = begun + _date(rows[begun : number + 1, part], int(charts.zero[row]) - begun)
            if row == everything:
                alarms.append(Alarm(None, None, since, number, np.zeros(0), np.zeros(0)))
            else:
                old, new = rows[begun:since, row].sum(axis=0), rows[since : number + 1, row].sum(axis=0)
                alarms.append(Alarm(row // states, row % states, since, number, old / old.sum(), new / new.sum()))
            charts.restart(part, since, rows[since : number + 1, part].sum(axis=0))
    return alarms


def _date(rounds: Floats, first: int) -> int:
    """The round, from `first` on, that most likely begins the changed part of rounds [n, ..., S]."""
    before = rounds.cumsum(axis=0)[max(first - 1, 0) : -1]
    after = rounds.sum(axis=0) - before
    axes = tuple(range(1, rounds.ndim))
    likelihood = sum(
        (xlogy(part, part) - xlogy(part, part.sum(axis=-1, keepdims=True))).sum(axis=axes) for part in (before, after)
    )
    return max(first, 1) + int(np.argmax(likelihood))


class Charts(NamedTuple):
    """The charts of all rows, the half of waiting first, and in the last place the one of all moves of waiting people."""

    fitted: Floats  # [A · S, S] weighted moves
    recent: Floats
    seen: Ints  # [A · S] rounds with moves
    cusum: Floats  # [A · S + 1]
    zero: Ints  # the last round in which the cusum was 0
    begun: Ints  # the first round of the chart

    @classmethod
    def start(cls, rows: int, states: int) -> "Charts":
        """Charts before the first round."""
        none = np.zeros(rows + 1, np.int64)
        return cls(
            np.zeros((rows, states)), np.zeros((rows, states)), none[:-1].copy(), np.zeros(rows + 1), none, none.copy()
        )

    def add(self, number: int, moved: Floats) -> None:
        """Score the moves of a round, [A · S, S], and learn from them."""
        fitted = self.fitted + 1 / moved.shape[1]
        fitted /= fitted.sum(axis=1, keepdims=True)
        recent = self.recent + SHRINKAGE * fitted
        recent /= recent.sum(axis=1, keepdims=True)
        size = moved.sum(axis=1)
        most, tolerance = (np.repeat(each, size.size // 2) for each in (MAX_MOVES, TOLERANCE))
        score = ((moved * np.log(recent / fitted)).sum(axis=1) - size * tolerance) / (1 + size / most)
        score[self.seen < WARM_UP] = 0.0
        self.cusum[:] = np.maximum(self.cusum + np.append(score, score[: size.size // 2].sum()), 0.0)
        self.zero[self.cusum == 0] = number
        for weighted, half_life in ((self.fitted, FITTED), (self.recent, RECENT)):
            weighted *= 0.5 ** (1 / half_life)
            weighted += moved
        self.seen[:] += size > 0

    def restart(self, row: int | slice, since: int, moved: Floats) -> None:
        """Begin the chart of a row, or of some, again with the moves since a change, and that of all moves at 0."""
        self.fitted[row] = self.recent[row] = moved
        self.seen[row] = 0
        for chart in (row, -1):
            self.cusum[chart], self.begun[chart], self.zero[chart] = 0.0, since, since
