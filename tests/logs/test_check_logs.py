"""The runner of acceptance checks: figures, files, errors as figures; and the checks themselves, one by one."""

import json
import tomllib
from pathlib import Path

import pytest

from restive.errors import InputError
from restive.logs import check_logs
from restive.logs.acceptance import Check, Result
from restive.logs.acceptance import desk as desk_checks
from restive.logs.acceptance import evaluate as evaluate_checks
from restive.logs.check_logs import Outcome, find_checks, run_check, run_checks

REFUSALS = "evaluate/refusals"


def test_checks_run_once_and_are_kept(tmp_path: Path) -> None:
    said = list[str]()
    first = run_checks([REFUSALS], True, tmp_path / "kept", said.append, workers=1)
    assert len(said) == 1
    assert said[0].startswith(f"{REFUSALS} done after")
    assert run_checks([REFUSALS], True, tmp_path / "kept", said.append) == first
    assert len(said) == 1
    check_logs.write_markdown(tmp_path / "page.md", first, quick=True)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (
        "| evaluate: refused: acting follows from the state | 100% | 100% | not refuted | small form; 5 histories |"
        in page
    )


def test_figures_of_the_full_size_stand_for_those_of_the_small_form(tmp_path: Path) -> None:
    whole = Outcome("evaluate", "refusals", (Result("refused", "100%", "99%", False, "100 histories"),))
    check_logs._write(tmp_path, REFUSALS, False, whole)
    assert run_checks([REFUSALS], True, tmp_path, print) == [whole]
    assert check_logs.tabulate([whole]).rows == (("evaluate: refused", "100%", "99%", "NO", "100 histories"),)


def test_figures_of_earlier_code_stand_where_they_are_asked_for_and_name_what_changed(tmp_path: Path) -> None:
    code = {"restive.stats": "0" * 16, "restive.types": str(check_logs.find_digest("restive.types"))}
    whole = Outcome("evaluate", "refusals", (Result("refused", "100%", "99%", True, "100 histories"),), code=code)
    check_logs._write(tmp_path, REFUSALS, False, whole)
    found = run_checks([REFUSALS], False, tmp_path, print, earlier=True)
    assert check_logs.tabulate(found).rows[0][-1] == "earlier code of stats; 100 histories"
    assert check_logs.summarize(found) == "1 of 1 figures of the full size, computed by earlier code, hold."
    present = whole._replace(code={"restive.types": code["restive.types"]})
    check_logs._write(tmp_path, REFUSALS, False, present)
    assert run_checks([REFUSALS], False, tmp_path, print) == [present]


def test_the_code_of_a_check_is_what_ran_with_what_it_imports_of_compiled_code_and_constants() -> None:
    code = run_check(REFUSALS, quick=True).code
    assert {"restive.logs.acceptance.evaluate", "restive.logs.evaluate", "restive.kernels.threshold_path"} <= set(code)
    assert not {name for name in code if name.startswith(("restive.desk", "restive.policies", "restive.console"))}


def test_docstrings_and_comments_are_no_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_logs, "ROOT", tmp_path)
    digests = []
    for text in ("def f():\n    return 1", 'def f():\n    """One."""\n    return 1  # one', "def f():\n    return 2"):
        (tmp_path / "some.py").write_text(text, encoding="utf-8")
        check_logs.find_digest.cache_clear()
        digests.append(check_logs.find_digest("restive.some"))
    check_logs.find_digest.cache_clear()
    assert digests[0] == digests[1] != digests[2]
    assert check_logs.find_digest("restive.none") is None


def test_the_page_says_why_a_figure_is_not_reached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reasons.toml").write_text('"fit: one" = "Nobody can."', encoding="utf-8")
    monkeypatch.setattr(check_logs, "REASONS", tmp_path / "reasons.toml")
    missed = [Result(name, "1", "0", name == "two") for name in ("one", "two", "three")]
    check_logs.write_markdown(tmp_path / "page.md", [Outcome("fit", "some", tuple(missed))], quick=False)
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.endswith("- **fit: one**: Nobody can.\n- **fit: three**: the cause is not known.\n")


def test_shares_are_pooled_over_checks_of_the_full_size() -> None:
    shares = [Result("a", "0.93–0.97", "", True, "", "all", held, 10) for held in (9, 10)]
    outcomes = [Outcome("desk", str(number), (share,)) for number, share in enumerate(shares)]
    small = Outcome("desk", "small", (shares[0],), quick=True)
    rows = check_logs.tabulate([*outcomes, small]).rows
    assert rows[3:] == (("desk, all settings: all", "0.93–0.97", "0.950", "yes", "20 intervals in 2 settings"),)
    assert len(check_logs.tabulate([outcomes[0], small]).rows) == 2


def test_every_figure_of_the_documents_that_is_not_reached_has_a_reason() -> None:
    page = Path("docs/reference/results/acceptance.md").read_text(encoding="utf-8")
    missed = {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if " | NO | " in line}
    reasons = tomllib.loads(check_logs.REASONS.read_text(encoding="utf-8"))
    assert missed <= set(reasons)
    assert set(reasons) <= {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines()}


def test_checks_are_chosen_by_part_or_one_by_one() -> None:
    names = list(find_checks())
    assert list(find_checks(["warm", REFUSALS])) == [REFUSALS, "warm/warm start"]
    assert {name.partition("/")[0] for name in names} == {
        "desk", "determinism", "drift", "evaluate", "examine", "fit", "forecast", "trial", "warm",
    }  # fmt: skip
    with pytest.raises(InputError, match="There are no checks of 'evaluate/refusal'; did you mean"):
        find_checks(["evaluate/refusal"])


def test_an_error_is_a_figure_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(quick: bool) -> list[Result]:
        raise ZeroDivisionError("no people")

    monkeypatch.setattr(evaluate_checks, "CHECKS", (Check("broken", fail),))
    outcome = run_check("evaluate/broken", quick=True)
    assert outcome.results == (Result("broken", "no error", "ZeroDivisionError: no people", False),)
    assert check_logs.summarize([outcome]) == "0 of 1 figures of the small form are not refuted."


@pytest.mark.soak
@pytest.mark.parametrize("quick", [True, False], ids=["small", "full"])
@pytest.mark.parametrize("name", find_checks())
def test_every_check_has_figures(name: str, quick: bool) -> None:
    outcome = run_check(name, quick)
    print(check_logs.tabulate([outcome]).markdown())
    assert outcome.results
    assert [each for each in outcome.results if each.wanted == "no error"] == []


def test_the_status_of_a_program_is_compared_with_the_truth_of_its_people() -> None:
    results = desk_checks.check_status("small", "general-usage", {"budget": 40}, 7, quick=True)
    assert json.loads(json.dumps(Outcome("desk", "small", tuple(results)).as_json()))["results"][0]["of"] > 0
    assert [each.what for each in results[:2]] == [
        "coverage of effects in states, small, round 10",
        "coverage of lift and total, small, round 10",
    ]
    assert all(each.holds for each in results), results
    assert int(results[0].note.split()[0]) >= 3
    assert results[0].note.endswith(" of 6 stated")
