import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from restive.desk import AlreadyDecided, Desk, Fault, StoreError, TableError
from restive.desk.audit import KeyTaken
from restive.errors import Conflict, InputError, NotFound
from restive.server.app import make_app
from restive.server.errors import MAX_FAULTS, MAX_SENTENCE, PROBLEMS, Misfit, Refusal, answer, describe
from restive.server.requests import Create, Leave
from restive.server.settings import Settings
from restive.server.uploads import check_settings


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (InputError("no."), 422, "input"),
        (TableError("states", [Fault(2, "state", "no")]), 422, "table"),
        (NotFound("no."), 404, "not-there"),
        (Conflict("no."), 409, "conflict"),
        (AlreadyDecided("no."), 409, "already-decided"),
        (KeyTaken("no."), 409, "key-taken"),
        (StoreError("no."), 503, "store"),
        (Refusal(401, "no."), 401, "token"),
        (Refusal(413, "no."), 413, "too-large"),
        (Refusal(418, "no."), 418, "input"),
        (HTTPException(405), 405, "method"),
        (RequestValidationError([]), 422, "input"),
        (RuntimeError("secret"), 500, "fault"),
    ],
)
def test_every_error_has_its_status_and_a_kind_that_is_explained(error: Exception, status: int, kind: str) -> None:
    failure = describe(error)
    assert (failure.status, failure.type) == (status, f"/api#{kind}")
    assert kind in PROBLEMS
    assert failure.recorded is (None if status == 500 else False)


def test_what_nobody_expected_is_not_repeated() -> None:
    assert "secret" not in describe(RuntimeError("secret")).model_dump_json()


@pytest.mark.parametrize("recorded", [True, False, None])
def test_a_failed_store_says_whether_anything_was_recorded_and_when_to_come_back(recorded: bool | None) -> None:
    failure = describe(StoreError("The disk is gone.", recorded))
    assert failure.recorded is recorded
    assert answer(failure).headers["Retry-After"] == "5"


def test_faults_are_reported_by_row_and_column() -> None:
    failure = describe(TableError("states", [Fault(7, "state", "'x' is not a state"), Fault(None, None, "no column")]))
    reported = [(flaw.row, flaw.column, flaw.sentence) for flaw in failure.faults]
    assert reported == [(None, None, "no column"), (7, "state", "'x' is not a state")]


def test_no_sentence_names_the_place_of_the_store_or_of_a_policy(desk: Desk) -> None:
    app = make_app(desk, Settings(open=True, log="none"))
    request = Request({"type": "http", "app": app, "headers": [], "state": {"id": "abc"}})
    failure = describe(StoreError(f"Writing to the store {desk.store.address} failed, it is full."), request)
    assert failure.detail == "Writing to the store failed, it is full."
    assert failure.request == "abc"
    assert describe(InputError("/home/ann/mine.py: there is no such file.")).detail == "mine.py: there is no such file."


def test_a_misfit_names_a_few_places_and_lists_all() -> None:
    errors = [{"loc": ("body", f"field{n}"), "type": "missing", "msg": "Field required"} for n in range(7)]
    misfit = Misfit(errors)
    assert str(misfit).startswith("field0: it is missing; field1: it is missing;")
    assert str(misfit).endswith("and 2 more.")
    assert len(describe(misfit).faults) == 7


def test_of_too_many_faults_the_first_are_reported_and_the_others_counted() -> None:
    errors = [{"loc": ("body", f"field{n}"), "type": "missing", "msg": "Field required"} for n in range(3000)]
    misfit = Misfit(errors, more=500)
    assert len(misfit.faults) == MAX_FAULTS
    assert str(misfit).endswith("and 3495 more.")
    table = describe(TableError("states", [Fault(row, "x" * 10_000, "no" * 10_000) for row in range(3000)]))
    assert len(table.faults) == MAX_FAULTS
    assert len(table.model_dump_json()) < MAX_FAULTS * 11_000


def test_no_sentence_goes_on_for_ever() -> None:
    assert len(describe(InputError("x" * 10**6)).detail) == MAX_SENTENCE


def test_faults_name_no_folder_either() -> None:
    failure = describe(TableError("states", [Fault(1, None, "see /home/ann/x.csv")]))
    assert failure.faults[0].sentence == "see x.csv"


def test_a_place_that_may_be_of_several_kinds_is_one_fault_in_plain_words() -> None:
    given = {"agents": ["", [], "ann"], "dry_run": "x", "more": 1}
    with pytest.raises(Misfit) as caught:
        check_settings(Leave, given)
    assert [(fault.column, fault.message) for fault in caught.value.faults] == [
        ("agents.0", "it must have at least 1 character, or it must be a whole number"),
        ("agents.1", "it must be a text, or it must be a whole number"),
        ("dry_run", "it must be true or false"),
        ("more", "it is not known here"),
    ]
    with pytest.raises(Misfit, match=r"^name: it has a character that is not allowed there\.$"):
        check_settings(Create, {"name": "a b"})


def test_words_of_a_database_are_for_the_log_alone(desk: Desk) -> None:
    app = make_app(desk, Settings(open=True, log="none"))
    request = Request({"type": "http", "app": app, "headers": [], "state": {}})
    error = StoreError("Reading from the store failed, the database says 'no route to db.internal:5432'; try again.")
    detail = describe(error, request).detail
    assert detail == "Reading from the store failed, for a reason that is in the server's log; try again."
    assert "db.internal" in request.state.why
