"""Curves give the means that their sums say, and boards compare policies instance by instance."""

import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from reading import assert_all_words_can_be_read

from restive import make_problems, simulate
from restive.files import Columns
from restive.paper.curves import (
    BUDGETS,
    Curve,
    Lead,
    Scoreboard,
    Setup,
    draw_scoreboard,
    growth,
    read_curve,
)
from restive.paper.jobs import Results, run_job
from restive.paper.readings import PAPER_POLICIES
from restive.paper.tasks.simulation import recorded_steps, tabulate
from restive.version import __version__

SETUP = Setup("two-state-v1", instances=4, runs=2, noise=0.5, seed=3, horizon=100)
POLICIES = ("egt", "wiql", "random", "whittle-oracle")


@pytest.fixture(scope="module")
def board() -> Scoreboard:
    jobs = [SETUP.job(policy, *setting) for setting in SETUP.settings() for policy in POLICIES]
    return Scoreboard(SETUP, Results({job.digest(): run_job(job.task, job.settings).columns for job in jobs}))


def test_a_curve_gives_means_up_to_and_between_kept_steps() -> None:
    curve = Curve(np.array([1, 2, 4]), np.array([[1.0, 3.0, 9.0]]), np.zeros((1, 3)))
    assert curve.mean(2).tolist() == [1.5]
    assert curve.between(2, 4).tolist() == [3.0]
    assert curve.running_mean().tolist() == [[1.0, 1.5, 2.25]]
    with pytest.raises(AssertionError, match="step 3 was not recorded"):
        curve.mean(3)


def test_leads_are_shares_of_the_gap_of_the_traces_themselves(board: Scoreboard) -> None:
    problems = make_problems("two-state-v1", instances=4, agents=50, budget=10, seed=3)
    traces = {policy: simulate(problems, policy, 100, runs=2, seed=3, noise=0.5) for policy in POLICIES}
    wanted = traces["egt"].gap_closed(traces["random"], traces["whittle-oracle"])
    found = board.gap_closed("egt", 10, 0.5, 100)
    np.testing.assert_allclose([found.mean, found.low, found.high], [wanted.mean, wanted.low, wanted.high], rtol=1e-9)
    lead = board.lead("egt", "wiql", 10, 0.5, 100).mean
    assert lead == pytest.approx(found.mean - board.gap_closed("wiql", 10, 0.5, 100).mean)


def test_who_does_not_learn_is_played_once_for_both_noises() -> None:
    assert SETUP.job("random", 5, 0.5) == SETUP.job("random", 5, 0.0)
    assert SETUP.job("whittle-oracle", 5, 0.5) == SETUP.job("whittle-oracle", 5, 0.0)
    assert SETUP.job("egt", 5, 0.5) != SETUP.job("egt", 5, 0.0)


def test_parts_name_budget_noise_and_step(board: Scoreboard) -> None:
    names = [part.setting for part in Lead("egt", "wiql").at(board, 100)]
    assert names[0] == "B = 5, noiseless, t = 100"
    assert names[-1] == "B = 20, noise variance 0.5, t = 100"
    assert len(names) == 2 * len(BUDGETS)


def test_growth_is_an_exponent() -> None:
    steps = np.array([10.0, 100.0])
    for exponent in (0.0, 0.5, 1.0, 2.0):
        late, early = np.full(3, steps[1] ** exponent), np.full(3, steps[0] ** exponent)
        assert growth(late, early).mean == pytest.approx(exponent)


def test_columns_of_a_bound_have_no_cost() -> None:
    columns = {"instance": np.zeros(2, int), "step": np.array([1, 2]), "reward": np.array([3.0, 5.0])}
    assert read_curve(columns).cost.tolist() == [[0.0, 0.0]]


FIGURE_SETUP = Setup("two-state-v1", 4, 2, 1.0, 7, fewer_runs={"rma2b": 1, "ucwhittle": 8})
VARIANTS = ("egt:eta=0.1", "egt", "egt:eta=1.5", "whittle-oracle", "random")


def curve(level: float, spread: float) -> Columns:
    """Sums of rewards that are wild at first, then rise to a level; four instances that differ by the spread."""
    steps = recorded_steps(FIGURE_SETUP.horizon)
    mean = level - 0.3 * np.exp(-steps / 200) + np.where(steps < 5, -9.0, 0.0)
    return tabulate(steps, reward=(mean + spread * np.arange(4)[:, None]) * steps)


def make_board(policies: tuple[str, ...], apart: float = 0.1) -> Scoreboard:
    columns = {}
    for budget, noise in FIGURE_SETUP.settings():
        columns[FIGURE_SETUP.bound(budget).digest()] = curve(2.0 * budget, 0.0)
        for number, policy in enumerate(policies):
            columns[FIGURE_SETUP.job(policy, budget, noise).digest()] = curve(budget + apart * number - noise, 0.01)
    return Scoreboard(FIGURE_SETUP, Results(columns))


@pytest.fixture(scope="module")
def figure() -> Figure:
    return draw_scoreboard(make_board(PAPER_POLICIES), PAPER_POLICIES, "Random agents")


def test_a_board_has_a_panel_for_each_budget_with_and_without_noise(figure: Figure) -> None:
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [FIGURE_SETUP.name(budget, noise) for noise in (0.0, 1.0) for budget in BUDGETS]


def test_every_panel_names_every_line_and_the_bound(figure: Figure) -> None:
    for axes in figure.axes:
        assert sorted(text.get_text() for text in axes.texts) == sorted([*PAPER_POLICIES, "fluid bound"])
        assert len(axes.lines) == len(PAPER_POLICIES) + 1
        assert sum(isinstance(each, FillBetweenPolyCollection) for each in axes.collections) == len(PAPER_POLICIES)


@pytest.mark.parametrize("apart", [0.1, 0.0])
def test_no_word_of_a_board_is_cut_off_or_lies_over_another(apart: float) -> None:
    assert_all_words_can_be_read(draw_scoreboard(make_board(PAPER_POLICIES, apart), PAPER_POLICIES, "Random agents"))


def test_a_line_shows_the_running_mean_over_instances(figure: Figure) -> None:
    line = figure.axes[1].lines[PAPER_POLICIES.index("wiql")]
    steps = np.asarray(line.get_xdata())
    expected = 10.1 - 0.3 * np.exp(-steps / 200) + np.where(steps < 5, -9.0, 0.0) + 0.01 * 1.5
    np.testing.assert_allclose(np.asarray(line.get_ydata()), expected, rtol=1e-12)
    assert (steps[0], steps[-1]) == (1, 1000)


def test_the_first_steps_do_not_set_the_scale(figure: Figure) -> None:
    for axes, budget in zip(figure.axes, BUDGETS * 2, strict=True):
        assert budget - 4 < axes.get_ylim()[0] < budget < 2 * budget < axes.get_ylim()[1]


def test_panels_of_a_budget_have_one_scale(figure: Figure) -> None:
    for quiet, noisy in zip(figure.axes[:3], figure.axes[3:], strict=True):
        assert quiet.get_ylim() == noisy.get_ylim()


def test_lines_differ_in_colour_or_dashes(figure: Figure) -> None:
    assert count_looks(figure, PAPER_POLICIES, dashes=True) == len(PAPER_POLICIES)


def test_variants_of_a_policy_each_have_a_colour_of_their_own() -> None:
    drawn = draw_scoreboard(make_board(VARIANTS), VARIANTS, "Variants")
    assert count_looks(drawn, VARIANTS, dashes=False) == len(VARIANTS)
    brightness = [sum(to_rgb(line.get_color())) for line in drawn.axes[0].lines[:3]]
    assert brightness == sorted(brightness)
    assert "egt (default)" in {text.get_text() for text in drawn.axes[0].texts}


def count_looks(figure: Figure, policies: tuple[str, ...], dashes: bool) -> int:
    lines = figure.axes[0].lines[: len(policies)]
    return len({(line.get_color(), line.is_dashed() if dashes else None) for line in lines})


def test_the_caption_says_what_was_played(figure: Figure) -> None:
    (caption,) = [text.get_text() for text in figure.texts if "seed" in text.get_text()]
    for part in ("two-state-v1", "4 instances × 2 runs (rma2b 1 run), seed 7", f"restive {__version__}"):
        assert part in caption


def test_shares_of_the_gap_are_drawn_beside_the_reward() -> None:
    board = make_board(PAPER_POLICIES)
    shares = draw_scoreboard(board, PAPER_POLICIES, "Random agents", True)
    assert shares.axes[0].get_ylabel() == "share of the gap closed so far"
    lines = dict(zip(PAPER_POLICIES, shares.axes[0].lines, strict=True))
    assert np.allclose(lines["random"].get_ydata(), 0.0)
    assert np.allclose(lines["whittle-oracle"].get_ydata(), 1.0)
    last = board.gap_closed("egt", 5, 0.0).mean
    assert np.asarray(lines["egt"].get_ydata())[-1] == pytest.approx(float(last))
    assert 20 <= np.asarray(lines["egt"].get_xdata())[0] < 30
