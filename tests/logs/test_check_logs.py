"""The runner of acceptance checks: figures, files, errors as figures."""

from pathlib import Path

import pytest

from restive.logs import check_logs
from restive.logs.acceptance import Check, Result
from restive.logs.acceptance import desk as desk_checks
from restive.logs.acceptance import fit as fit_checks


def test_checks_run_once_and_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, said = ["fit/coverage"], list[str]()
    first = check_logs.run_checks(names, True, tmp_path / "kept", said.append, workers=1)
    assert len(said) == 1
    assert said[0].startswith("fit/coverage done after")
    assert check_logs.run_checks(names, True, tmp_path / "kept", said.append) == first
    assert len(said) == 1
    check_logs.write_markdown(tmp_path / "page.md", first, quick=True)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "| fit: coverage of effects, 100 people, 8 rounds, acting at random | 0.88–1.00 |" in page


def test_an_error_is_a_figure_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(quick: bool) -> list[Result]:
        raise ZeroDivisionError("no people")

    monkeypatch.setattr(fit_checks, "CHECKS", (Check("broken", fail),))
    outcome = check_logs.run_check("fit/broken", quick=True)
    assert outcome.results == (Result("broken", "no error", "ZeroDivisionError: no people", False),)
    assert check_logs.summarize([outcome]) == "0 of 1 figures hold."


@pytest.mark.soak
def test_all_checks_run_at_their_full_size(tmp_path: Path) -> None:
    outcomes = check_logs.run_checks(list(check_logs.find_checks()), False, tmp_path, print)
    check_logs.write_markdown(tmp_path / "acceptance.md", outcomes, quick=False)
    print((tmp_path / "acceptance.md").read_text(encoding="utf-8"))
    assert [each for outcome in outcomes for each in outcome.results if each.wanted == "no error"] == []


def test_the_status_of_a_program_is_compared_with_the_truth_of_its_people() -> None:
    results = desk_checks.check_status("small", "general-usage", {"budget": 40}, 7, quick=True)
    assert [each.what for each in results[:2]] == [
        "coverage of effects in states, small, round 10",
        "coverage of lift and total, small, round 10",
    ]
    assert all(each.holds for each in results), results
    assert int(results[0].note.split()[0]) >= 3
    assert results[0].note.endswith(" of 6 stated")
