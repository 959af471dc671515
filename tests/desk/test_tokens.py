"""Tokens and sessions on both databases: who is let in, as what, for how long, and that no secret is kept."""

import re
import sqlite3
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from restive.desk import Desk
from restive.desk.audit import RequestContext
from restive.desk.database import invitations, sessions, tokens
from restive.desk.store import Store
from restive.desk.tokens import (
    LOCAL,
    MAX_SESSIONS,
    Grant,
    Principal,
    change_grants,
    close_session,
    find_principal,
    find_session,
    find_token,
    has_tokens,
    invite,
    invite_again,
    list_tokens,
    make_token,
    open_session,
    revoke_token,
)
from restive.errors import Conflict, InputError, NotFound

START = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


class Clock:
    """A clock that goes when it is reported to."""

    def __init__(self) -> None:
        self.time = START

    def __call__(self) -> datetime:
        return self.time

    def go(self, **later: float) -> None:
        self.time += timedelta(**later)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(address: str, clock: Clock) -> Iterator[Store]:
    """A store with two programs, under a clock."""
    with Desk(address, clock=clock) as desk:
        for name in ("coupons", "visits"):
            desk.create(name, states=["low", "high"], rewards=[0, 1], budget=1)
        yield desk.store


def test_a_role_may_what_those_before_it_may() -> None:
    ann = Principal(1, "ann", {"coupons": "operator", "visits": "viewer"})
    assert [ann.may(role, "coupons") for role in ("viewer", "operator", "admin")] == [True, True, False]
    assert [ann.may(role, "visits") for role in ("viewer", "operator", "admin")] == [True, False, False]
    assert (ann.sees("coupons"), ann.sees("calls"), ann.role("calls"), ann.role(None)) == (True, False, None, None)
    assert not ann.may("viewer", None)
    assert LOCAL.may("admin", None)
    assert LOCAL.may("admin", "calls")


def test_the_higher_of_two_roles_holds() -> None:
    both = Principal(1, "both", {None: "viewer", "coupons": "admin", "visits": "viewer"})
    assert [both.role(place) for place in ("coupons", "visits", "calls", None)] == ["admin", *["viewer"] * 3]
    assert Principal(1, "other", {None: "operator", "coupons": "viewer"}).role("coupons") == "operator"


def test_a_secret_leads_to_its_principal(opened: Store) -> None:
    assert not has_tokens(opened)
    secret = make_token(opened, "ann", {"coupons": "operator", "visits": "viewer"})
    boss = make_token(opened, "boss", {None: "admin"})
    assert re.fullmatch(r"rst_1_[A-Za-z0-9_-]{43}", secret)
    assert find_principal(opened, secret) == Principal(1, "ann", {"coupons": "operator", "visits": "viewer"})
    assert find_principal(opened, boss) == Principal(2, "boss", {None: "admin"})
    assert has_tokens(opened)


@pytest.mark.parametrize("wrong", ["", "rst", "rst_1_", "Bearer x", "rst_²_" + "A" * 43, "\ud800", "rst_1_" + "A" * 43])
def test_a_wrong_secret_leads_to_nobody(opened: Store, wrong: str) -> None:
    make_token(opened, "ann", {None: "viewer"})
    assert find_principal(opened, wrong) is None
    assert open_session(opened, wrong) is None
    assert find_session(opened, wrong) is None


def test_a_secret_under_another_number_leads_to_nobody(opened: Store) -> None:
    secret, other = (make_token(opened, name, {None: "viewer"}) for name in ("ann", "ben"))
    mixed = other[:6] + secret[6:]
    wrong = [mixed, secret.replace("rst_1", "rst_01"), secret.replace("rst_1", "rst_3"), secret[:-1], secret + "\n"]
    assert [find_principal(opened, each) for each in wrong] == [None] * 5


def test_an_expired_token_is_none(opened: Store, clock: Clock) -> None:
    secret = make_token(opened, "ann", {None: "viewer"}, days=2)
    cookie = open_session(opened, secret, days=4.2)
    assert cookie
    clock.go(days=2, microseconds=-1)
    assert find_principal(opened, secret)
    assert find_session(opened, cookie)
    clock.go(microseconds=1)
    assert find_principal(opened, secret) is None
    assert find_session(opened, cookie) is None
    assert open_session(opened, secret) is None
    assert has_tokens(opened)


def test_a_revoked_token_is_none_and_its_sessions_end(opened: Store) -> None:
    secret, other = make_token(opened, "ann", {None: "viewer"}), make_token(opened, "ben", {None: "viewer"})
    cookie, others = open_session(opened, secret), open_session(opened, other)
    assert cookie
    assert others
    revoke_token(opened, "ann")
    assert find_principal(opened, secret) is None
    assert find_session(opened, cookie) is None
    assert find_session(opened, others) == find_principal(opened, other) != None  # noqa: E711
    assert len(opened.execute(sa.select(sessions))) == 1
    with pytest.raises(NotFound, match="no valid token 'ann'"):
        revoke_token(opened, "ann")


def test_a_session_lasts_for_its_days(opened: Store, clock: Clock) -> None:
    secret = make_token(opened, "ann", {"visits": "admin"})
    cookie = open_session(opened, secret, days=0.5)
    assert cookie
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", cookie)
    clock.go(hours=12, seconds=-1)
    assert find_session(opened, cookie) == Principal(1, "ann", {"visits": "admin"})
    clock.go(seconds=1)
    assert find_session(opened, cookie) is None
    assert open_session(opened, secret)  # which sweeps out what is over
    assert len(opened.execute(sa.select(sessions))) == 1


def test_signing_out_ends_one_session(opened: Store) -> None:
    secret = make_token(opened, "ann", {None: "viewer"})
    one, other = open_session(opened, secret), open_session(opened, secret)
    assert one
    assert other
    close_session(opened, one)
    close_session(opened, "nobody's")
    assert find_session(opened, one) is None
    assert find_session(opened, other)


def test_of_too_many_sessions_the_oldest_end(opened: Store, clock: Clock) -> None:
    secret, bens = make_token(opened, "ann", {None: "viewer"}), make_token(opened, "ben", {None: "viewer"})
    ben = open_session(opened, bens)
    assert ben
    cookies = []
    for _ in range(MAX_SESSIONS + 2):
        clock.go(seconds=1)
        cookies.append(open_session(opened, secret) or "")
    there = [find_session(opened, cookie) is not None for cookie in cookies]
    assert there == [False] * 2 + [True] * MAX_SESSIONS
    assert find_session(opened, ben)


def test_a_name_is_free_again_once_its_token_is_over(opened: Store, clock: Clock) -> None:
    make_token(opened, "ann", {None: "viewer"}, days=1)
    with pytest.raises(Conflict, match="There is already a token 'ann'"):
        make_token(opened, "ann", {None: "admin"})
    clock.go(days=1)
    make_token(opened, "ann", {None: "operator"})
    revoke_token(opened, "ann")
    secret = make_token(opened, "ann", {None: "admin"})
    assert find_principal(opened, secret) == Principal(3, "ann", {None: "admin"})
    assert [(each.id, each.revoked is None) for each in list_tokens(opened)] == [(1, True), (2, False), (3, True)]


def test_the_list_tells_all_but_the_secret(opened: Store, clock: Clock) -> None:
    secret = make_token(opened, "ann", {"visits": "viewer", "coupons": "operator"}, days=90)
    clock.go(hours=1)
    revoke_token(opened, "ann")
    (ann,) = list_tokens(opened)
    assert (ann.id, ann.name, ann.made) == (1, "ann", "2026-03-02T08:00:00.000000+00:00")
    assert ann.grants == (Grant("coupons", "operator"), Grant("visits", "viewer"))
    assert (ann.expires, ann.revoked) == ("2026-05-31T08:00:00.000000+00:00", "2026-03-02T09:00:00.000000+00:00")
    assert ann.as_json()["grants"][0] == {"program": "coupons", "role": "operator"}
    assert secret[6:] not in str(ann)


def test_making_and_revoking_are_audit_log(opened: Store) -> None:
    secret = make_token(opened, "ann", {"coupons": "operator"}, context=RequestContext(by="boss"))
    revoke_token(opened, "ann", RequestContext(by="command"))
    revoked, made = opened.audit_log(None, limit=2)
    granted = {"token": "ann", "id": 1, "grants": [{"program": "coupons", "role": "operator"}], "expires": None}
    assert (made.verb, made.by, made.program, made.answer) == ("token made", "boss", None, granted)
    assert (revoked.verb, revoked.by, revoked.answer) == ("token revoked", "command", {"token": "ann", "id": 1})
    assert secret not in str((made, revoked))


@pytest.mark.parametrize(
    ("name", "grants", "days", "said"),
    [
        ("", {None: "admin"}, None, "The token's name is ''"),
        ("a b", {None: "admin"}, None, "The token's name is 'a b'"),
        ("local", {None: "admin"}, None, "is reserved"),
        ("ann", {}, None, "A token needs a role"),
        ("ann", {None: "boss"}, None, "no role 'boss'; the roles are viewer, operator, admin"),
        ("ann", {"coupon": "viewer"}, None, "no program 'coupon'"),
        ("ann", {None: "viewer"}, 0, "days is 0; it must be a whole number from 1 to 3650"),
    ],
)
def test_what_cannot_be_a_token_is_refused(
    opened: Store, name: str, grants: dict[str | None, str], days: int | None, said: str
) -> None:
    before = len(opened.audit_log(None))
    with pytest.raises(InputError, match=said):
        make_token(opened, name, grants, days)
    assert list_tokens(opened) == []
    assert len(opened.audit_log(None)) == before


def test_of_many_at_once_one_gets_the_name(opened: Store) -> None:
    barrier, ends = threading.Barrier(6), list[str]()

    def make() -> None:
        barrier.wait()
        try:
            ends.append(make_token(opened, "ann", {None: "viewer"}))
        except Conflict as error:
            ends.append(str(error))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(end.startswith("rst_") for end in ends) == [False] * 5 + [True]
    assert len(list_tokens(opened)) == 1


def test_no_secret_is_in_the_store(opened: Store) -> None:
    secret = make_token(opened, "ann", {None: "viewer"})
    cookie = open_session(opened, secret)
    rows = str([*opened.execute(sa.select(tokens)), *opened.execute(sa.select(sessions)), *opened.audit_log(None)])
    assert len(re.findall(r"\b[0-9a-f]{64}\b", rows)) == 2
    assert secret[6:] not in rows
    assert str(cookie) not in rows


def test_no_secret_is_in_the_file(tmp_path: Path) -> None:
    with Desk(tmp_path / "store.db") as desk:
        secret = make_token(desk.store, "ann", {None: "viewer"})
        cookie = open_session(desk.store, secret)
    assert cookie
    for file in tmp_path.iterdir():
        assert secret[6:].encode() not in file.read_bytes()
        assert cookie.encode() not in file.read_bytes()


def test_a_token_that_names_nobody_is_laid_to_whoever_opened_the_store(store: Store) -> None:
    make_token(store, "ann", {None: "admin"})
    store.by = "command"
    revoke_token(store, "ann")
    assert [(context.by, context.verb) for context in store.audit_log(None)] == [
        ("command", "token revoked"),
        ("library", "token made"),
    ]


def test_a_grant_of_a_program_that_is_gone_is_no_grant_of_all(tmp_path: Path) -> None:
    with Desk(tmp_path / "a.db") as desk:
        desk.create("one", states=["low", "high"])
        secret = make_token(desk.store, "ann", {"one": "admin"})
    connection = sqlite3.connect(tmp_path / "a.db")  # which does not look after foreign keys unless reported to
    with connection:
        connection.execute("DELETE FROM programs")
    connection.close()
    with Store.open(tmp_path / "a.db") as store:
        assert find_principal(store, secret) is None


def test_an_invitation_signs_in_once(opened: Store) -> None:
    made = invite(opened, "ann", {"coupons": "operator"}, context=RequestContext(by="boss"))
    assert (made.name, made.expires[:10]) == ("ann", "2026-03-09")
    assert (find_token(opened, "ann").has_secret, find_token(opened, "ann").invitation) == (False, made.expires)
    assert find_principal(opened, made.code) is None  # it is no token
    cookie = open_session(opened, made.code)
    assert find_session(opened, cookie or "") == Principal(1, "ann", {"coupons": "operator"})
    assert open_session(opened, made.code) is None
    found = find_token(opened, "ann")
    assert (found.invitation, found.sessions) == (None, 1)
    said = [(row.by, row.verb, row.answer["token"]) for row in opened.audit_log(None, limit=2)]
    assert said == [("ann (token 1)", "joined", "ann"), ("boss", "invited", "ann")]


def test_an_invitation_ends_when_it_expires_is_replaced_or_revoked(opened: Store, clock: Clock) -> None:
    first = invite(opened, "ann", {None: "viewer"})
    second = invite_again(opened, "ann")
    assert open_session(opened, first.code) is None
    clock.go(days=7)
    assert open_session(opened, second.code) is None
    assert find_token(opened, "ann").invitation is None
    third = invite_again(opened, "ann")
    revoke_token(opened, "ann")
    assert open_session(opened, third.code) is None
    assert open_session(opened, f"rsi_1_{'a' * 43}") is None
    with pytest.raises(NotFound, match="no valid token 'ann'"):
        invite_again(opened, "ann")


def test_of_many_browsers_one_uses_the_invitation(opened: Store) -> None:
    made, barrier = invite(opened, "ann", {None: "viewer"}), threading.Barrier(6)
    cookies: list[str | None] = []

    def join() -> None:
        barrier.wait()
        cookies.append(open_session(opened, made.code))

    threads = [threading.Thread(target=join) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(cookie is not None for cookie in cookies) == [False] * 5 + [True]
    assert [row.verb for row in opened.audit_log(None, limit=2)] == ["joined", "invited"]


def test_roles_change_for_browsers_that_are_signed_in(opened: Store) -> None:
    cookie = open_session(opened, invite(opened, "ann", {"coupons": "admin"}).code) or ""
    change_grants(opened, "ann", {None: "viewer", "visits": "operator"}, context=RequestContext(by="boss"))
    assert find_session(opened, cookie) == Principal(1, "ann", {None: "viewer", "visits": "operator"})
    entry = opened.audit_log(None, limit=1)[0]
    assert (entry.by, entry.verb, entry.answer["grants"][0]) == (
        "boss", "roles changed", {"program": None, "role": "viewer"},
    )  # fmt: skip
    wrong: list[dict[str | None, str]] = [{}, {"coupon": "viewer"}, {None: "boss"}]
    for grants in wrong:
        with pytest.raises(InputError):
            change_grants(opened, "ann", grants)
    assert find_session(opened, cookie) == Principal(1, "ann", {None: "viewer", "visits": "operator"})


def test_no_code_of_an_invitation_is_in_the_store(opened: Store) -> None:
    code = invite(opened, "ann", {None: "viewer"}).code
    rows = str([*opened.execute(sa.select(tokens)), *opened.execute(sa.select(invitations)), *opened.audit_log(None)])
    assert code[6:] not in rows
