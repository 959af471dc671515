"""Intervals cover what they say, weights make the extra reward come out, and the shadow meets a simulated truth."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from restive import read_trial
from restive.desk import Desk
from restive.desk.config import Words
from restive.desk.demo import run_demo
from restive.desk.lift import CONTROL, TREATED, Lift, compare_policies, lift, lift_by_round
from restive.desk.replay import replay
from restive.desk.status import get_status
from restive.errors import InputError
from restive.logs.estimators import Sums
from restive.types import Bools, Floats, Ints

WORDS = Words(person="shop", people="shops", every="week", reward_unit="orders a week")


def binomial_interval(times: int, level: float = 0.999) -> tuple[float, float]:
    """Where the share of intervals that cover lies, if each does with probability 0.95."""
    low, high = stats.binom.interval(level, times, 0.95)
    return low / times, high / times


def test_with_equal_rounds_it_is_the_welch_interval() -> None:
    generator = np.random.default_rng(1)
    mean, control = generator.normal(2, 1, 40), np.arange(40) < 12
    answer = lift(Sums.untouched(7 * mean, np.full(40, 7), control))
    expected = stats.ttest_ind(mean[~control], mean[control], equal_var=False).confidence_interval(0.95)
    assert (answer.low, answer.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert answer.mean == pytest.approx(mean[~control].mean() - mean[control].mean())
    assert (answer.treated, answer.control) == (28, 12)
    assert answer.extra_low == pytest.approx(28 * 7 * expected.low)


def test_freedom_with_unequal_rounds_is_that_of_the_whole_quadratic_form() -> None:
    """The closed form against matrices: variance = y'Ay, freedom = trace(A)² / trace(A²)."""
    seen = np.array([1, 2, 9, 4, 4])
    share = seen / seen.sum()
    residual = np.eye(5) - np.outer(np.ones(5), share)
    scale = np.diag(share**2 / np.diag(residual @ residual.T))
    form = residual.T @ scale @ residual
    mean = np.array([3.0, 1.0, 4.0, 1.5, 2.0])
    variance, freedom = mean @ form @ mean, np.trace(form) ** 2 / np.trace(form @ form)
    total, seen = np.append(mean * seen, [1.0, 1.0]), np.append(seen, [1, 1])  # a control group without any spread
    answer = lift(Sums.untouched(total, seen, np.arange(7) >= 5))
    assert answer.high - answer.mean == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(variance), rel=1e-7)


def simulate(generator: np.random.Generator, effect: float, agents: int = 80) -> tuple[Floats, Ints, Bools, float]:
    """Agents join late, differ much, and gain more the longer they are in; the last answer is the true extra reward."""
    seen = generator.integers(1, 31, agents)
    control = generator.random(agents) < 0.25
    base = generator.gamma(2.0, 0.5, agents) + 0.02 * seen
    gain = effect * seen / 30
    total = seen * (base + gain * ~control) + generator.normal(0, 1, agents) * np.sqrt(seen)
    return total, seen, control, float((seen * gain)[~control].sum())


@pytest.mark.parametrize("effect", [0.0, 0.8])
def test_intervals_cover_the_truth_as_often_as_they_say_with_and_without_an_effect(effect: float) -> None:
    generator, times, true_lift = np.random.default_rng(7), 2000, effect * 20.333333 / 30  # E seen² / E seen = 20.33
    covered, extra_missed = 0, []
    for _ in range(times):
        total, seen, control, extra = simulate(generator, effect)
        answer = lift(Sums.untouched(total, seen, control))
        covered += answer.low <= true_lift <= answer.high
        extra_missed.append(answer.extra - extra)
    low, high = binomial_interval(times)
    assert low <= covered / times <= high
    assert abs(np.mean(extra_missed)) <= 4 * np.std(extra_missed) / math.sqrt(times)


def test_an_unweighted_mean_over_agents_would_miss_the_extra_reward() -> None:
    """Why agents are weighted by their rounds: the other way is off by many standard errors in the same simulation."""
    generator, missed = np.random.default_rng(7), []
    for _ in range(500):
        total, seen, control, extra = simulate(generator, 0.8)
        mean = total / seen
        missed.append((mean[~control].mean() - mean[control].mean()) * seen[~control].sum() - extra)
    assert np.mean(missed) < -10 * np.std(missed) / math.sqrt(500)


@pytest.mark.parametrize(("control", "words"), [([], "no control group"), ([0], "1 in the control group and 4")])
def test_too_few_agents_give_no_number_and_say_why(control: list[int], words: str) -> None:
    aside = np.isin(np.arange(5), control)
    answer = lift(Sums.untouched(np.ones(5), np.ones(5, int), aside))
    assert np.isnan([answer.mean, answer.low, answer.extra, answer.extra_high]).all()
    assert words in answer.sentence
    assert "each group needs two" in answer.sentence


def test_agents_without_a_round_do_not_count() -> None:
    few = lift(Sums.untouched(np.array([1.0, 2, 3, 5]), np.ones(4), np.array([False, False, True, True])))
    control = np.array([False] * 3 + [True] * 3)
    more = lift(Sums.untouched(np.array([0, 1.0, 2, 3, 5, 0]), np.array([0, 1, 1, 1, 1, 0]), control))
    assert more == few


def spread(difference: float) -> Lift:
    total = np.array([1.0, 1.2, 1.1, 0.9, 1.0, 1.1]) + difference * np.array([1, 1, 1, 0, 0, 0])
    return lift(Sums.untouched(total, np.ones(6, int), np.arange(6) >= 3), WORDS)


def test_the_sentence_says_more_less_or_that_it_cannot_be_reported() -> None:
    assert spread(2.0).sentence.startswith("Each shop in the program has 2.10 orders a week more on average")
    assert "less on average" in spread(-2.0).sentence
    assert spread(0.0).sentence.startswith("No clear difference yet: 0.10 orders a week more")
    assert "95%" in spread(2.0).sentence


def test_an_action_has_its_share_of_the_extra_reward() -> None:
    answer = spread(2.0)
    assert answer.per_action(4) == pytest.approx((answer.extra / 4, answer.extra_low / 4, answer.extra_high / 4))
    assert np.isnan(answer.per_action(0)).all()


def test_curves_are_the_intervals_of_each_round() -> None:
    generator = np.random.default_rng(3)
    reward, control = generator.normal(1, 1, (5, 30)), np.arange(30) < 9
    sides = (~control, control)
    sums, squares, counts = (
        np.array([[part(row[side]) for row in reward] for side in sides])
        for part in (np.sum, lambda row: np.sum(row**2), np.size)
    )
    curve = lift_by_round(sums, squares, counts)
    for number, row in enumerate(reward):
        welch = stats.ttest_ind(row[~control], row[control], equal_var=False).confidence_interval(0.95)
        assert (curve.lift.low[number], curve.lift.high[number]) == pytest.approx((welch.low, welch.high), abs=1e-9)
        one = stats.t.interval(0.95, 8, row[control].mean(), stats.sem(row[control]))
        assert (curve.control.low[number], curve.control.high[number]) == pytest.approx(one, abs=1e-9)
    np.testing.assert_allclose(curve.treated.mean, reward[:, ~control].mean(axis=1))


def test_rounds_with_nobody_or_a_single_agent_leave_gaps_in_curves() -> None:
    counts = np.array([[3, 3, 0], [1, 0, 2]])
    curve = lift_by_round(counts * 2.0, counts * 4.0, counts)
    assert np.isnan(curve.lift.low).all()
    np.testing.assert_array_equal(np.isnan(curve.lift.mean), [False, True, True])
    np.testing.assert_array_equal(curve.control.mean, [2.0, math.nan, 2.0])
    np.testing.assert_array_equal(curve.control.low, [math.nan, math.nan, 2.0])
    assert (TREATED, CONTROL) == (0, 1)


def test_equal_rewards_that_round_badly_give_no_negative_variance() -> None:
    curve = lift_by_round(np.full((2, 1), 3e8 + 0.3), np.full((2, 1), (1e8 + 0.1) ** 2 * 3), np.full((2, 1), 3))
    assert np.isfinite(curve.lift.error).all()


class World:
    """Agents of their own level and effect; each agent-round has a probability under the policy and one under the shadow."""

    def __init__(self, seed: int, agents: int = 60, rounds: int = 12) -> None:
        generator = np.random.default_rng(seed)
        self.agent = np.tile(np.arange(agents), rounds)
        level, effect = generator.gamma(2.0, 0.5, agents), generator.normal(0.5, 0.6, agents)
        hint = effect + generator.normal(0, 0.3, (rounds, agents))
        self.probability = np.clip(generator.beta(1.5, 3, (rounds, agents)), 0.08, 0.9).ravel()
        self.shadow_probability = np.clip(0.1 + 0.5 * (hint > 0.5), 0, 1).ravel()
        self.wait, self.gain = level[self.agent], effect[self.agent]

    def play(self, generator: np.random.Generator) -> tuple[Bools, Floats]:
        chosen = generator.random(self.probability.size) < self.probability
        return chosen, self.wait + self.gain * chosen + generator.normal(0, 0.5, chosen.size)

    def truth(self, probability: Floats) -> float:
        return float((self.wait + self.gain * probability).mean())


def test_the_shadow_estimate_meets_a_simulated_truth() -> None:
    world, generator, times = World(11), np.random.default_rng(5), 600
    expected = world.truth(world.shadow_probability) - world.truth(world.probability)
    covered, means = 0, []
    for _ in range(times):
        chosen, reward = world.play(generator)
        answer = compare_policies(reward, chosen, world.probability, world.shadow_probability, world.agent)
        covered += answer.low <= expected <= answer.high
        means.append(answer.mean)
    assert abs(np.mean(means) - expected) < 0.02 * np.std(means) + 4 * np.std(means) / math.sqrt(times)
    # Agents are the same in each repetition, while the error allows for other agents too: it may only be too wide.
    assert covered / times >= binomial_interval(times)[0]
    assert answer.effective_sample_size < answer.rounds == 720


def test_the_shadow_interval_covers_where_agents_are_drawn_anew() -> None:
    times, hits = 600, []
    generator = np.random.default_rng(6)
    truth = np.mean(
        [w.truth(w.shadow_probability) - w.truth(w.probability) for w in (World(s, 400, 4) for s in range(300))]
    )
    for seed in range(times):
        world = World(1000 + seed)
        chosen, reward = world.play(generator)
        answer = compare_policies(reward, chosen, world.probability, world.shadow_probability, world.agent)
        hits.append(answer.low <= truth <= answer.high)
    low, high = binomial_interval(times)
    assert low <= np.mean(hits) <= high


def test_a_shadow_that_is_the_policy_makes_no_difference_at_all() -> None:
    world = World(2)
    chosen, reward = world.play(np.random.default_rng(2))
    answer = compare_policies(reward, chosen, world.probability, world.probability, world.agent, chosen, WORDS)
    assert (answer.mean, answer.overlap, answer.unsupported) == pytest.approx((0.0, 1.0, 0.0), abs=1e-12)
    assert answer.effective_sample_size == pytest.approx(reward.size)
    assert "No clear difference between the shadow policy and the policy" in answer.sentence


def test_choices_without_support_are_left_out_and_counted() -> None:
    probability = np.array([0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5])
    shadow = np.array([0.0, 0.4, 1.0, 0.0, 0.5, 0.5, 0.9, 0.1])
    chosen = np.array([False, False, True, True, True, False, True, False])
    reward = np.array([1.0, 100.0, 2.0, 100.0, 3.0, 1.0, 3.0, 1.0])
    answer = compare_policies(reward, chosen, probability, shadow, np.arange(8), words=WORDS)
    assert (answer.unsupported, answer.rounds) == (0.25, 6)
    weight = np.array([1, 1, 1, 1, 1.8, 1.8])
    assert answer.shadow_mean == pytest.approx(weight @ [1, 2, 3, 1, 3, 1] / weight.sum())
    assert answer.policy_mean == pytest.approx(11 / 6)
    assert "25% of the choices cannot be compared" in answer.sentence


def test_the_list_in_common_is_that_of_the_lists_where_they_are_known() -> None:
    half, chosen = np.full(4, 0.5), np.array([True, True, False, False])
    reward, agent = np.arange(4.0), np.arange(4)
    assert compare_policies(reward, chosen, half, half, agent, np.array([True, False, True, False])).overlap == 0.5
    assert compare_policies(reward, chosen, half, np.array([0.5, 0.5, 1.0, 0.0]), agent).overlap == 0.75


def test_a_clear_difference_is_reported_with_its_unit() -> None:
    agent = np.repeat(np.arange(40), 10)
    chosen = np.arange(400) % 2 == 0
    reward = 1.0 + (1.6 + 0.2 * (agent % 5)) * chosen
    answer = compare_policies(reward, chosen, np.full(400, 0.5), np.full(400, 0.9), agent, words=WORDS)
    sentence = "The lists of the shadow policy would have brought 0.800 orders a week more per shop (95%"
    assert answer.sentence.startswith(sentence)
    assert "each week by itself" in answer.sentence


def test_nothing_to_compare_is_said() -> None:
    none = np.zeros(0)
    answer = compare_policies(none, none.astype(bool), none, none, none.astype(int))
    assert answer.rounds == 0
    assert math.isnan(answer.mean)
    assert answer.sentence == "There are too few comparable choices to compare the shadow policy yet."


def test_a_probability_that_does_not_fit_the_list_is_refused() -> None:
    with pytest.raises(InputError, match="probability"):
        compare_policies(np.ones(2), np.array([True, False]), np.array([0.0, 0.5]), np.array([0.0, 0.5]), np.arange(2))


def test_the_status_and_the_reading_of_the_history_are_the_same_lift(tmp_path: Path) -> None:
    with Desk(tmp_path / "team.db") as desk:
        program = run_demo(desk, "one", agents=80, rounds=6, control=0.3, budget=6, shadow=None)
        shown = get_status(program)["lift"]
        reading = read_trial(program)
        assert shown is not None
        assert shown["estimator"] == reading.used.estimator == "onward"
        assert (shown["low"], shown["high"]) == pytest.approx(reading.interval(reading.used))
        assert shown["explanation"].startswith(f"Measured by the {reading.touched} pharmacists on a list")
        assert replay(program).proven
        agents = program.projection.agents
        first, since = np.full(agents.count, np.inf), np.zeros(agents.count)
        for line in program.rounds:
            found = program.get_round(line.round)
            first[found.number[found.choice["would_act"]]] = np.minimum(
                first[found.number[found.choice["would_act"]]], line.round
            )
            later = (first[found.number] <= line.round) & (found.after >= 0)
            since[found.number[later]] += found.reward[later]
        assert since == pytest.approx(agents.since_total)
        assert agents.since_seen[agents.control].sum() > 0


def test_somebody_acted_on_without_a_list_leaves_the_difference_in_means(tmp_path: Path) -> None:
    with Desk(tmp_path / "team.db") as desk:
        program = desk.create("one", states=["low", "high"], rewards=[0, 1], budget=4, control=0.4, seed=1)
        names = [f"p{number}" for number in range(40)]
        for number in range(4):
            listed = program.decide(dict.fromkeys(names, "low")).chosen
            done = {*listed, "p0"} if number == 0 else set(listed)
            after = [("low", "high")[(place + number) % 3 == 0 or name in done] for place, name in enumerate(names)]
            program.learn([{"agent": n, "done": n in done, "next_state": s} for n, s in zip(names, after, strict=True)])
        shown = get_status(program)["lift"]
        assert shown is not None
        assert shown["estimator"] == "base"
        assert "because of 1 person acted on without being on a list" in shown["explanation"]


def test_too_few_who_would_have_been_on_a_list_are_said() -> None:
    answer = lift(Sums.untouched(np.arange(12.0), np.ones(12), np.arange(12) >= 6), WORDS)
    assert answer.explanation == (
        "Measured by the difference in means. Too few of the control group would have been on a list: 0."
    )
