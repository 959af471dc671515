"""Does the fit cover the truth: people whose rows are drawn from a known distribution, acted on by a known rule."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from restive.logs.acceptance import Check, Result
from restive.logs.calibration import hold_out
from restive.logs.fit import fit
from restive.logs.fit_report import find_effects, interval
from restive.logs.generate import draw_people, generate_history, hide_states
from restive.logs.half_life import find_half_life
from restive.logs.mixture import sample_priors
from restive.logs.row_prior import count_tails, sample_alpha
from restive.problem import Problem
from restive.problems import make_problems
from restive.types import Bools, Floats

SEED = 0
PEOPLE, ROUNDS = (100, 1000), (8, 30)
RULES = {"at random": (0.3, 0.3, 0.3), "by state": (0.5, 0.2, 0.4)}
VALUE = np.array([0.0, 0.6, 1.0])
LEVEL = 0.95


def check_coverage(quick: bool, seed: int = SEED) -> list[Result]:
    """Coverage and bias of the mean rows and of the effect of acting in each state."""
    results = []
    for people, rounds, rule in product(PEOPLE, ROUNDS, RULES):
        if quick and (people, rounds) != (100, 8):
            continue
        histories = 60 if quick else 400
        measured = measure_coverage(people, rounds, RULES[rule], histories, seed)
        where = f"{people} people, {rounds} rounds, acting {rule}"
        least, most = (0.88, 1.0) if quick else (0.93, 0.97)
        wanted = f"{least:.2f}–{most:.2f}"
        note, limit = f"{histories} histories", 0.3 if quick else 0.1
        for name, (covered, bias) in measured.items():
            share = float(covered.mean())
            results.append(Result(f"coverage of {name}, {where}", wanted, f"{share:.3f}", least <= share <= most, note))
            results.append(Result(f"bias of {name}, {where}", f"≤ {limit} se", f"{bias:.3f} se", bias <= limit, note))
    return results


def measure_coverage(
    people: int, rounds: int, rule: tuple[float, ...], histories: int, seed: int
) -> dict[str, tuple[Bools, float]]:
    """Whether intervals hold the true mean rows [H, A, S, S] and effects [H, S], and the bias of each in se."""
    generator = np.random.default_rng([seed, people, rounds])
    states = VALUE.size
    mean = generator.dirichlet(np.full(states, 2.0), (histories, 2, states))
    weight = np.exp(generator.uniform(np.log(2), np.log(30), (histories, 2, states)))
    counts = np.empty((people, histories, 2, states, states))
    for number in range(histories):
        problem = draw_people(
            weight[number, ..., None] * mean[number], VALUE, people, seed=int(generator.integers(2**62))
        )
        history = generate_history(problem, rounds, int(generator.integers(2**62)), np.array(rule))
        counts[:, number] = history.counts
    alpha = sample_alpha(count_tails(counts), 200, generator)
    rows = alpha / alpha.sum(axis=-1, keepdims=True)
    effects, truth = (rows[:, :, 1] - rows[:, :, 0]) @ VALUE, (mean[:, 1] - mean[:, 0]) @ VALUE
    return {
        "mean rows": (_covers(rows, mean), _find_bias(rows, mean)),
        "effects": (_covers(effects, truth), _find_bias(effects, truth)),
    }


def _covers(draws: Floats, truth: Floats) -> Bools:
    low, high = interval(draws, LEVEL)
    return np.asarray((low <= truth) & (truth <= high))


def _find_bias(draws: Floats, truth: Floats) -> float:
    """The bias in standard errors, of draws [R, H, ...] of what is truly [H, ...]: root mean square over cells.

    Both parts count: what is the same for all truths, and what changes by one standard deviation of the truth, as with
    shrinkage. The noise of the simulation is taken out.
    """
    error = (draws.mean(axis=0) - truth) / np.sqrt(draws.var(axis=0).mean(axis=0))
    steps = np.stack([np.ones_like(truth), (truth - truth.mean(axis=0)) / truth.std(axis=0)])
    squares = ((error * steps).mean(axis=1) ** 2 - (error * steps).var(axis=1) / len(truth)).sum(axis=0)
    return float(np.sqrt(max(squares.mean(), 0.0)))


def check_calibration(quick: bool, seed: int = SEED) -> list[Result]:
    """Whether predictions of held-out moves are calibrated as often as their intervals say."""
    histories = 20 if quick else 400
    figures = [_hold_out(number, seed) for number in range(histories)]
    least, most, limit = (0.8, 1.0, 0.04) if quick else (0.93, 0.97, 0.02)
    results = []
    for name in ("rounds", "people"):
        where, note = f"held-out {name}, 500 people, 20 rounds", f"{histories} histories"
        slopes = np.array([each[name]["slope"] for each in figures])
        share = float(((slopes[:, 1] <= 1) & (slopes[:, 2] >= 1)).mean())
        what, wanted = f"slope's interval holds 1, {where}", f"{least:.2f}–{most:.2f}"
        results.append(Result(what, wanted, f"{share:.3f}", least <= share <= most, note))
        bins = np.array([each[name]["reliability"] for each in figures])  # [H, bins, 3]
        stated, observed = (np.average(bins[..., part], axis=0, weights=bins[..., 0]) for part in (1, 2))
        error = float(np.average(np.abs(stated - observed), weights=bins[..., 0].sum(axis=0)))
        what = f"expected calibration error, {where}"
        results.append(Result(what, f"≤ {limit}", f"{error:.4f}", error <= limit, note))
    return results


def _hold_out(number: int, seed: int) -> dict[str, Any]:
    generator = np.random.default_rng([seed, 5, number])
    states = VALUE.size
    mean = generator.dirichlet(np.full(states, 2.0), (2, states))
    weight = np.exp(generator.uniform(np.log(2), np.log(30), (2, states, 1)))
    problem = draw_people(weight * mean, VALUE, 500, seed=int(generator.integers(2**62)))
    history = generate_history(problem, 20, int(generator.integers(2**62)), 0.3)
    return hold_out(history, lambda counts, _: sample_priors(counts, 1, 60, generator), number)


def check_log_score(quick: bool, seed: int = SEED) -> list[Result]:
    """Whether held-out moves are predicted at least as well as by one row for everybody, with types as chosen."""
    histories = 6 if quick else 60
    results = []
    for family, limit in (("people alike", -1.0), ("people differ", -1.0), ("few types", 3.0)):
        scores = np.array([_gains(family, number, seed) for number in range(histories)])  # [H, 2, 2]
        gain, error = scores[..., 0].mean(axis=0), scores[..., 1].mean(axis=0)
        for part, name in enumerate(("rounds", "people")):
            reached = gain[part] / error[part]
            what = f"log score of held-out {name} over pooled, {family}, 300 people, 20 rounds"
            note = f"gain {gain[part]:.4f} a move, mean of {histories} histories"
            results.append(Result(what, f"≥ {limit:.0f} se", f"{reached:.1f} se", bool(reached >= limit), note))
    return results


def _gains(family: str, number: int, seed: int) -> list[list[float]]:
    generator = np.random.default_rng([seed, 6, number])
    problem = _draw_problem(family, 300, generator)
    history = generate_history(problem, 20, int(generator.integers(2**62)), 0.3)
    held_out = fit(history, seed=number, draws=20).held_out
    return [held_out[name]["gain_over_pooled"] for name in ("rounds", "people")]


def check_types(quick: bool, seed: int = SEED) -> list[Result]:
    """Coverage of effects where people are of few types, with the number of types as chosen."""
    histories = 10 if quick else 200
    covered, chosen = [], []
    for number in range(histories):
        generator = np.random.default_rng([seed, 7, number])
        rows = generator.dirichlet(np.ones(3), (4, 2, 3))
        share = generator.dirichlet(np.full(4, 4.0))
        kind = generator.choice(4, 400, p=share)
        problem = Problem(rows[kind], VALUE, 1)
        model = fit(generate_history(problem, 20, number, 0.3), seed=number, held_out=False)
        truth = np.tensordot(share, (rows[:, 1] - rows[:, 0]) @ VALUE, 1)
        effects = [effect.mean for effect in find_effects(model)]
        covered.append([each.low <= true <= each.high for each, true in zip(effects, truth, strict=True)])
        chosen.append(model.prior.share.size)
    share_covered, (least, most) = float(np.mean(covered)), (0.75, 1.0) if quick else (0.93, 0.97)
    what = "coverage of effects, four types, 400 people, 20 rounds"
    note = f"{np.mean(np.array(chosen) == 4):.0%} of {histories} histories are given four types"
    return [
        Result(what, f"{least:.2f}–{most:.2f}", f"{share_covered:.3f}", least <= share_covered <= most, note),
    ]


def check_forgetting(quick: bool, seed: int = SEED) -> list[Result]:
    """Whether all moves count the same if nothing changes, and what forgetting gains if the effect of acting ends."""
    histories, (people, rounds) = (12, (100, 30)) if quick else (200, (300, 40))
    where = f"{people} people, {rounds} rounds"
    results = []
    for family in ("people alike", "people differ", "few types"):
        problems = (
            _draw_problem(family, people, np.random.default_rng([seed, 8, number])) for number in range(histories)
        )
        chosen = [
            find_half_life(generate_history(problem, rounds, number)).half_life
            for number, problem in enumerate(problems)
        ]
        share, least = chosen.count(None) / histories, 0.9 if quick else 0.97
        results.append(Result(f"no forgetting, {family}, {where}", f"≥ {least}", f"{share:.3f}", share >= least))
    gains = np.array([_forgetting_gain(people, rounds, [seed, 9, number]) for number in range(histories // 2)])
    reached = float(gains.mean() / gains.std(ddof=1) * np.sqrt(gains.size))
    what = f"gain by forgetting, effect of acting ends at half-time, {where}"
    note = f"log score {gains.mean():.4f} a move of the next round; above 0 in {(gains > 0).mean():.0%} of histories"
    limit = 1 if quick else 3
    results.append(Result(what, f"≥ {limit} se", f"{reached:.1f} se", reached >= limit, note))
    share = float((gains < 0).mean())
    results.append(Result(f"loss by forgetting, {where}", "≤ 0.05 of histories", f"{share:.3f}", share <= 0.05))
    return results


def check_gaps(quick: bool, seed: int = SEED) -> list[Result]:
    """What moves in gaps bring, where a quarter of states is missing: by chance, and more often in worse states."""
    histories = 12 if quick else 300
    least, most = (0.75, 1.0) if quick else (0.93, 0.97)
    results = []
    for what, rates in (("by chance", (0.25, 0.25, 0.25)), ("more often in worse states", (0.4, 0.25, 0.1))):
        found = np.array([_fit_gaps(np.array(rates), [seed, 10, number]) for number in range(histories)])  # [H, 2, 4]
        covered, error, width, effect = found.mean(axis=0).T
        where, note = f"states missing {what}, 100 people, 20 rounds", f"{histories} histories"
        chance, shown = what == "by chance", f"{covered[0]:.3f} without moves in gaps; {note}"
        wanted = f"{least:.2f}–{most:.2f}" if chance else "shown"
        holds = not chance or least <= covered[1] <= most
        results.append(Result(f"coverage of effects, {where}", wanted, f"{covered[1]:.3f}", holds, shown))
        for name, part in (("rows of people", error), ("effects", effect)):
            gain = found[:, 0, 1 if part is error else 3] - found[:, 1, 1 if part is error else 3]
            clear = gain.mean() / gain.std(ddof=1) * histories**0.5
            ratio = float(np.sqrt(part[1] / part[0]))
            what_of = f"error of {name} with moves in gaps over that without, {where}"
            better = ratio < 1 or (quick and (not chance or bool(clear > -2.5)))  # few histories are noisy
            results.append(Result(what_of, "< 1", f"{ratio:.3f}", better, f"better by {clear:.1f} se"))
        ratio = float(width[1] / width[0])
        results.append(Result(f"width of intervals, the same ratio, {where}", "shown", f"{ratio:.3f}", True))
    return results


def _fit_gaps(rate: Floats, seed: list[int]) -> list[list[float]]:
    """Without and with moves in gaps: coverage of effects, squared error of rows, width, squared error of effects."""
    generator = np.random.default_rng(seed)
    mean = generator.dirichlet(np.full(3, 2.0), (2, 3))
    weight = np.exp(generator.uniform(np.log(2), np.log(30), (2, 3, 1)))
    people = draw_people(weight * mean, VALUE, 100, seed=int(generator.integers(2**62)))
    whole = generate_history(people, 20, int(generator.integers(2**62)), 0.3)
    history = hide_states(whole, rate, int(generator.integers(2**31)))
    truth, found = (mean[1] - mean[0]) @ VALUE, []
    for each in (replace(history, gaps=None), history):
        model = fit(each, seed=seed[-1], draws=100, types=1, held_out=False, half_life=None)
        rows = np.stack([prior.mean() for prior in model.draws])
        effects = (rows[:, 1] - rows[:, 0]) @ VALUE
        low, high = interval(effects, LEVEL)
        found.append(
            [
                float(((low <= truth) & (truth <= high)).mean()),
                float(((model.posterior_mean() - people.transition) ** 2).mean()),
                float((high - low).mean()),
                float(((effects.mean(axis=0) - truth) ** 2).mean()),
            ]
        )
    return found


def _draw_problem(family: str, people: int, generator: np.random.Generator) -> Problem:
    if family == "few types":
        return make_problems("few-types-v1", instances=1, agents=people, seed=int(generator.integers(2**31)))[0]
    mean = generator.dirichlet(np.full(3, 2.0), (2, 3))
    weight = 1e6 if family == "people alike" else 4.0
    return draw_people(weight * mean, VALUE, people, seed=int(generator.integers(2**62)))


def _forgetting_gain(people: int, rounds: int, seed: list[int]) -> float:
    """What forgetting gains in the expected log score of the rows after the change."""
    problem = _draw_problem("people differ", people, np.random.default_rng(seed))
    later = problem.replace(transition=np.repeat(problem.transition[:, :1], 2, axis=1))
    history = generate_history(problem.change_to(later, rounds // 2), rounds, seed[-1])
    rows = [
        fit(history, draws=20, types=1, held_out=False, half_life=each).posterior_mean() for each in ("auto", "none")
    ]
    return float((later.transition * np.log(rows[0] / rows[1])).sum(axis=-1).mean())


CHECKS = (
    Check("coverage", check_coverage),
    Check("calibration", check_calibration),
    Check("log score", check_log_score),
    Check("types", check_types),
    Check("forgetting", check_forgetting),
    Check("gaps", check_gaps),
)
