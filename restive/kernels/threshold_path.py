"""Values of a budgeted policy from logged rounds: the budget is replaced by its path of thresholds.

With the threshold of every round fixed, people are independent of each other. In round t, with weights ρ that turn the
logged people into those whom the policy would have met,

    c_t : Σ_i ρ_i 1{priority_i ≥ c_t} = share_t Σ_i ρ_i;   π_i = that indicator, a fraction where priorities tie at c_t
    w_i = A π / e + (1 − A) (1 − π) / (1 − e);   ρ_i ← ρ_i w_i

A unit is one person in one window of H rounds. Entries, one for each unit and round, are sorted by group (step of the
window first, then window), those who can be acted on first, highest priority first; so a threshold is one scan.
"""

from typing import NamedTuple

import numpy as np

from restive.kernels.jit import compiled
from restive.types import Bools, Floats, Ints


class Entries(NamedTuple):
    """Sorted entries, and G groups of them: all entries of one round."""

    unit: Ints  # [E]
    person: Ints  # [E]
    action: Ints  # [E]
    reward: Floats  # [E]
    propensity: Floats  # [E] the logged probability of acting
    tied: Bools  # [E] same priority as the entry before
    first: Ints  # [G + 1] the first entry of each group
    open: Ints  # [G] how many entries of the group can be acted on
    share: Floats  # [G] the share of those that is acted on
    explore: Floats  # [G] the probability that they are drawn at random


# Columns of the sums over units that `walk` returns, one row for each step of the window: the model's value weighted by
# what led there, reward minus model, weights, their squares, rewards, weights and squares where both act, weights before
# this step, of these the acted on and the unsupported, and without weights the rewards and the units.
LED, RESIDUAL, WEIGHT, SQUARE, REWARD, ACTED, ACTED_SQUARE, BASE, SPENT, UNSUPPORTED, LOGGED, UNITS = range(12)
COLUMNS = 12


@compiled
def share_out(weight: Floats, tied: Bools, limit: int, share: float, explore: float, chosen: Floats) -> None:
    """Fill `chosen` with the probability π that each entry is acted on; entries are sorted, highest priority first.

    The first `limit` entries can be acted on, and `share` of their weight is; ties at the threshold get equal parts.

    >>> chosen, tied = np.empty(4), np.array([False, False, True, False])
    >>> share_out(np.array([1.0, 1.0, 1.0, 1.0]), tied, 4, 0.5, 0.0, chosen)
    >>> chosen
    array([1. , 0.5, 0.5, 0. ])
    """
    left = share * weight[:limit].sum()
    m = 0
    while m < limit:
        end, here = m + 1, weight[m]
        while end < limit and tied[end]:
            here += weight[end]
            end += 1
        part = 1.0 if left >= here else 0.0 if left <= 0.0 else left / here
        chosen[m:end] = explore * share + (1.0 - explore) * part
        left -= here
        m = end
    chosen[limit : weight.size] = 0.0


@compiled
def walk(entries: Entries, steps: int, units: int, model: Floats, ratio: Floats, people: Floats) -> Floats:
    """Sums over all units, [H, columns], if each person counts `people` [N] times.

    model  [E, 2] the expected reward from this round on, if not acted on and if acted on
    ratio  [E] how much more often the policy meets this person in this state in this round than the log did; empty to
           use the product of the weights of the rounds before
    """
    sums = np.zeros((steps, COLUMNS))
    lead, product = np.ones(units), np.ones(units)
    widest = 0
    for g in range(entries.share.size):
        widest = max(widest, entries.first[g + 1] - entries.first[g])
    times, weight, chosen = np.empty(widest), np.empty(widest), np.empty(widest)
    for g in range(entries.share.size):
        first, last = entries.first[g], entries.first[g + 1]
        row = sums[g * steps // entries.share.size]
        for m in range(first, last):
            times[m - first] = people[entries.person[m]]
            weight[m - first] = times[m - first] * (ratio[m] if ratio.size > 0 else product[entries.unit[m]])
        size = last - first
        tied, share, explore = entries.tied[first:last], entries.share[g], entries.explore[g]
        share_out(weight[:size], tied, entries.open[g], share, explore, chosen)
        for m in range(first, last):
            unit, many, acts = entries.unit[m], times[m - first], chosen[m - first]
            if many == 0.0:
                continue
            done, probability, reward = entries.action[m], entries.propensity[m], entries.reward[m]
            base = ratio[m] if ratio.size > 0 else product[unit]
            factor = acts / probability if done == 1 else (1.0 - acts) / (1.0 - probability)
            missing = acts * (probability <= 0.0) * (m < first + entries.open[g]) + (1.0 - acts) * (probability >= 1.0)
            row[LED] += many * lead[unit] * (acts * model[m, 1] + (1.0 - acts) * model[m, 0])
            product[unit] *= factor
            lead[unit] = base * factor
            now = many * lead[unit]
            row[RESIDUAL] += now * (reward - model[m, done])
            row[WEIGHT] += now
            row[SQUARE] += now * lead[unit]
            row[REWARD] += now * reward
            row[ACTED] += now * done
            row[ACTED_SQUARE] += now * lead[unit] * done
            row[BASE] += many * base
            row[SPENT] += many * base * acts
            row[UNSUPPORTED] += many * base * missing
            row[LOGGED] += many * reward
            row[UNITS] += many
    return sums
