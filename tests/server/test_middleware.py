import re
from dataclasses import replace

import pytest

from restive.server.middleware import SECURITY
from server.running import CLOSED, OPEN, ask, ask_all, make_plain

ELSEWHERE = {"Origin": "https://elsewhere.org"}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/", 200), ("/nowhere", 404), ("/fail", 500), ("/refuse", 406), ("/refuse?input=1", 422), ("/tag", 200)],
)
def test_every_answer_has_the_security_headers_and_an_id(path: str, status: int) -> None:
    answer = ask(make_plain(), path=path)
    assert answer.status_code == status
    for name, value in SECURITY.items():
        assert answer.headers[name] == value
    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
    assert "server" not in answer.headers
    assert answer.headers["cache-control"] == ("private, no-cache" if path == "/tag" else "no-store")


def test_refusals_of_every_layer_have_the_security_headers_and_the_one_shape() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=3, largest_json=5))
    answers = ask_all(
        app,
        [
            ("GET", "/", {"headers": {"Host": "elsewhere.org"}}),
            ("POST", "/", {"headers": ELSEWHERE}),
            ("POST", "/count", {"content": b"0123456789"}),
            *[("GET", "/", {})] * 3,
        ],
    )
    refused = [answer for answer in answers if answer.status_code != 200]
    assert [answer.status_code for answer in refused] == [421, 403, 413, 429]
    for answer in refused:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["content-security-policy"] == SECURITY["Content-Security-Policy"]
        problem = answer.json()
        assert problem["status"] == answer.status_code
        assert problem["request"] == answer.headers["x-request-id"]
        assert problem["recorded"] is False


def test_a_plain_id_of_the_caller_is_kept_and_any_other_is_not() -> None:
    given = ["abc-1.2_3", "a b", "x" * 65, "", 'a"}', "é"]
    answers = ask_all(make_plain(), [("GET", "/", {"headers": {"X-Request-ID": each.encode()}}) for each in given])
    kept = [answer.headers["x-request-id"] == each for answer, each in zip(answers, given, strict=True)]
    assert kept == [True, False, False, False, False, False]
    assert answers[0].json() == {"hello": "abc-1.2_3"}


def test_https_is_insisted_on_where_the_server_has_it() -> None:
    name = "strict-transport-security"
    assert name not in ask(make_plain(CLOSED)).headers
    assert ask(make_plain(replace(CLOSED, https=True))).headers[name] == "max-age=31536000"


def test_an_error_that_nobody_expected_says_nothing_of_itself() -> None:
    answer = ask(make_plain(), path="/fail?secret=ann")
    assert answer.status_code == 500
    assert "ann" not in answer.text
    assert "Runtime" not in answer.text
    assert answer.json()["recorded"] is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8787", "localhost", "LOCALHOST:1", "[::1]:8787"])
def test_an_open_server_answers_to_the_names_of_this_machine(host: str) -> None:
    assert ask(make_plain(OPEN), headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["elsewhere.org", "127.0.0.1.elsewhere.org", "localhost.", "localhost@elsewhere.org", "10.0.0.1:8787", ""]
)
def test_an_open_server_answers_to_no_other_name(host: str) -> None:
    assert ask(make_plain(OPEN), headers={"Host": host}).status_code == 421
    assert ask(make_plain(CLOSED), headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("name", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
def test_an_open_server_is_not_reached_by_a_proxy(name: str) -> None:
    assert ask(make_plain(OPEN), headers={name: "1"}).status_code == 421
    assert ask(make_plain(CLOSED), headers={name: "1"}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://127.0.0.1:8787"}, 200),
        (ELSEWHERE, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:9999"}, 403),
        ({"Sec-Fetch-Site": "same-origin", **ELSEWHERE}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Authorization": "Bearer rst_1_x"}, 200),
    ],
)
def test_no_other_site_has_a_browser_change_anything(headers: dict[str, str], status: int) -> None:
    for settings in (OPEN, CLOSED):
        assert ask(make_plain(settings), "POST", headers=headers).status_code == status


def test_other_sites_may_link_here_but_not_load_anything() -> None:
    app, link = make_plain(), {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(app, headers={**link, "Sec-Fetch-Dest": "document"}).status_code == 200
    assert ask(app, headers={**link, "Sec-Fetch-Dest": "iframe"}).status_code == 403
    assert ask(app, headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert ask(app, headers=ELSEWHERE).status_code == 200


def test_who_asks_too_often_is_reported_when_to_come_back() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=2))
    answers = ask_all(app, [("GET", "/", {})] * 4)
    assert [answer.status_code for answer in answers] == [200, 200, 429, 429]
    assert answers[-1].headers["retry-after"] == "10"


def test_a_new_guess_is_no_new_turn_and_a_good_token_has_turns_of_its_own() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=2))
    app.state.rates.remember("rst_7_right", 7)
    guesses = [("GET", "/", {"headers": {"Authorization": f"Bearer rst_7_{number}"}}) for number in range(3)]
    right = ("GET", "/", {"headers": {"Authorization": "Bearer rst_7_right"}})
    answers = ask_all(app, [*guesses, right, right, right])
    assert [answer.status_code for answer in answers] == [200, 200, 429, 200, 200, 429]


def test_a_cookie_counts_as_the_token_that_it_belongs_to() -> None:
    app = make_plain(replace(OPEN, rate=0.1, burst=1))
    app.state.rates.remember("biscuit", 7)
    mine = ("GET", "/", {"headers": {"Cookie": "other=1; restive_session=biscuit"}})
    broken = ("GET", "/", {"headers": {"Cookie": 'restive_session="; ='}})
    statuses = [answer.status_code for answer in ask_all(app, [mine, mine, broken, broken])]
    assert statuses == [200, 429, 200, 429]
