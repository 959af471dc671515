"""The draws: bit for bit those of plain-integer SplitMix64, uniform, and unrelated along every axis."""

import numpy as np
import pytest
from scipy import special, stats

from restive.kernels import rng
from restive.types import Floats, Keys

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def slow_mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def slow_fold(key: int, number: int) -> int:
    return slow_mix(key + GOLDEN * (number + 1) & MASK)


def keys(*values: int) -> Keys:
    return np.array(values, np.uint64)


def draw(seed: int, runs: int, steps: int, agents: int, streams: int) -> Floats:
    """Uniform numbers, [streams, steps, runs, agents]."""
    top = rng.run_keys(seed, np.arange(runs))
    return np.array(
        [
            [rng.uniform(rng.branch(top, stream, step), np.arange(agents)) for step in range(steps)]
            for stream in range(streams)
        ]
    )


# Published outputs of SplitMix64 for the seeds 0 and 1234567.
@pytest.mark.parametrize(
    ("seed", "outputs"),
    [
        (0, [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]),
        (1234567, [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]),
    ],
)
def test_agents_are_the_outputs_of_splitmix(seed: int, outputs: list[int]) -> None:
    assert [int(rng.fold(np.uint64(seed), number)) for number in range(len(outputs))] == outputs
    assert [slow_fold(seed, number) for number in range(len(outputs))] == outputs


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**32, rng.MAX_SEED])
def test_kernels_agree_with_plain_integers(seed: int) -> None:
    runs, agents = np.array([0, 1, 2, 1000, 2**40]), np.array([0, 3, 7, 2**50])
    top = slow_mix(seed ^ GOLDEN)
    run_keys = [slow_fold(top, int(run)) for run in runs]
    assert rng.run_keys(seed, runs).tolist() == run_keys
    for stream, step in [(0, 0), (rng.TIE, 5), (rng.OWN, 10**12)]:
        branches = [slow_fold(slow_fold(key, stream), step) for key in run_keys]
        branched = rng.branch(rng.run_keys(seed, runs), stream, step)
        assert branched.tolist() == branches
        wanted = [[(slow_fold(key, int(agent)) >> 11) / 2**53 for agent in agents] for key in branches]
        assert rng.uniform(branched, agents).tolist() == wanted


def test_units_stay_inside_their_bounds() -> None:
    least, most = np.uint64(0), np.uint64(MASK)
    assert rng.unit(least) == 0.0
    assert rng.unit(most) == 1 - 2.0**-53
    assert rng.unit_open(least) == 2.0**-53
    assert rng.unit_open(most) == 1 - 2.0**-53
    assert rng.unit_open(np.uint64(1 << 63)) == 0.5 + 2.0**-53


def test_quantiles_of_the_extreme_draws_are_finite() -> None:
    for bits in (0, 1 << 11, MASK, MASK - (1 << 11)):
        assert abs(rng.normal_quantile(rng.unit_open(np.uint64(bits)))) < 8.4


def test_normal_quantiles_agree_with_another_implementation() -> None:
    tails = np.concatenate([np.logspace(-300, -1, 400), np.linspace(0.07, 0.93, 401), 1 - np.logspace(-15, -1, 100)])
    ours = np.array([rng.normal_quantile(float(each)) for each in tails])
    # Near one half the quantile is near zero, so the error is absolute there.
    assert np.allclose(ours, special.ndtri(tails), rtol=1e-14, atol=2e-15)
    assert rng.normal_quantile(0.5) == 0.0


def test_a_draw_does_not_depend_on_which_others_are_made() -> None:
    whole = rng.branch(rng.run_keys(7, np.arange(20)), rng.NOISE, 3)
    part = rng.branch(rng.run_keys(7, np.array([11, 4])), rng.NOISE, 3)
    all_drawn = rng.uniform(whole, np.arange(30))
    assert np.array_equal(rng.uniform(part, np.array([29, 0, 17])), all_drawn[[11, 4]][:, [29, 0, 17]])


def test_draws_are_uniform_along_every_axis() -> None:
    drawn = draw(seed=1, runs=30, steps=30, agents=30, streams=8)
    assert stats.kstest(drawn.ravel(), "uniform").pvalue > 1e-3
    for axis in range(4):
        # A mean over all other axes is normal about 1/2: none of the 98 of them strays five deviations.
        others = tuple(other for other in range(4) if other != axis)
        means = drawn.mean(axis=others)
        deviation = np.sqrt(1 / 12 / (drawn.size / drawn.shape[axis]))
        assert (np.abs(means - 0.5) < 5 * deviation).all()


@pytest.mark.parametrize("axis", range(4), ids=["stream", "step", "run", "agent"])
@pytest.mark.parametrize("lag", [1, 2])
def test_neighbours_along_an_axis_are_independent(axis: int, lag: int) -> None:
    drawn = draw(seed=2, runs=24, steps=24, agents=24, streams=8)
    one = np.moveaxis(drawn, axis, 0)[:-lag].ravel()
    other = np.moveaxis(drawn, axis, 0)[lag:].ravel()
    assert abs(np.corrcoef(one, other)[0, 1]) < 4 / np.sqrt(one.size)
    table, _, _ = np.histogram2d(one, other, bins=12, range=[[0, 1], [0, 1]])
    assert stats.chisquare(table.ravel()).pvalue > 1e-3


def test_neighbouring_seeds_are_unrelated() -> None:
    first, second = draw(10, 40, 5, 40, 2).ravel(), draw(11, 40, 5, 40, 2).ravel()
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / np.sqrt(first.size)
    assert not np.intersect1d(first, second).size


def test_no_two_draws_share_a_number() -> None:
    drawn = draw(seed=3, runs=50, steps=50, agents=50, streams=8)
    # A million 53-bit numbers collide with probability 6e-5.
    assert np.unique(drawn).size == drawn.size


def test_every_bit_of_a_key_is_a_fair_coin() -> None:
    drawn = rng.run_keys(4, np.arange(40_000))
    ones = (drawn[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)).mean(axis=0)
    assert (np.abs(ones - 0.5) < 4.5 * 0.5 / np.sqrt(drawn.size)).all()


def test_one_flipped_bit_flips_half_of_the_others() -> None:
    values = rng.run_keys(5, np.arange(300))
    for bit in range(64):
        changed = [int(rng.mix(value)) ^ int(rng.mix(value ^ np.uint64(1 << bit))) for value in values]
        assert abs(np.mean([each.bit_count() for each in changed]) - 32) < 1.5


def test_near_normal_is_the_sum_of_four_uniform_numbers() -> None:
    for key in (0, 1, 0xFFFF, 0x0123456789ABCDEF, 1 << 63, MASK):
        parts = [(key >> shift & 0xFFFF) - 32767.5 for shift in (0, 16, 32, 48)]
        assert rng.near_normal(np.uint64(key)) == pytest.approx(sum(parts) * 3**0.5 / 65536, rel=1e-15, abs=1e-15)


def test_near_normal_has_mean_zero_variance_one_and_bounds() -> None:
    drawn = np.array([rng.near_normal(key) for key in rng.run_keys(6, np.arange(40_000))])
    assert abs(drawn.mean()) < 4 / np.sqrt(drawn.size)
    # The fourth moment of four uniform numbers is 3 − 1.2 / 4 = 2.7, so a square has the variance 1.7.
    assert abs((drawn**2).mean() - 1) < 4 * np.sqrt(1.7 / drawn.size)
    assert abs((drawn**4).mean() - 2.7) < 4 * (drawn**4).std() / np.sqrt(drawn.size)
    assert abs((drawn**3).mean()) < 4 * (drawn**3).std() / np.sqrt(drawn.size)
    assert np.abs(drawn).max() <= 2 * 3**0.5
    assert stats.kstest(drawn / 3**0.5 + 2, stats.irwinhall(4).cdf).pvalue > 1e-3


def test_near_normal_of_neighbouring_agents_and_steps_is_uncorrelated() -> None:
    top = rng.run_keys(8, np.arange(1))
    steps = [rng.branch(top, rng.POSTERIOR, step)[0] for step in range(120)]
    drawn = np.array([[rng.near_normal(np.uint64(rng.fold(key, agent))) for agent in range(120)] for key in steps])
    for one, other in ((drawn[1:], drawn[:-1]), (drawn[:, 1:], drawn[:, :-1])):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 4 / np.sqrt(one.size)
