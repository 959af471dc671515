from typing import Any

import pytest

from restive.errors import InputError
from restive.server.settings import MIB, Settings


def test_a_server_is_for_this_machine_and_asks_for_tokens_unless_reported_otherwise() -> None:
    usual = Settings()
    assert (usual.host, usual.port, usual.open) == ("127.0.0.1", 8787, False)
    assert (usual.largest_table, usual.largest_json) == (256 * MIB, 32 * MIB)


@pytest.mark.parametrize("beyond", [{"host": "0.0.0.0"}, {"host": "example.org"}, {"behind_proxy": True}])
def test_no_server_that_others_can_reach_is_open(beyond: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="cannot go without tokens"):
        Settings(open=True, **beyond)
    assert not Settings(**beyond).open


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_a_server_for_this_machine_may_be_open(host: str) -> None:
    assert Settings(host=host, open=True).open


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"port": 70_000}, "port is 70000; it must be a whole number from 0 to 65535."),
        ({"rate": 0.0}, "rate is 0.0; it must be a number of requests a second, from 0.1 to 1000000."),
        ({"rate": float("nan")}, "rate is nan; it must be a number of requests a second, from 0.1 to 1000000."),
        ({"log": "loud"}, "log is 'loud'; it must be one of text, json, none."),
        ({"at_once": 0}, "at_once is 0; it must be a whole number from 1 on."),
        ({"largest_table": 0}, "largest_table is 0; it must be a whole number from 1 on."),
    ],
)
def test_settings_that_make_no_sense_are_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        Settings(**wrong)
    assert str(error.value) == sentence


def test_cookies_insist_on_https_wherever_browsers_come_by_it() -> None:
    assert not Settings().secure
    assert Settings(https=True).secure
    assert Settings(behind_proxy=True).secure
    assert not Settings(behind_proxy=True, plain_http=True).secure


def test_a_body_gets_more_time_the_more_of_it_is_there() -> None:
    settings = Settings(body_seconds=10, body_pace=100)
    assert settings.body_time(0) == 10
    assert settings.body_time(1000) == 20


def test_an_answer_gets_more_time_the_more_of_it_was_taken() -> None:
    settings = Settings(stall_seconds=10, answer_pace=100)
    assert settings.answer_time(0) == 10
    assert settings.answer_time(1000) == 20
    assert Settings(answer_pace=0).answer_time(0) == float("inf")
