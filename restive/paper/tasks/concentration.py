"""How far estimated benefits stray: the width of the paper's concentration lemma against Gaussian rewards.

An agent is visited n times in one state and acted on with some probability at each visit, n₁ times in all and n₀ = n −
n₁ times not. With rewards of variance 1 the error of its estimated benefit, given n₁, is normal of variance 1/n₁ +
1/n₀.

    width(n, alpha)   1.7 √((log log 2n + 0.72 log(10.4 / alpha)) / n)         Howard et al. (2021), one mean of n rewards
    printed lemma     |error| < width(n, alpha)                                 n: visits under both actions
    corrected lemma   |error| < width(n₁, alpha/2) + width(n₀, alpha/2)         each mean has its own visits

Both are said to fail with a probability of at most alpha, the corrected one at all visits together.
"""

import numpy as np

from restive.files import Columns
from restive.kernels import rng
from restive.types import Floats


def howard_width(visits: Floats, alpha: float) -> Floats:
    """The width of Howard et al. around the mean of `visits` rewards, for all numbers of visits at once.

    >>> howard_width(np.array([100.0]), 0.05).round(3)
    array([0.399])
    """
    width: Floats = 1.7 * np.sqrt((np.log(np.log(2.0 * visits)) + 0.72 * np.log(10.4 / alpha)) / visits)
    return width


def corrected_width(acted: Floats, waited: Floats, alpha: float) -> Floats:
    """The sum of the widths of the two means, half of alpha for each."""
    return howard_width(acted, alpha / 2) + howard_width(waited, alpha / 2)


def exceeding(deviation: Floats, acted: Floats, waited: Floats) -> Floats:
    """The probability that the error reaches a deviation, given the visits under each action.

    >>> exceeding(np.array([0.392]), np.array([50.0]), np.array([50.0])).round(3)
    array([0.05])
    """
    from scipy.special import ndtr

    probability: Floats = 2.0 * ndtr(-deviation / np.sqrt(1.0 / acted + 1.0 / waited))
    return probability


def concentration(visits: int, share: float, alphas: list[float]) -> Columns:
    """The exact probabilities that the error reaches the printed and the corrected width, if both actions were seen."""
    from scipy.stats import binom

    acted = np.arange(1.0, visits)
    waited = visits - acted
    weight = binom.pmf(acted, visits, share)
    weight /= weight.sum()
    printed = [weight @ exceeding(howard_width(np.array(float(visits)), alpha), acted, waited) for alpha in alphas]
    corrected = [weight @ exceeding(corrected_width(acted, waited, alpha), acted, waited) for alpha in alphas]
    return {"alpha": np.array(alphas), "printed": np.array(printed), "corrected": np.array(corrected)}


def excursions(visits: int, share: float, alpha: float, runs: int, seed: int) -> Columns:
    """For each of many simulated runs, whether the error reached each width at any visit, 0 or 1."""
    from scipy.special import ndtri

    keys, numbers = rng.run_keys(seed, np.arange(runs)), np.arange(visits)
    acts = rng.uniform(rng.branch(keys, rng.EXPLORE, 0), numbers) < share
    noise = ndtri(rng.uniform(rng.branch(keys, rng.NOISE, 0), numbers) + 2.0**-54)
    acted, waited = (np.cumsum(each, axis=1, dtype=np.float64) for each in (acts, ~acts))
    both = (acted > 0) & (waited > 0)
    acted, waited = np.maximum(acted, 1.0), np.maximum(waited, 1.0)
    error = np.abs(np.cumsum(noise * acts, axis=1) / acted - np.cumsum(noise * ~acts, axis=1) / waited)
    widths = {
        "printed": howard_width(np.arange(1.0, visits + 1), alpha),
        "corrected": corrected_width(acted, waited, alpha),
    }
    return {name: np.any((error >= width) & both, axis=1).astype(np.float64) for name, width in widths.items()}
