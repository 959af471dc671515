"""Terminal output fits the width, numbers are never cut, and names are printed as they are."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from desk import statuses
from desk.test_recommendation import make_recommendation
from restive.api.status import Status, StatusRound
from restive.api.types import HistoryEntry
from restive.desk import output
from restive.desk.config import TEMPLATES, Config, Words
from restive.desk.lift import compare_policies, lift
from restive.desk.table_files import read_table_file
from restive.errors import InputError
from restive.logs.estimators import Sums

Printed = pytest.CaptureFixture[str]

WORDS = Words(
    person="shop", people="shops", action="a coupon", acted="got a coupon", every="week", reward_unit="orders a week"
)
WIDTHS = (120, 80, 60, 40)
STORE = "[red]shops.db"
ENTRY: HistoryEntry = {"round": 3, "label": "Week of 2 Mar 2026", "due": "2026-03-02", "at": ""}
DUE = {
    "round": 4,
    "due": "2026-11-23",
    "label": "Week of 23 Nov 2026",
    "days": 3,
    "when": "due in 3 days",
    "sentence": "",
}


def make_status(rounds: int = 30) -> Status:
    generator = np.random.default_rng(2)
    control = np.arange(100) < 20
    total = rounds * (generator.gamma(2.0, 0.3, 100) + 0.9 * ~control)
    probability, agent = np.full(500, 0.2), np.tile(np.arange(100), 5)
    shadow = compare_policies(
        generator.random(500), generator.random(500) < 0.2, probability, probability, agent, words=WORDS
    )
    effect = lift(Sums.untouched(total, np.full(100, rounds), control), WORDS) if rounds else None
    columns = ("state", "acted", "waited", "mean", "low", "high", "spread", "knowledge", "note")
    step = ("message", "verb", "round")
    return statuses.make_status(
        WORDS,
        title="Coupons [bold]for[/bold] shops",
        people=statuses.count_people(1234, left=4, erased=1, new=6, control=20),
        rounds=[make_round(n) for n in range(rounds)],
        lift=effect,
        shadow=shadow,
        shadow_policy="egt:eta=0.5",
        effects=[
            dict(zip(columns, ("silent [x]", 196, 1170, 0.62, 0.5, 0.74, 0.31, "known", ""), strict=True)),
            dict(zip(columns, ("busy", 2, 40, None, None, None, None, "not known", "only 2 shops"), strict=True)),
        ],
        effects_of=500,
        steps=[
            dict(zip(step, ("Round 30 waits for the outcomes of 12 [i]shops[/i].", "learn", 30), strict=True)),
            dict(zip(step, ("There is no control group.", None, None), strict=True)),
        ],
        actions=19 * rounds,
        budget_used=0.9 if rounds else None,
        extra_per_action=effect.per_action(19 * rounds) if effect else None,
        total="In total that is 1,234 orders." if effect else "",
    )


def make_round(number: int) -> StatusRound:
    return statuses.make_round(
        number + 1, present=1234, budget=20, advised=20, done=18, failed=2, outcomes=1230, unlisted=1, explored=3,
        reward_mean=number / 10, control_mean=1.5,
    )  # fmt: skip


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def show(width: int, call: Callable[[], None]) -> str:
        file = io.StringIO()
        monkeypatch.setattr(output, "make_console", lambda: Console(file=file, width=width, highlight=False))
        call()
        return file.getvalue()

    return show


def flat(text: str) -> str:
    """The text without its line breaks."""
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_status_fits_and_cuts_nothing(shown: Callable[..., str], width: int) -> None:
    status = make_status()
    text = shown(width, lambda: output.print_status(status, STORE))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert status["lift"] is not None
    assert status["shadow"] is not None
    for sentence in (status["lift"]["sentence"], status["shadow"]["sentence"], "There is no control group."):
        assert sentence in flat(text)
    command = "restive desk learn shops --store '[red]shops.db' --outcomes OUTCOMES.csv"
    assert f"Round 30 waits for the outcomes of 12 [i]shops[/i]: {command}" in flat(text)
    assert "1,230/1,234" in text
    assert "Coupons [bold]for[/bold] shops" in text
    assert "[red]shops.db" in flat(text)
    assert "silent [x]" in text


def test_the_status_says_who_is_in_and_what_was_used_and_gained(shown: Callable[..., str]) -> None:
    text = flat(shown(120, lambda: output.print_status(make_status(), STORE)))
    assert "1,234 shops, 20 in the control group, 6 new, 4 left, 1 erased." in text
    assert "90% of the budget was used (540 done, and 30 not on a list)." in text  # 18 of 20 and 1 in each of 30
    assert "In total that is 1,234 orders." in text
    assert "What a coupon added in the week after it, in orders a week" in text
    assert "0.620 0.500 to 0.740 0.31" in text
    assert "not known: only 2 shops" in text
    assert "Estimated from 500 shops." in text
    assert "The last 8 of 30 rounds." in text


def test_sparklines_of_both_groups_share_a_scale_and_show_the_last_rounds_that_fit(shown: Callable[..., str]) -> None:
    text = shown(40, lambda: output.print_status(make_status(60), STORE))
    lines = {line[:14].strip(): line[16:].split()[0] for line in text.splitlines() if set(line) & set(output.SPARKS)}
    ours, theirs = lines["in the program"], lines["control group"]
    assert len(ours) == len(theirs) == 6
    assert ours[-1] == "█"
    assert set(theirs) == {"▄"}  # 1.5, on the range of rewards from 0 to 4
    assert "bars from 0 to 4.00, the range of the rewards" in flat(text)


def test_a_wide_terminal_has_more_columns(shown: Callable[..., str]) -> None:
    heads = [
        next(
            line
            for line in shown(width, lambda: output.print_status(make_status(), STORE)).splitlines()
            if line.startswith("date ")
        )
        for width in WIDTHS
    ]
    assert "budget" in heads[0]
    assert [len(head.split()) for head in heads] == sorted((len(head.split()) for head in heads), reverse=True)
    assert len(heads[0].split()) > len(heads[3].split())


def test_a_program_that_has_not_begun_has_a_status(shown: Callable[..., str]) -> None:
    fresh = statuses.make_status(WORDS, people=statuses.count_people(1))
    text = shown(80, lambda: output.print_status(fresh, STORE))
    assert "1 shop." in text
    assert "Rounds" not in text
    assert "Does it work" not in text


def test_without_a_control_group_the_reward_is_shown_alone(shown: Callable[..., str]) -> None:
    status = make_status()
    rounds: list[StatusRound] = [{**row, "control_mean": None} for row in status["rounds"]]
    alone: Status = {**status, "lift": None, "rounds": rounds}
    text = shown(80, lambda: output.print_status(alone, STORE))
    assert "in the program  ▁" in text
    assert "control group   " not in text
    assert "Does it work" not in text


LIST = [
    {
        "rank": n + 1,
        "agent": f"[b]{n}[/b] " + "long name " * (3 * n),
        "state_now": "silent",
        "probability": [1.0, 0.999, 0.001][n],
        "reason": f"Now silent: because of {n} [red]reasons.",
    }
    for n in range(3)
]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_has_every_name_and_reason_whole(shown: Callable[..., str], width: int) -> None:
    text = shown(width, lambda: output.print_list(LIST, WORDS, "Round [27]"))
    assert max(map(len, text.splitlines())) <= width
    assert "Round [27]" in text
    for n in range(3):
        assert f"Now silent: because of {n} [red]reasons." in flat(text)
        assert f"[b]{n}[/b]" in text
    assert text.count("long") == 9


def test_a_list_shows_probabilities_never_rounded_to_0_or_100_and_no_priority_as_a_gain(
    shown: Callable[..., str],
) -> None:
    text = shown(120, lambda: output.print_list(LIST, WORDS))
    for part in ("100%", ">99%", "<1%"):
        assert part in text
    assert "benefit" not in text
    assert "Nothing to show." in shown(80, lambda: output.print_list([], WORDS))


def test_a_name_without_a_space_is_folded_and_not_cut(shown: Callable[..., str]) -> None:
    text = shown(40, lambda: output.print_list([{"rank": 1, "agent": "z" * 95}], WORDS))
    assert text.count("z") == 95
    assert max(map(len, text.splitlines())) <= 40


def test_empty_columns_are_left_out(shown: Callable[..., str]) -> None:
    text = shown(80, lambda: output.print_list([{"rank": 1, "agent": "a", "probability": 0.5}], WORDS))
    assert "state" not in text
    assert "50%" in text


def test_histories_programs_templates_and_reports_are_printed(shown: Callable[..., str]) -> None:
    past: list[HistoryEntry] = [
        {**ENTRY, "at": "2026-03-02T08:15:59+00:00", "state": "[x]", "chosen": True, "reward": 1.23456}
    ]
    config = Config(states=("low", "high"), words=WORDS, timezone="Asia/Kolkata")
    text = shown(120, lambda: output.print_history(past, config, "[a]7"))
    for part in (
        "Shop [a]7",
        "\n2 Mar 2026 ",
        "[x]",
        "yes",
        "1.23",
        "decided (Asia/Kolkata)",
        "2 Mar 2026, 13:45",
    ):
        assert part in text
    rows = [
        {
            "name": "shops",
            "template": "loyalty",
            "people": 12345,
            "rounds": 3,
            "waiting": 0,
            "policy": "egt",
            "created": "2026-03-02T08:15:59+00:00",
            "due": DUE,
        }
    ]
    text = shown(80, lambda: output.print_programs(rows, "desk.db"))
    assert "12,345" in text
    assert "loyalty" in text
    assert "23 Nov 2026, in 3 days" in text
    assert "error" not in text
    broken = [{"name": "shops", "error": "The policy is gone."}]
    assert "The policy is gone." in shown(80, lambda: output.print_programs(broken, "desk.db"))
    assert "No programs yet." in shown(80, lambda: output.print_programs([], "desk.db"))
    kind = [{**TEMPLATES["loyalty"]} | {"states": ("idle",), "signs": ("no [sign]",), "rewards": (0.5,)}]
    assert "idle (0.5): no [sign]" in shown(40, lambda: output.print_templates(kind))
    tiny = shown(60, lambda: output.print_history([{**ENTRY, "reward": 1.5e-7}], config, "a"))
    assert "0.000000150" in tiny


def test_without_a_terminal_there_is_room_for_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_programs([{"name": "x" * 100}], "desk.db")
    assert "x" * 100 in capsys.readouterr().out


def test_the_caution_follows_the_lift(shown: Callable[..., str]) -> None:
    status: Status = {**make_status(), "caution": "Only 9 of 10 outcomes are in."}
    text = flat(shown(120, lambda: output.print_status(status, STORE)))
    assert status["lift"] is not None
    assert text.index(status["lift"]["sentence"]) < text.index("Only 9 of 10 outcomes are in.")
    assert "Only 9 of 10" not in shown(120, lambda: output.print_status(make_status(), STORE))


def test_what_was_done_unasked_is_reported_only_if_there_was_any(shown: Callable[..., str]) -> None:
    status = make_status()
    rounds: list[StatusRound] = [{**row, "unlisted": 0} for row in status["rounds"]]
    asked: Status = {**status, "rounds": rounds, "actions": 540}
    assert "90% of the budget was used (540 done)." in flat(shown(120, lambda: output.print_status(asked, STORE)))


def test_templates_show_the_reward_of_each_state_and_the_default_budget(shown: Callable[..., str]) -> None:
    for template in TEMPLATES.values():
        text = flat(shown(120, lambda template=template: output.print_templates([template])))
        assert (
            f"{template['budget']} a {template['every']}; states, worst first, with their {template['reward_unit']}:"
            in text
        )
        for state, worth, sign in zip(template["states"], template["rewards"], template["signs"], strict=True):
            assert f"{state} ({worth:g}): {sign}" in text


def test_a_list_to_read_has_ranks_names_and_who_is_not_on_it(capsys: Printed) -> None:
    output.print_recommendation(
        make_recommendation(notes=["two remarks", "each on its line"]), None, as_json=False, dry_run=False
    )
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "one, the week of 16 Nov 2026 (round 3): 2 people to act on, then the reserve"
    assert [line.split()[:2] for line in lines if "%" in line] == [
        ["1", "eve"], ["2", "ann"], ["+1", "(erased)"], ["+2", "fay"],
    ]  # fmt: skip
    assert "Not on the list: 1 by control group, 1 by cooling down." in lines
    assert shown.err == "restive: two remarks\nrestive: each on its line\n"


def test_a_long_list_is_cut_and_says_how_to_see_the_rest(capsys: Printed) -> None:
    output.print_recommendation(make_recommendation(), None, as_json=False, dry_run=False, max_people=3)
    shown = capsys.readouterr().out
    assert "fay" not in shown
    assert "... and 1 more; --out writes all of them to a file." in shown


def test_what_rules_change_is_reported_in_places_of_the_list(capsys: Printed) -> None:
    recommendation = make_recommendation()
    recommendation.found.decided.about["displaced"] = {"never list": 3, "cooling down": 0}
    output.print_recommendation(recommendation, None, as_json=False, dry_run=False)
    reported = "Places that would go to other people without the rule: never list 3, cooling down 0."
    assert reported in capsys.readouterr().out


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_dry_run_is_called_one_and_writes_no_file(dry_run: bool, capsys: Printed, tmp_path: Path) -> None:
    file = tmp_path / "list.csv"
    output.print_recommendation(make_recommendation(), file, as_json=False, dry_run=dry_run)
    shown = capsys.readouterr()
    assert ("(dry run, nothing recorded)" in shown.out) is dry_run
    assert (f"wrote {file}" in shown.err) is file.exists() is not dry_run
    output.print_recommendation(make_recommendation(), None, as_json=True, dry_run=dry_run)
    assert json.loads(capsys.readouterr().out)["recorded"] is not dry_run


def test_the_whole_list_is_written_however_much_of_it_is_shown(capsys: Printed, tmp_path: Path) -> None:
    for full, erased in ((True, ["(erased)"]), (False, [])):
        file = tmp_path / f"{full}.csv"
        output.print_recommendation(make_recommendation(), file, as_json=False, dry_run=False, max_people=1, full=full)
        assert read_table_file(file)["agent"].to_list() == ["eve", "ann", *erased, "fay"]


def test_a_file_that_cannot_be_written_is_reported_with_the_command_to_retry(tmp_path: Path) -> None:
    (tmp_path / "list.csv").mkdir()
    with pytest.raises(
        InputError, match="The round is recorded; to write its list: restive desk round one 3 --out FILE"
    ):
        output.print_recommendation(make_recommendation(), tmp_path / "list.csv", as_json=False, dry_run=False)


def test_a_config_is_reported_with_all_that_was_settled_and_nothing_else(capsys: Printed) -> None:
    output.print_config("one", Config(("low", "high"), control=0.0).as_json(), "is ready", as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "Program one is ready.",
        "States: low, high; rewards: reported with each outcome.",
        "Budget: 10 a round. Policy: lagrange.",
    ]
    full = Config(
        ("low", "high"), (0, 1.5), shadow="egt", cool_down=3, shares={"north": 0.5, "south": 0.25}, horizon=12, keep=2
    )
    output.print_config("one", {**full.as_json(), "store": "x.db"}, "is ready", as_json=False)
    reported = capsys.readouterr().out
    for sentence in (
        "rewards: 0, 1.5.", "Control group: about 10% of the people are never treated", "Shadow policy, only compared: egt.",
        "Cool-down: nobody twice in 3 rounds.", "Minimum shares of the list: north 50%, south 25%.", "Rounds in all: 12.",
        "Store: x.db",
    ):  # fmt: skip
        assert sentence in reported
