"""Tables say what the scores and the costs say."""

from collections.abc import Callable

import pytest

from restive.benchmark import tables
from restive.benchmark.cost import Costs
from restive.benchmark.scores import BOUND, LATE, Scores
from restive.benchmark.tables import tabulate_controls, tabulate_costs, tabulate_gaps, tabulate_ranks

MakeScores = Callable[..., Scores]


def test_ranks_have_fields_down_policies_across_marks_and_means(make_scores: MakeScores) -> None:
    table = tabulate_ranks(make_scores(rates={"sticky/egt": 39.0}), LATE)
    across = dict(zip(table.heads, zip(*table.rows, strict=True), strict=True))
    assert across["field"] == ("two-state", "ten-state", "sticky", "mean rank")
    assert across["lagrange"] == ("1*", "1*", "1*", "1.00")
    assert across["egt"] == ("4", "4", "1*", "3.00")
    assert across["thompson-whittle"] == ("2", "2", "3", "2.33")


def test_gaps_have_four_steps_the_oracle_and_the_bound(make_scores: MakeScores) -> None:
    table = tabulate_gaps(make_scores(rates={BOUND: 41.0}, shaky={"wiql": 2.0}).matches["sticky"])
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.heads == ("policy", "t = 50", "t = 100", "t = 300", "t = 1000")
    assert rows["random"] == ("0",) * 4
    assert rows["whittle-oracle"] == ("1",) * 4
    assert rows["lagrange"] == ("0.90 [0.90, 0.90]",) * 4
    assert rows[BOUND] == ("1.10 [1.10, 1.10]",) * 4
    low, high = (float(part) for part in rows["wiql"][0].partition("[")[2].strip("]").split(", "))
    assert low < 0.4 < high


def test_where_there_is_no_gap_there_is_a_dash(make_scores: MakeScores) -> None:
    table = tabulate_gaps(make_scores(rates={"whittle-oracle": 30.0}).matches["sticky"])
    assert {row[1] for row in table.rows if row[0] == "egt"} == {"–"}


def test_controls_are_told_by_what_they_are_behind(make_scores: MakeScores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CONTROLS", ())
    assert tabulate_controls(make_scores()) == []
    monkeypatch.setattr(tables, "CONTROLS", ("cet-whittle",))
    early, late = tabulate_controls(make_scores(rates={"sticky/cet-whittle": 40.0}))
    assert early.heads == late.heads == ("field", "cet-whittle")
    assert [row[1].split()[0] for row in late.rows] == ["0.20", "0.20", "−0.10"]
    assert "100" in early.title
    assert "1000" in late.title


def test_costs_have_nanoseconds_and_their_ratio_to_eps_gt() -> None:
    table = tabulate_costs(Costs({2: {"egt": 20.0, "wiql": 15.0}, 10: {"egt": 40.0, "wiql": 100.4}}), "a machine")
    assert table.heads[0] == "policy"
    assert table.rows == (("egt", "20", "1.0", "40", "1.0"), ("wiql", "15", "0.8", "100", "2.5"))
    assert table.note.endswith("a machine.")
