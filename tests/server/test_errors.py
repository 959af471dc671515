import json
from pathlib import Path

import pytest
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request

from restive.desk import AlreadyDecided, Desk, Fault, StoreError, TableError
from restive.desk.audit import KeyTaken
from restive.errors import Conflict, Hint, InputError, NotFound
from restive.server.app import make_app
from restive.server.errors import ADVICE, CODES, HTTP_CODES, MAX_FAULTS, MAX_MESSAGE, InvalidRequest, describe
from restive.server.requests import CreateBody, LeaveBody
from restive.server.settings import Settings
from restive.server.uploads import check_settings
from server.running import ask, make_plain


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (InputError("no."), 422, "invalid_input"),
        (TableError("states", [Fault(2, "state", "no")]), 422, "invalid_table"),
        (NotFound("no."), 404, "not_found"),
        (Conflict("no."), 409, "conflict"),
        (AlreadyDecided("no."), 409, "already_decided"),
        (KeyTaken("no."), 409, "key_reused"),
        (StoreError("no."), 503, "store_unavailable"),
        (HTTPException(401, "no."), 401, "unauthorized"),
        (HTTPException(413, "no."), 413, "too_large"),
        (HTTPException(418, "no."), 418, "invalid_input"),
        (HTTPException(405), 405, "method_not_allowed"),
        (RequestValidationError([]), 422, "invalid_input"),
        (RuntimeError("secret"), 500, "internal_error"),
    ],
)
def test_every_error_has_its_status_and_a_documented_code(error: Exception, status: int, code: str) -> None:
    problem = describe(error)
    assert (problem["status"], problem["code"], problem["type"]) == (status, code, f"/api#{code}")
    assert code in CODES
    assert problem["recorded"] is (None if status == 500 else False)


def test_every_code_of_a_status_is_documented() -> None:
    assert set(HTTP_CODES.values()) <= set(CODES)


def test_unexpected_errors_are_not_repeated() -> None:
    assert "secret" not in json.dumps(describe(RuntimeError("secret")))


@pytest.mark.parametrize("recorded", [True, False, None])
def test_a_store_error_says_whether_the_request_was_recorded(recorded: bool | None) -> None:
    assert describe(StoreError("The disk is gone.", recorded))["recorded"] is recorded


def test_a_store_error_says_when_to_try_again() -> None:
    answer = ask(make_plain(), path="/store")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_the_message_of_a_store_error_is_for_the_log_only(desk: Desk) -> None:
    app = make_app(desk, Settings(open=True, log="none"))
    request = Request({"type": "http", "app": app, "headers": [], "state": {"id": "abc"}})
    message = f"Writing to the store {desk.store.address} failed, the database says 'no route to db.internal:5432'."
    problem = describe(StoreError(message), request)
    assert problem["detail"] == "The store is unavailable. Nothing was recorded."
    assert problem["request"] == "abc"
    assert request.state.why == message


def test_faults_are_reported_by_row_and_column() -> None:
    problem = describe(TableError("states", [Fault(7, "state", "'x' is not a state"), Fault(None, None, "no column")]))
    assert problem["location"] == "states"
    assert problem["faults"] == [
        {"row": None, "column": None, "message": "no column"},
        {"row": 7, "column": "state", "message": "'x' is not a state"},
    ]


def test_a_hint_becomes_advice_in_the_words_of_the_api() -> None:
    problem = describe(Conflict("Round 1 has these states.", hint=Hint.AGAIN))
    assert (problem["hint"], problem["advice"]) == ("again", ADVICE[Hint.AGAIN])
    assert describe(Conflict("Round 1 has these states."))["advice"] is None


def test_the_path_of_a_file_is_not_answered() -> None:
    problem = describe(InputError("mine.py: not found.", location=Path("/home/ann/mine.py")))
    assert "/home" not in json.dumps(problem)


def test_an_invalid_request_shows_some_faults_and_lists_all() -> None:
    errors = [{"loc": ("body", f"field{n}"), "type": "missing", "msg": "Field required"} for n in range(7)]
    invalid = InvalidRequest(errors)
    assert str(invalid).startswith("field0: Field required; field1: Field required;")
    assert str(invalid).endswith("and 2 more.")
    assert len(describe(invalid)["faults"]) == 7


def test_the_number_of_faults_and_their_length_are_limited() -> None:
    errors = [{"loc": ("body", f"field{n}"), "type": "missing", "msg": "Field required"} for n in range(3000)]
    invalid = InvalidRequest(errors, more=500)
    assert len(invalid.faults) == MAX_FAULTS
    assert str(invalid).endswith("and 3495 more.")
    table = describe(TableError("states", [Fault(row, "x" * 10_000, "no" * 10_000) for row in range(3000)]))
    assert len(table["faults"]) == MAX_FAULTS
    assert len(json.dumps(table)) < MAX_FAULTS * 11_000
    assert len(describe(InputError("x" * 10**6))["detail"]) == MAX_MESSAGE


def test_each_invalid_field_is_one_fault() -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_settings(LeaveBody, {"agents": ["ann", "", []], "dry_run": "x", "more": 1})
    assert [(fault.column, fault.message) for fault in caught.value.faults] == [
        ("dry_run", "Input should be true or false"),
        ("agents", "item 2 must be a string of 1 to 200 characters or an integer"),
        ("more", "Extra inputs are not permitted"),
    ]
    with pytest.raises(InvalidRequest, match=r"^name: String should match pattern"):
        check_settings(CreateBody, {"name": "a b"})


def test_a_browser_gets_a_page_with_the_message() -> None:
    answer = ask(make_plain(), path="/refuse", headers={"Accept": "text/html,*/*"})
    assert answer.status_code == 406
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "<p>not that.</p>" in answer.text
    assert answer.headers["x-request-id"] in answer.text


def test_the_api_answers_problems_to_browsers_too() -> None:
    answer = ask(make_plain(), path="/api/v1/x", headers={"Accept": "text/html", "Host": "elsewhere"})
    assert answer.json()["status"] == 421


def test_messages_on_pages_are_escaped() -> None:
    answer = ask(make_plain(), path="/<script>", headers={"Accept": "text/html"})
    assert "<script" not in answer.text
