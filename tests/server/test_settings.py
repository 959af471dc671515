from typing import Any

import pytest

from restive.errors import InputError
from restive.server.settings import MIB, Settings


def test_by_default_a_server_is_local_and_needs_tokens() -> None:
    usual = Settings()
    assert (usual.host, usual.port, usual.open) == ("127.0.0.1", 8787, False)
    assert (usual.max_table_bytes, usual.max_json_bytes) == (256 * MIB, 32 * MIB)


@pytest.mark.parametrize("beyond", [{"host": "0.0.0.0"}, {"host": "example.org"}, {"behind_proxy": True}])
def test_no_server_that_others_can_reach_is_open(beyond: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="so it needs tokens"):
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
        ({"max_concurrent_requests": 0}, "max_concurrent_requests is 0; it must be a whole number from 1 on."),
        ({"max_table_bytes": 0}, "max_table_bytes is 0; it must be a whole number from 1 on."),
        ({"trusted_proxies": ("proxy",)}, "'proxy' is not an address or network; write 10.0.0.7 or 10.0.0.0/24."),
    ],
)
def test_invalid_settings_are_rejected_with_one_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as error:
        Settings(**wrong)
    assert str(error.value) == sentence


def test_cookies_are_secure_where_browsers_use_https() -> None:
    assert not Settings().secure
    assert Settings(https=True).secure
    assert Settings(behind_proxy=True).secure
    assert not Settings(behind_proxy=True, plain_http=True).secure


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"identity_header": "X-User"}, "--trusted-proxy"),
        ({"identity_header": "X User", "trusted_proxies": ("10.0.0.7",)}, "such as X-Forwarded-User"),
        ({"identity_header": "Cookie", "trusted_proxies": ("10.0.0.7",)}, "such as X-Forwarded-User"),
        ({"session_days": 0}, "number of days"),
        ({"session_days": 1000}, "number of days"),
    ],
)
def test_identity_and_sessions_are_checked(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Settings(**given)
