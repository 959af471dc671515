"""Users over HTTP: invite, list, change roles, revoke; and what is refused."""

from collections.abc import Callable
from urllib.parse import urlsplit

from restive.api.administration import Invitation, NewToken, User
from restive.api.types import Page
from restive.desk.tokens import find_principal
from server.calling import API, Caller, check

OPERATOR = [{"program": "shops", "role": "operator"}]


def test_the_life_of_a_user(principals: Callable[..., Caller]) -> None:
    admin = principals("admin")
    made = admin.post(f"{API}/users", {"name": "ann", "grants": OPERATOR}, Invitation, 201)
    address = urlsplit(made["link"])
    assert (address.scheme, address.netloc, address.path) == ("http", "127.0.0.1:8787", "/join")
    assert (made["user"]["grants"], made["user"]["has_secret"], made["expires"]) == (
        OPERATOR, False, made["user"]["invitation"],
    )  # fmt: skip
    listed = admin.get(f"{API}/users", Page[User])["items"]
    assert [user["name"] for user in listed] == ["principal0", "ann"]
    again = check(admin.call("POST", f"{API}/users/ann/invitation"), Invitation, 200)
    assert again["link"] != made["link"]
    grants = [{"program": None, "role": "viewer"}]
    assert check(admin.call("PUT", f"{API}/users/ann/grants", json={"grants": grants}), User, 200)["grants"] == grants
    over = check(admin.call("DELETE", f"{API}/users/ann"), User, 200)
    assert (over["revoked"] is not None, over["invitation"]) == (True, None)
    assert [user["name"] for user in admin.get(f"{API}/users", Page[User])["items"]] == ["principal0"]
    verbs = [row.verb for row in admin.desk.store.audit_log(None, limit=4)]
    assert verbs == ["token revoked", "roles changed", "invited", "invited"]
    assert {row.by for row in admin.desk.store.audit_log(None, limit=4)} == {"principal0 (token 1)"}


def test_a_token_for_a_system(principals: Callable[..., Caller]) -> None:
    admin = principals("admin")
    made = admin.post(f"{API}/tokens", {"name": "platform", "grants": OPERATOR, "days": 30}, NewToken, 201)
    assert (made["user"]["has_secret"], made["user"]["grants"]) == (True, OPERATOR)
    found = find_principal(admin.desk.store, made["token"])
    assert found is not None
    assert found.name == "platform"
    assert made["token"] not in str(admin.desk.store.audit_log(None))
    check(admin.call("DELETE", f"{API}/users/platform"), User, 200)
    assert find_principal(admin.desk.store, made["token"]) is None


def test_what_is_refused(principals: Callable[..., Caller]) -> None:
    admin = principals("admin")
    admin.post(f"{API}/users", {"name": "ann", "grants": OPERATOR}, Invitation, 201)
    before = len(admin.desk.store.audit_log(None))
    assert "already" in admin.refused("POST", f"{API}/users", 409, json={"name": "ann", "grants": OPERATOR})["detail"]
    for grants in ([], OPERATOR * 2, [{"program": "shop", "role": "viewer"}], [{"program": None, "role": "boss"}]):
        admin.refused("POST", f"{API}/users", 422, json={"name": "ben", "grants": grants})
    admin.refused("POST", f"{API}/users", 422, json={"name": "local", "grants": OPERATOR})
    admin.refused("POST", f"{API}/users/ann/invitation", 422, content=b"{}")
    admin.refused("POST", f"{API}/users/ben/invitation", 404)
    admin.refused("PUT", f"{API}/users/ben/grants", 404, json={"grants": OPERATOR})
    assert "your own" in admin.refused("DELETE", f"{API}/users/principal0", 409)["detail"]
    admin.refused("PUT", f"{API}/users/principal0/grants", 409, json={"grants": OPERATOR})
    assert len(admin.desk.store.audit_log(None)) == before


def test_the_first_user_of_an_open_server_is_an_admin(caller: Caller) -> None:
    refused = caller.refused("POST", f"{API}/users", 422, json={"name": "ann", "grants": OPERATOR})
    assert refused["detail"].startswith("The first user must be an admin of all programs")
    caller.post(f"{API}/users", {"name": "ann", "grants": [{"program": None, "role": "admin"}]}, Invitation, 201)
    caller.refused("GET", f"{API}/users", 401)
