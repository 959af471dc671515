"""Pages fit the terminal, numbers are never cut, and names are shown as they are."""

import io
import math
import re
from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
import pytest
from rich.console import Console

from restive.desk import screen
from restive.desk.config import Words
from restive.desk.lift import compare_policies, lift
from restive.desk.status import Learned, People, RoundRow, Status, Step
from restive.desk.templates import TEMPLATES

WORDS = Words(
    person="shop", people="shops", action="a coupon", acted="got a coupon", every="week", reward_unit="orders a week"
)
WIDTHS = (120, 80, 60, 40)


def make_status(rounds: int = 30) -> Status:
    luck = np.random.default_rng(2)
    control = np.arange(100) < 20
    total = rounds * (luck.gamma(2.0, 0.3, 100) + 0.9 * ~control)
    probability, agent = np.full(500, 0.2), np.tile(np.arange(100), 5)
    shadow = compare_policies(luck.random(500), luck.random(500) < 0.2, probability, probability, agent, words=WORDS)
    at = "2026-03-02T08:15:59.000001+00:00"
    lines = [RoundRow(n + 1, at, 1234, 20, 20, 18, 2, 1230, 1, 3, n / 10, 1.5, 0.4129) for n in range(rounds)]
    return Status(
        name="shops",
        title="Coupons [bold]for[/bold] shops",
        store="[red]shops.db",
        policy="lagrange",
        seed=7,
        people=People(active=1234, left=4, erased=1, new=6, control=20),
        words=WORDS,
        rounds=lines,
        lift=lift(total, np.full(100, rounds), control, WORDS) if rounds else None,
        shadow=shadow,
        shadow_policy="egt:eta=0.5",
        learned=[Learned("silent [x]", 196, 0.62, 0.3, 170), Learned("busy", 0, math.nan, math.nan, 0)],
        steps=[
            Step(
                "Round 30 waits for outcomes of 12 [i]shops[/i].",
                "learn",
                30,
                "restive desk learn shops --outcomes OUTCOMES.csv",
            )
        ],
    )


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    def show(width: int, call: Callable[[], None]) -> str:
        file = io.StringIO()
        monkeypatch.setattr(screen, "_console", lambda: Console(file=file, width=width, highlight=False))
        call()
        return file.getvalue()

    return show


def flat(text: str) -> str:
    """The text without its line breaks."""
    return re.sub(r"\s+", " ", text)


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_cuts_nothing(shown: Callable[..., str], width: int) -> None:
    status = make_status()
    text = shown(width, lambda: screen.print_status(status))
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    assert status.lift is not None
    assert status.shadow is not None
    for sentence in (status.lift.sentence, status.shadow.sentence, *map(str, status.steps)):
        assert sentence in flat(text)
    assert "1,230/1,234" in text
    assert "Coupons [bold]for[/bold] shops" in text
    assert "[red]shops.db" in flat(text)
    assert "silent [x]" in text


def test_the_page_says_who_is_in_and_what_was_used_and_gained(shown: Callable[..., str]) -> None:
    text = flat(shown(120, lambda: screen.print_status(make_status())))
    assert "1,234 shops, 20 in the control group, 6 new, 4 left, 1 erased." in text
    assert "Of the budget 90% was used (540 done, and 30 unasked)." in text  # 18 of 20 and 1 in each of 30
    assert "for each time someone got a coupon." in text
    assert "170 of 196" in text
    assert "The last 8 of 30 rounds." in text


def test_bars_of_both_sides_share_a_scale_and_keep_to_the_last_rounds_that_fit(shown: Callable[..., str]) -> None:
    text = shown(40, lambda: screen.print_status(make_status(60)))
    lines = {line[:14].strip(): line[16:].split()[0] for line in text.splitlines() if set(line) & set(screen.BARS)}
    ours, theirs = lines["in the program"], lines["control group"]
    assert len(ours) == len(theirs) == 6
    assert ours[-1] == "█"
    assert set(theirs) == {"▁"}


def test_a_wide_terminal_has_more_columns(shown: Callable[..., str]) -> None:
    heads = [
        next(
            line for line in shown(width, lambda: screen.print_status(make_status())).splitlines() if "on the l" in line
        )
        for width in WIDTHS
    ]
    assert "decided at" in heads[0]
    assert [len(head.split()) for head in heads] == sorted((len(head.split()) for head in heads), reverse=True)
    assert len(heads[0].split()) > len(heads[3].split())


def test_a_program_that_has_not_begun_has_a_page(shown: Callable[..., str]) -> None:
    fresh = replace(make_status(0), shadow=None, learned=(), people=People(1))
    text = shown(80, lambda: screen.print_status(fresh))
    assert "1 shop." in text
    assert "Rounds" not in text
    assert "Does it work" not in text


def test_without_a_control_group_the_reward_is_shown_alone(shown: Callable[..., str]) -> None:
    status = make_status()
    alone = replace(status, lift=None, rounds=[replace(row, control_mean=math.nan) for row in status.rounds])
    text = shown(80, lambda: screen.print_status(alone))
    assert "in the program  ▁" in text
    assert "control group   " not in text
    assert "Does it work" not in text


LIST = [
    {
        "rank": n + 1,
        "person": f"[b]{n}[/b] " + "long name " * (3 * n),
        "state": "silent",
        "benefit": 0.41,
        "error": [0.1, math.inf, math.nan][n],
        "probability": [1.0, 0.999, 0.001][n],
        "why": f"Now silent: because of {n} [red]reasons.",
    }
    for n in range(3)
]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_has_every_name_and_reason_whole(shown: Callable[..., str], width: int) -> None:
    text = shown(width, lambda: screen.print_list(LIST, WORDS, "Round [27]"))
    assert max(map(len, text.splitlines())) <= width
    assert "Round [27]" in text
    for n in range(3):
        assert f"Now silent: because of {n} [red]reasons." in flat(text)
        assert f"[b]{n}[/b]" in text
    assert text.count("long") == 9


def test_a_list_shows_benefits_with_their_reach_and_probabilities_that_never_lie(shown: Callable[..., str]) -> None:
    text = shown(120, lambda: screen.print_list(LIST, WORDS))
    for part in ("0.4 ± 0.2", "not known", "100%", ">99%", "<1%", "benefit (95%)"):
        assert part in text
    assert "Nothing to show." in shown(80, lambda: screen.print_list([], WORDS))


def test_a_name_without_a_space_is_folded_and_not_cut(shown: Callable[..., str]) -> None:
    text = shown(40, lambda: screen.print_list([{"rank": 1, "person": "z" * 95}], WORDS))
    assert text.count("z") == 95
    assert max(map(len, text.splitlines())) <= 40


def test_columns_that_nobody_filled_are_left_out(shown: Callable[..., str]) -> None:
    text = shown(80, lambda: screen.print_list([{"rank": 1, "person": "a", "probability": 0.5}], WORDS))
    assert "benefit (95%)" not in text
    assert "state" not in text
    assert "50%" in text


def test_histories_programs_templates_and_reports_are_printed(shown: Callable[..., str]) -> None:
    past = [{"round": 3, "at": "2026-03-02T08:15:59", "state": "[x]", "chosen": True, "done": None, "reward": 1.23456}]
    text = shown(80, lambda: screen.print_history(past, WORDS, "[a]7"))
    for part in ("Shop [a]7", "[x]", "yes", "1.23", "2026-03-02 08:15"):
        assert part in text
    rows = [
        {
            "name": "shops",
            "template": "loyalty",
            "people": 12345,
            "rounds": 3,
            "waiting": 0,
            "policy": "egt",
            "created": "2026",
        }
    ]
    text = shown(80, lambda: screen.print_programs(rows))
    assert "12,345" in text
    assert "loyalty" in text
    assert "No programs yet." in shown(80, lambda: screen.print_programs([]))
    kind = [{"name": "loyalty", "title": "Loyalty", "about": "About.", "states": ("idle",), "signs": ("no [sign]",)}]
    assert "idle: no [sign]" in shown(40, lambda: screen.print_templates(kind))
    tiny = shown(60, lambda: screen.print_history([{"round": 1, "reward": 1.5e-7}], WORDS, "a"))
    assert "0.000000150" in tiny


def test_without_a_terminal_there_is_room_for_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    screen.print_programs([{"name": "x" * 100}])
    assert "x" * 100 in capsys.readouterr().out


def test_a_caution_stands_below_the_lift(shown: Callable[..., str]) -> None:
    status = replace(make_status(), caution="Only 9 of 10 outcomes are in.")
    text = flat(shown(120, lambda: screen.print_status(status)))
    assert status.lift is not None
    assert text.index(status.lift.sentence) < text.index("Only 9 of 10 outcomes are in.")
    assert "Only 9 of 10" not in shown(120, lambda: screen.print_status(make_status()))


def test_what_was_done_unasked_is_reported_only_if_there_was_any(shown: Callable[..., str]) -> None:
    status = make_status()
    asked = replace(status, rounds=[replace(row, unasked=0) for row in status.rounds])
    assert "Of the budget 90% was used (540 done)." in flat(shown(120, lambda: screen.print_status(asked)))


def test_what_is_expected_is_reported_for_each(shown: Callable[..., str]) -> None:
    text = flat(shown(200, lambda: screen.print_status(make_status())))
    assert "expected each" in text
    assert "0.413" in text


def test_templates_show_what_each_state_is_worth_and_the_usual_budget(shown: Callable[..., str]) -> None:
    for template in TEMPLATES.values():
        text = flat(shown(120, lambda template=template: screen.print_templates([asdict(template)])))
        assert f"{template.budget} a {template.every}; states, worst first, with their {template.reward_unit}:" in text
        for state, worth, sign in zip(template.states, template.rewards, template.signs, strict=True):
            assert f"{state} ({worth:g}): {sign}" in text
