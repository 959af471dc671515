"""What the desk says to a command line is said otherwise in an answer and on a page."""

import pytest

from restive.server.wording import say_here, speak
from server.calling import Caller

STATES = {"states": [{"agent": "ann", "state": "low"}, {"agent": "ben", "state": "high"}]}
ROUNDS = "/api/v1/programs/shops/rounds"


def test_no_answer_names_a_command_or_an_option(caller: Caller) -> None:
    assert caller.call("POST", ROUNDS, json=STATES).status_code == 201
    again = caller.call("POST", ROUNDS, json=STATES)
    assert again.status_code == 409
    assert again.json()["detail"].endswith("If another round is meant although nobody moved, say so (again).")
    second = caller.call("POST", ROUNDS, json=STATES | {"again": True}).json()
    assert second["notes"] == ["round 1 has no outcomes yet; if it was a mistake, cancel it"]
    outcomes = {"outcomes": [{"agent": "ann", "next_state": "low"}]}
    unclear = caller.call("POST", "/api/v1/programs/shops/outcomes", json=outcomes)
    said = again.text + str(second) + unclear.text
    assert "restive desk" not in said
    assert "--" not in said


def test_a_page_speaks_of_its_boxes_and_of_where_to_click() -> None:
    desk = "round 1 has no outcomes yet; if it was a mistake: restive desk cancel shops 1"
    assert say_here(desk) == "round 1 has no outcomes yet; if it was a mistake, cancel it under Settings"
    assert say_here(speak(desk)) == say_here(desk)
    asked = "Say by --round or by a column round which one is meant."
    assert speak(asked) == "Say by round or by a column round which one is meant."
    assert say_here(asked) == "Say which one is meant: choose it in the form."


def test_a_page_writes_a_time_as_people_do() -> None:
    said = "round 1 was decided already, at 2026-11-16T08:30:54.183903+00:00; nothing was recorded now."
    assert speak(said) == said
    assert say_here(said) == "round 1 was decided already, at 2026-11-16 08:30 UTC; nothing was recorded now."


@pytest.mark.parametrize(
    "said",
    [
        "round 3 has no outcomes yet; if it was a mistake: restive desk cancel my-program 3",
        "Its list: x. Its list: restive desk round coupons 4. If another round is meant, say so (--again).",
        "or say that they are new (--new).",
        "Say by --round or by a column round which one is meant.",
    ],
)
def test_a_page_does_not_speak_of_the_command_line(said: str) -> None:
    assert "restive desk" not in say_here(said)
    assert "--" not in say_here(said)
