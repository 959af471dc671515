import pytest

from server.calling import Caller


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("rounds?limit=0", "limit"),
        ("rounds?limit=1001", "limit"),
        ("rounds?limit=1.0", "limit"),
        ("rounds?limit=+1", "limit"),
        ("rounds?limit=", "limit"),
        ("rounds?after=-1", "after"),
        ("rounds?after=99999999999999999999", "after"),
        ("rounds/0", "round"),
        ("rounds/one", "round"),
        ("history", "agent"),
        ("history?agent=", "agent"),
        ("audit?before=0", "before"),
    ],
)
def test_invalid_parameters_are_refused_by_name(caller: Caller, path: str, place: str) -> None:
    assert caller.refused("GET", path, 422)["faults"][0]["column"] == place


@pytest.mark.parametrize("value", ["yes", "1", "True", "", "maybe"])
def test_a_boolean_parameter_is_true_or_false(caller: Caller, value: str) -> None:
    caller.desk.program("shops").decide({"ann": "low"})
    before = caller.events()
    failure = caller.refused("POST", f"rounds/1/cancel?dry_run={value}", 422)
    assert failure["detail"] == "dry_run: Input should be true or false."
    assert caller.events() == before


def test_an_unknown_parameter_is_refused_and_nothing_is_recorded(caller: Caller) -> None:
    caller.desk.program("shops").decide({"ann": "low"})
    before = caller.events()
    failure = caller.refused("POST", "rounds/1/cancel?dryrun=true", 422)
    assert failure["detail"] == "dryrun: Extra inputs are not permitted."
    assert caller.refused("GET", "/api/v1/me?x=1", 422)["detail"] == "x: Extra inputs are not permitted."
    assert caller.events() == before


def test_a_repeated_parameter_is_refused(caller: Caller) -> None:
    assert "limit is given twice" in caller.refused("GET", "rounds?limit=1&limit=2", 422)["detail"]
