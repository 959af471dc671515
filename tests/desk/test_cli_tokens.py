"""`restive desk token` as an administrator calls it: the secret alone on its line, and every wrong turn a sentence."""

import pytest

from desk.test_cli import Call, call, shops
from restive.desk import Desk
from restive.desk.tokens import Principal, find_principal, open_session

__all__ = ["call", "shops"]


def test_the_secret_is_alone_on_standard_output(shops: Call) -> None:
    made = shops("token", "make", "ann", "--program", "shops=operator", "--days", "90")
    assert made.code == 0
    assert made.err.startswith(
        "restive: this is the secret of the token ann; store it now, it is not shown again. It expires"
    )
    with Desk("desk.db") as desk:
        assert find_principal(desk.store, made.out.removesuffix("\n")) == Principal(1, "ann", {"shops": "operator"})


def test_a_token_for_all_programs_can_be_the_first_in_a_store(call: Call) -> None:
    made = call("token", "make", "boss", "--role", "admin", "--json").data
    assert (made["id"], made["name"], made["expires"], made["revoked"]) == (1, "boss", None, None)
    assert made["grants"] == [{"program": None, "role": "admin"}]
    with Desk("desk.db") as desk:
        assert find_principal(desk.store, made["secret"]) == Principal(1, "boss", {None: "admin"})


def test_a_token_for_a_program_makes_no_store(call: Call) -> None:
    assert "there is no store yet" in call("token", "make", "ann", "--program", "shops=viewer").err
    assert "there is no store yet" in call("token", "list").err


def test_the_list_shows_what_there_is_and_was(shops: Call) -> None:
    assert shops("token", "list").out == "No tokens yet.\n"
    secret = shops("token", "make", "ann", "--program", "shops=operator", "--role", "viewer").out.strip()
    shops("token", "make", "ben", "--role", "admin")
    assert shops("token", "revoke", "ben").out == "The token ben is revoked.\n"
    listed = shops("token", "list")
    assert listed.out.splitlines()[0].split() == ["name", "id", "grants", "made", "(UTC)", "revoked", "(UTC)"]
    assert "shops: operator" in listed.out
    assert "all programs: viewer" in listed.out
    rows = shops("token", "list", "--json").data["tokens"]
    assert [(row["name"], row["revoked"] is None) for row in rows] == [("ann", True), ("ben", False)]
    assert secret[6:] not in listed.out
    assert "secret" not in rows[0]


def test_an_invitation_is_a_link_alone_on_standard_output(shops: Call) -> None:
    made = shops("token", "invite", "ann", "--program", "shops=viewer", "--address", "https://desk.example/")
    assert made.out.startswith("https://desk.example/join?code=rsi_1_")
    assert made.err.startswith("restive: send this link to ann only; it works once, until ")
    again = shops("token", "invite", "ann", "--json").data
    assert again["link"].startswith("http://127.0.0.1:8787/join?code=rsi_1_")
    with Desk("desk.db") as desk:
        assert open_session(desk.store, made.out.strip().partition("=")[2]) is None
        assert open_session(desk.store, again["link"].partition("=")[2])
    changed = shops("token", "change", "ann", "--role", "operator", "--json").data["tokens"][0]
    assert (changed["grants"], changed["sessions"]) == ([{"program": None, "role": "operator"}], 1)
    assert "no valid token 'ben'" in shops("token", "invite", "ben").err
    assert "needs a role" in shops("token", "change", "ann").err


def test_revoking_as_data(shops: Call) -> None:
    shops("token", "make", "ann", "--role", "viewer")
    assert shops("token", "revoke", "ann", "--json").data == {"name": "ann", "revoked": True}
    with Desk("desk.db") as desk:
        revoked, made = desk.store.audit_log(None, limit=2)
    assert [(context.verb, context.by) for context in (made, revoked)] == [
        ("token made", "command"),
        ("token revoked", "command"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["make", "ann"], "A token needs a role: --role admin in all programs, or --program coupons=operator."),
        (["make", "ann", "--program", "shops"], "--program shops: write the name of a program and a role"),
        (["make", "ann", "--program", "=viewer"], "--program =viewer: write the name of a program and a role"),
        (["make", "ann", "--program", "shops=boss"], "There is no role 'boss'; the roles are viewer, operator, admin."),
        (["make", "ann", "--program", "shop=viewer"], "no program 'shop'; there are shops"),
        (["make", "ann", "--program", "shops=viewer", "--program", "shops=admin"], "shops already has a role"),
        (["make", "ann", "--role", "admin", "--days", "0"], "days is 0; it must be a whole number from 1 to 3650."),
        (["make", "a/b", "--role", "admin"], "The token's name is 'a/b'"),
        (["revoke", "nobody"], "There is no valid token 'nobody'."),
    ],
)
def test_a_wrong_turn_is_a_sentence(shops: Call, words: list[str], said: str) -> None:
    ended = shops("token", *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("restive: ")
    assert said in ended.err
    assert shops("token", "list").out == "No tokens yet.\n"
