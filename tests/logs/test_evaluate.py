"""Evaluation from logs: formulas by hand, candidates that see the past only, refusals, and coverage in a small form."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from restive.cli import app
from restive.errors import InputError
from restive.kernels.threshold_path import share_out
from restive.logs.acceptance.evaluate import CHECKS, Setting, draw_world
from restive.logs.candidate import PastModel, Windows, make_candidate
from restive.logs.evaluate import MARGINAL, MODEL, ROBUST, evaluate
from restive.logs.fit import fit
from restive.logs.generate import generate_history
from restive.logs.history import History
from restive.logs.propensity import estimate_propensity
from restive.logs.working_model import expected_rewards
from restive.types import Floats

HEARTSTEPS = str(Path(__file__).parents[2] / "examples" / "heartsteps.csv")
RULE = (0.3, 0.5)


def make(
    people: int = 60, rounds: int = 6, rule: tuple[float, ...] = RULE, seed: int = 4, known: bool = True
) -> History:
    setting = Setting("", people, rounds, 1, rule)
    world = draw_world(setting, people, np.random.default_rng(seed))
    return generate_history(world.problem, rounds, seed, np.array(rule), known)


def top(score: Floats, weight: Floats, share: float) -> Floats:
    """Who is acted on if `share` of the weight is; scores are all different."""
    chosen, left = np.zeros(score.size), share * weight.sum()
    for place in np.argsort(-score):
        chosen[place] = min(1.0, max(0.0, left) / weight[place]) if weight[place] > 0 else float(left > 0)
        left -= weight[place]
    return chosen


@pytest.mark.parametrize("explore", [0.0, 0.25])
def test_shares_add_up_to_the_budget_and_ties_are_equal(explore: float) -> None:
    weight, tied = np.array([2.0, 1.0, 0.0, 3.0, 4.0]), np.array([False, False, True, True, False])
    chosen = np.empty(5)
    share_out(weight, tied, 4, 0.5, explore, chosen)  # the last one cannot be acted on
    assert chosen[4] == 0
    assert chosen[:4] @ weight[:4] == pytest.approx(0.5 * 6)
    assert chosen[1] == chosen[2] == chosen[3] == pytest.approx(explore * 0.5 + (1 - explore) * 0.25)


def test_one_round_is_the_textbook_formula_in_each_round() -> None:
    history = make()
    score = np.random.default_rng(1).normal(size=history.agent.size)
    answer = evaluate(history, score, resamples=3)
    assert history.propensity is not None
    chosen = np.empty(score.size)
    for number in range(1, 7):
        here = history.round == number
        chosen[here] = top(score[here], np.ones(60), history.action[here].mean())
    done, probability = history.action, history.propensity
    weight = np.where(done == 1, chosen / probability, (1 - chosen) / (1 - probability))
    normalised = (weight * history.reward).sum() / weight.sum()
    assert answer.estimates["per decision"].value.mean == pytest.approx(normalised)
    assert answer.effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert answer.logged.mean == pytest.approx(history.reward.mean())
    candidate = make_candidate(history, score, Windows.of(history, 1), None, seed=0)
    expected = expected_rewards(history, candidate, history.reward)
    direct = chosen * expected[:, 1] + (1 - chosen) * expected[:, 0]
    residual = history.reward - expected[np.arange(done.size), done]
    assert answer.estimates[MODEL].value.mean == pytest.approx(direct.mean())
    assert answer.value.mean == pytest.approx((direct + weight * residual).mean())


def test_the_doubly_robust_estimate_of_a_perfect_regression_is_that_of_the_model() -> None:
    history = make()
    gain = np.where(history.state == 0, 2.0, 1.0)
    history = replace(history, reward=history.state + gain * history.action)
    answer = evaluate(history, "state:s0 first", resamples=3)
    by_hand = history.state + gain * 0
    for number in range(1, 7):
        here = np.flatnonzero(history.round == number)
        low = history.state[here] == 0
        left = history.action[here].sum()
        chosen = np.where(low, min(1, left / low.sum()), max(0, left - low.sum()) / max(1, (~low).sum()))
        by_hand[here] += chosen * gain[here]
    assert answer.value.mean == pytest.approx(by_hand.mean(), abs=0.01)


def test_weights_of_several_rounds_multiply_and_thresholds_use_them() -> None:
    history = make(people=400, rounds=5)
    score = np.random.default_rng(2).normal(size=history.agent.size)
    answer = evaluate(history, score, rounds=2, resamples=3)
    assert history.propensity is not None
    means = np.zeros((2, 2))  # sums of weighted rewards and of weights, by step
    for first in (2, 4):  # the first round fills no window
        weight = np.ones(400)
        for step in range(2):
            here = history.round == first + step
            chosen = top(score[here], weight, history.action[here].mean())
            done, probability = history.action[here], history.propensity[here]
            weight = weight * np.where(done == 1, chosen / probability, (1 - chosen) / (1 - probability))
            means[step] += (weight * history.reward[here]).sum(), weight.sum()
    assert answer.estimates["per decision"].value.mean == pytest.approx((means[:, 0] / means[:, 1]).mean())
    assert (answer.units, answer.rounds, answer.estimator) == (800, 2, ROBUST)
    assert answer.notes == ("Left out: the first 1 round, which fill no window.",)
    assert MARGINAL not in answer.estimates  # such scores say nothing about other states


def test_heartsteps_agrees_with_inverse_propensity_weighting() -> None:
    history = History.read(HEARTSTEPS)
    answer = evaluate(history, "nobody")
    assert history.propensity is not None
    assert history.available is not None
    weight = np.where(history.available, (1 - history.action) / (1 - history.propensity), 1.0)
    direct = (weight * history.reward).sum() / weight.sum()
    assert answer.estimates["per decision"].value.mean == pytest.approx(direct)
    assert abs(answer.value.mean - direct) < 0.5 * answer.value.error
    assert answer.effective_acted == 0


@pytest.fixture(scope="module")
def zozo() -> History:
    """Impressions of a shop under a random policy: act = show item 14 of 34; see zozo_men.md."""
    counted = pl.read_csv(Path(__file__).with_name("zozo_men.csv"))
    rows = counted.select(pl.exclude("impressions").repeat_by("impressions")).explode(pl.selectors.all())
    table = rows.select(
        agent=pl.int_range(pl.len()),
        time=1,
        state="position",
        action="shown",
        reward="click",
        next_state=pl.when(pl.col("click") == 1).then(pl.lit("clicked")).otherwise(pl.lit("passed")),
        propensity=1 / 34,
        affinity="affinity",
    )
    return History.read(table)


def test_showing_an_item_to_everybody_has_the_click_rate_of_its_impressions(zozo: History) -> None:
    answer = evaluate(zozo, "column:affinity", budget=10_000)
    shown = zozo.action == 1
    assert answer.estimates["per decision"].value.mean == pytest.approx(zozo.reward[shown].mean())
    assert answer.effective == answer.effective_acted == pytest.approx(303)
    assert answer.value.mean == pytest.approx(zozo.reward[shown].mean(), abs=0.1 * float(answer.value.error))


def test_two_impressions_are_not_enough(zozo: History) -> None:
    answer = evaluate(zozo, "column:affinity", budget=60)
    assert answer.refusal == (
        "1 round under 'column:affinity': 2 person-rounds in which both it and the log act, and 30 are needed; "
        "it cannot be evaluated."
    )
    assert answer.estimates == {}


def test_at_random_with_the_logged_shares_is_what_was_logged() -> None:
    history = make(people=400, rounds=8, rule=(0.4, 0.4))
    for rounds in (1, 4, 8):
        answer = evaluate(history, "random", rounds)
        assert answer.difference.low < 0 < answer.difference.high
        assert answer.difference.error < 0.01
    assert answer.estimator == MARGINAL
    assert answer.estimates[MODEL].value.mean == pytest.approx(answer.logged.mean, abs=0.02)


@pytest.mark.parametrize("policy", ["lagrange", "egt", "thompson-whittle", "whittle-oracle", "state:s1,s0 first"])
@pytest.mark.parametrize("rounds", [1, 3])
def test_priorities_do_not_depend_on_the_outcomes_that_they_are_judged_by(policy: str, rounds: int) -> None:
    history, model = make(), fit(make(seed=5), draws=5, held_out=False)
    windows = Windows.of(history, rounds)
    later = history.round >= 4
    changed = replace(
        history,
        reward=np.where(later, 1 - history.reward, history.reward),
        next_state=np.where(later, 1 - history.next_state, history.next_state),
    )
    one, two = (make_candidate(each, policy, windows, model, seed=1) for each in (history, changed))
    before = history.round < (5 if rounds == 1 else 7)
    assert (one.priority[before] == two.priority[before]).all()
    if policy in ("lagrange", "whittle-oracle") and rounds == 1:
        assert (one.priority != two.priority).any()


def test_a_policy_of_your_own_is_loaded_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from restive.policies.random import NoBelief, Random\n"
        "class Mine(Random):\n"
        "    def rank(self, belief, state, draws):\n"
        "        return 1.0 - state\n"
    )
    history = make(people=100)
    mine, rule = (evaluate(history, policy, resamples=9) for policy in (str(tmp_path / "mine.py"), "state:s0"))
    assert mine.value == rule.value
    assert mine.policy == "Mine"


def test_a_model_knows_of_other_histories_and_of_the_rounds_before() -> None:
    history, other = make(people=60), make(people=60, seed=9)
    model, elsewhere = (fit(each, draws=2, held_out=False) for each in (history, other))
    past = PastModel.of(history, model)
    assert not past.model.counts.any()
    assert (past.rows(1) == past.rows(1)[0]).all()
    assert (past.rows(7) == model.posterior_mean()).all()
    assert (PastModel.of(history, elsewhere).model.counts == other.counts).all()
    with pytest.raises(InputError, match="other states"):
        PastModel.of(replace(history, states=("a", "b")), elsewhere)


def test_the_model_is_asked_beside_the_log() -> None:
    history = make(people=200, rounds=10)
    model = fit(history, draws=2, held_out=False)
    given, found = (evaluate(history, "state:s0", model=each, resamples=20) for each in (model, None))
    assert given.value == found.value
    assert given.estimates[MODEL].value.mean != found.estimates[MODEL].value.mean
    assert given.estimates[MODEL].value.mean == pytest.approx(given.value.mean, abs=0.03)


def test_estimated_propensities_are_near_the_truth_and_said() -> None:
    history = make(people=300, rounds=10, known=False)
    found = estimate_propensity(history, np.ones(3000, np.bool_))
    for state in range(2):
        assert np.abs(found[history.state == state] - RULE[state]).mean() < 0.06
    assert "no probabilities of acting" in evaluate(history, "state:s0", resamples=3).notes[0]


def test_the_control_group_is_left_out_and_advice_is_judged() -> None:
    history = make(people=300)
    arm = (history.agent % 5 > 0).astype(np.int64)
    advised = history.action
    done = np.where(np.arange(advised.size) % 7 == 0, 0, advised)
    trial = replace(history, arm=arm, advised=advised, action=done)
    plain, answer = (evaluate(each, "state:s0", resamples=9) for each in (history.select(arm == 1), trial))
    assert answer.value == plain.value
    assert [note.split(":")[0] for note in answer.notes] == [
        "The control group is left out",
        "What is judged is whom to advise; what was done may differ.",
    ]


def test_results_do_not_depend_on_threads() -> None:
    history = make(people=200)
    assert evaluate(history, "egt", threads=1).as_json() == evaluate(history, "egt", threads=3).as_json()


def test_gaps_and_missing_rewards_are_left_out_and_counted() -> None:
    history = make(people=200, rounds=4)
    kept = np.ones(history.agent.size, np.bool_)
    kept[[5, 6, 13]] = False
    reward, after = history.reward.copy(), history.next_state.copy()
    reward[21], after[21] = np.nan, -1
    answer = evaluate(replace(history, reward=reward, next_state=after).select(kept), "state:s0", rounds=2, resamples=3)
    assert answer.units == 400 - 4
    assert answer.notes[0] == "Left out: 4 person-histories with a gap or without a reward."


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ("state:s9", "there is no state 's9'; the states are s0, s1"),
        ("column:scor", "there is no column 'scor' of numbers; did you mean 'score'"),
        ("nobod", "there is no policy 'nobod'"),
        (np.zeros(3), "one number for each row"),
    ],
)
def test_unknown_candidates_are_refused(policy: Any, message: str) -> None:
    history = make()
    history = replace(history, by_row={"score": np.arange(history.agent.size, dtype=float)})
    with pytest.raises(InputError, match=message):
        evaluate(history, policy)


def test_a_history_that_cannot_be_asked_is_refused() -> None:
    history = make(people=200, rounds=4)
    with pytest.raises(InputError, match="Nobody has 4 rounds in a row"):
        evaluate(history.select(history.round != 2), "state:s0", rounds=4)
    assert history.propensity is not None
    waited = history.select(history.action == 0)
    answer = evaluate(waited, "state:s0", resamples=3)
    assert answer.refusal.endswith("nobody was acted on, so with the logged budget it acts on nobody; set a budget.")
    assert "both it and the log act" in evaluate(waited, "state:s0", budget=9, resamples=3).refusal


def test_a_propensity_that_excludes_what_was_done_is_refused() -> None:
    history = make()
    with pytest.raises(InputError, match="Agent 'p0', time"):
        evaluate(replace(history, propensity=(1 - history.action).astype(float)), "nobody")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_acceptance_holds_in_its_quick_form(check: Any) -> None:
    results = check.run(True)
    assert [result for result in results if not result.holds] == []


def write(history: History, path: Path) -> str:
    lines = ["agent,time,state,action,reward,next_state,propensity,score"]
    for row in range(history.agent.size):
        cells = (history.agent[row], history.round[row], f"s{history.state[row]}", history.action[row])
        lines.append(",".join(map(str, (*cells, history.reward[row], f"s{history.next_state[row]}", 0.4, row % 17))))
    path.write_text("\n".join(lines))
    return str(path)


def test_the_command_prints_json_and_writes_a_page_and_a_figure(tmp_path: Path) -> None:
    table = write(make(people=200, rule=(0.4, 0.4)), tmp_path / "log.csv")
    page, figure = tmp_path / "page.html", tmp_path / "figure.png"
    words = ["evaluate", table, "--policy", "column:score", "--page", str(page), "--figure", str(figure), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["estimator"] == ROBUST
    assert record["value"]["low"] < record["value"]["mean"] < record["value"]["high"]
    assert "What this rests on" in page.read_text()
    assert figure.stat().st_size > 1000


def test_the_command_refuses_with_a_sentence_and_exit_code_3(tmp_path: Path) -> None:
    table = write(make(people=200, rounds=7, rule=(0.4, 0.4)), tmp_path / "log.csv")
    words = ["evaluate", table, "--policy", "column:score", "--rounds", "7"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 3
    assert "7 rounds under 'column:score': " in result.stdout
    assert "ask for at most 1 round." in result.stdout
    record = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert record["refusal"]
    assert "value" not in record
