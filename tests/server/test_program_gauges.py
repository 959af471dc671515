"""Gauges of programs: their values, who sees them, and that a request for them does not keep a program in memory."""

from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from restive.desk import Desk
from restive.server.program_gauges import measure
from server.calling import Caller
from server.conftest import SHOPS

STATES = {f"p{number:02}": number % 2 for number in range(40)}


def read_gauges(caller: Caller) -> dict[str, dict[str, float]]:
    """The gauges by program and name."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(caller.call("GET", "/metrics").text):
        for sample in family.samples:
            if sample.name.startswith("restive_program_"):
                values = found.setdefault(sample.labels["program"], {})
                values[sample.name.removeprefix("restive_program_")] = sample.value
    return found


def play(desk: Desk, name: str) -> None:
    program = desk.create(name, **SHOPS | {"control": 0.5, "states_are_outcomes": False})
    for _ in range(2):
        program.decide(STATES, again=True)
    program.learn([{"agent": agent, "next_state": state} for agent, state in STATES.items()], round=1)


def test_gauges_have_what_is_missing_the_last_round_and_the_lift(caller: Caller) -> None:
    play(caller.desk, "visits")
    program = caller.desk.program("visits")
    for _ in range(3):  # each request opens one more program
        found = read_gauges(caller)
    assert set(found) == {"shops", "visits"}
    values = found["visits"]
    assert (values["people"], values["rounds"], values["results_waiting"]) == (40, 2, 40)
    assert 0 <= caller.desk.store.clock().timestamp() - values["last_round_timestamp_seconds"] < 3600
    assert values["lift_low"] <= values["lift"] <= values["lift_high"]
    assert "lift" not in found["shops"]
    before = measure(program)
    assert measure(program, before) is before
    program.learn([{"agent": "p00", "next_state": 1}], round=2)
    assert read_gauges(caller)["visits"]["results_waiting"] == 39
    caller.desk.delete("visits", "visits")
    assert set(read_gauges(caller)) == {"shops"}


def test_a_token_sees_the_gauges_of_its_programs(principals: Callable[..., Caller]) -> None:
    admin = principals("admin")
    play(admin.desk, "visits")
    for _ in range(3):
        read_gauges(admin)
    assert set(read_gauges(admin)) == {"shops", "visits"}
    assert set(read_gauges(principals("viewer", "shops"))) == {"shops"}


def test_gauges_do_not_count_as_a_use_of_a_program(caller: Caller) -> None:
    programs = caller.app.state.programs
    read_gauges(caller)
    used = programs._opened["shops"].used
    read_gauges(caller)
    assert programs._opened["shops"].used == used
