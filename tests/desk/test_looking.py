"""Verbs that only look: none of them is missing from the command, and none records anything."""

from desk.test_cli import Call, call, mark, shops
from restive.desk.cli import desk
from restive.desk.looking import verbs

__all__ = ["call", "shops"]  # fixtures

LOOKS = {
    "status": ("status", "shops"),
    "round": ("round", "shops", "1", "--out", "again.csv"),
    "history": ("history", "shops", "000"),
    "list": ("list",),
    "templates": ("templates",),
    "replay": ("replay", "shops"),
    "export": ("export", "shops", "--out", "folder"),
    "demo": ("demo", "--agents", "10", "--rounds", "1"),
}


def name_verbs(commands: object) -> list[str]:
    return [each.name or each.callback.__name__ for each in commands]  # type: ignore[attr-defined]


def test_no_verb_is_both_looking_and_recording_and_all_are_reached_without_a_name_between() -> None:
    looking, recording = name_verbs(verbs.registered_commands), name_verbs(desk.registered_commands)
    assert set(looking) == set(LOOKS)
    assert set(recording) == {"init", "decide", "learn", "correct", "leave", "erase", "cancel", "change"}


def test_looking_records_nothing(shops: Call) -> None:
    before = mark()
    for verb, words in LOOKS.items():
        ended = shops(*words)
        assert ended.code == 0, (verb, ended.err)
        assert ended.out, verb
        assert mark() == before, verb


def test_templates_are_reported_with_budget_and_worth(call: Call) -> None:
    reported = " ".join(call("templates").out.split())
    assert "20 a week; states, worst first, with their orders a week:" in reported
    assert "silent (0): " in reported
    assert "frequent (8): " in reported
