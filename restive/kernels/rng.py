"""Counter-based random numbers: a pure function of (seed, run, step, agent, stream), without state.

A 64-bit key is folded along run, stream and step; agents are then the outputs of a SplitMix64 generator started at that
key (Steele, Lea and Flood 2014, with the finaliser of Stafford's variant 13). So a draw does not depend on how runs are
split over threads or workers, on other draws, or on the policy: every policy meets the same random numbers. Agents
enter by a fixed number, not by their position, so reordering agents reorders their draws with them.
"""

import numpy as np

from restive.kernels.jit import brief, compiled
from restive.types import Floats, Ints, Keys

# One stream for each purpose, so that no two purposes in a step share random numbers.
TRANSITION, NOISE, TIE, EXPLORE, POSTERIOR, START, FAMILY, OWN = range(8)

MAX_SEED = 2**63 - 1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11, _S12 = (np.uint64(shift) for shift in (30, 27, 31, 11, 12))
_S16, _S32, _S48, _LOW = (np.uint64(number) for number in (16, 32, 48, 2**16 - 1))


@compiled
def mix(value: np.uint64) -> np.uint64:
    """Mix 64 bits, one to one, so that similar inputs give unrelated outputs."""
    value = (value ^ (value >> _S30)) * _FIRST
    value = (value ^ (value >> _S27)) * _SECOND
    return value ^ (value >> _S31)


@compiled
def fold(key: np.uint64, number: int) -> np.uint64:
    """The `number`-th subkey of `key`."""
    return mix(key + _GOLDEN * (np.uint64(number) + np.uint64(1)))


@compiled
def unit(bits: np.uint64) -> float:
    """The upper 53 of 64 bits as a number in [0, 1)."""
    return float(bits >> _S11) * 2.0**-53


@brief
def branch(keys: Keys, stream: int, step: int) -> Keys:
    """The key of each run for one stream in one step, [R]; fold agent numbers into it."""
    below = np.empty_like(keys)
    for r in range(keys.size):
        below[r] = fold(fold(keys[r], stream), step)
    return below


@compiled
def run_keys(seed: int, runs: Ints) -> Keys:
    """One key for each run of a seed."""
    keys = np.empty(runs.size, np.uint64)
    top = mix(np.uint64(seed) ^ _GOLDEN)
    for r in range(runs.size):
        keys[r] = fold(top, runs[r])
    return keys


@compiled
def uniform(keys: Keys, agents: Ints) -> Floats:
    """Uniform numbers in [0, 1), [R, N], for keys from `branch`."""
    drawn = np.empty((keys.size, agents.size))
    for r in range(keys.size):
        for n in range(agents.size):
            drawn[r, n] = unit(fold(keys[r], agents[n]))
    return drawn


@compiled
def normal_quantile(probability: float) -> float:
    """The standard normal quantile, to 1 part in 10^16: algorithm AS 241 of Wichura (1988), PPND16."""
    q = probability - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = (((((((2.5090809287301226727e3 * r + 3.3430575583588128105e4) * r + 6.7265770927008700853e4) * r
                  + 4.5921953931549871457e4) * r + 1.3731693765509461125e4) * r + 1.9715909503065514427e3) * r
                  + 1.3314166789178437745e2) * r + 3.3871328727963666080e0)  # fmt: skip
        below = (((((((5.2264952788528545610e3 * r + 2.8729085735721942674e4) * r + 3.9307895800092710610e4) * r
                  + 2.1213794301586595867e4) * r + 5.3941960214247511077e3) * r + 6.8718700749205790830e2) * r
                  + 4.2313330701600911252e1) * r + 1.0)  # fmt: skip
        return q * above / below
    r = float(np.sqrt(-np.log(min(probability, 1.0 - probability))))
    if r <= 5.0:
        r -= 1.6
        above = (((((((7.74545014278341407640e-4 * r + 2.27238449892691845833e-2) * r + 2.41780725177450611770e-1) * r
                  + 1.27045825245236838258e0) * r + 3.64784832476320460504e0) * r + 5.76949722146069140550e0) * r
                  + 4.63033784615654529590e0) * r + 1.42343711074968357734e0)  # fmt: skip
        below = (((((((1.05075007164441684324e-9 * r + 5.47593808499534494600e-4) * r + 1.51986665636164571966e-2) * r
                  + 1.48103976427480074590e-1) * r + 6.89767334985100004550e-1) * r + 1.67638483018380384940e0) * r
                  + 2.05319162663775882187e0) * r + 1.0)  # fmt: skip
    else:
        r -= 5.0
        above = (((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r + 1.24266094738807843860e-3) * r
                  + 2.65321895265761230930e-2) * r + 2.96560571828504891230e-1) * r + 1.78482653991729133580e0) * r
                  + 5.46378491116411436990e0) * r + 6.65790464350110377720e0)  # fmt: skip
        below = (((((((2.04426310338993978564e-15 * r + 1.42151175831644588870e-7) * r + 1.84631831751005468180e-5) * r
                  + 7.86869131145613259100e-4) * r + 1.48753612908506148525e-2) * r + 1.36929880922735805310e-1) * r
                  + 5.99832206555887937690e-1) * r + 1.0)  # fmt: skip
    return above / below if q > 0 else -above / below


@compiled
def unit_open(bits: np.uint64) -> float:
    """The upper 52 of 64 bits as a number strictly between 0 and 1, for quantiles and logarithms."""
    return (float(bits >> _S12) + 0.5) * 2.0**-52  # with 53 bits the half would be rounded away, and the largest be 1


@compiled
def near_normal(bits: np.uint64) -> float:
    """64 bits as a nearly normal variate of mean 0 and variance 1: the sum of four uniforms, ten times as fast.

    >>> round(near_normal(np.uint64(0)), 3), round(near_normal(np.uint64(2**64 - 1)), 3)  # the extremes
    (-3.464, 3.464)
    """
    total = (bits & _LOW) + ((bits >> _S16) & _LOW) + ((bits >> _S32) & _LOW) + (bits >> _S48)
    return float((float(total) - 131070.0) * (3.0**0.5 / 65536.0))
