import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import httpx
import pytest

from restive.errors import InputError
from restive.server.views import base
from restive.server.views.forms import (
    MAX_FIELDS,
    MAX_FILE_NAME,
    MAX_TEXT_BYTES,
    Form,
    plain_name,
    read_decimal,
    read_whole,
)
from server.views.browsing import Site, open_site

T = TypeVar("T")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("../../etc/passwd.csv", "passwd.csv"),
        ("C:\\Users\\Ann\\states.xlsx", "states.xlsx"),
        ("a\x00b\r\n.csv", "ab.csv"),
        ("\u202egnp.csv", "gnp.csv"),
        ("", ""),
    ],
)
def test_a_file_is_called_by_its_last_name_alone(given: str, shown: str) -> None:
    assert plain_name(given) == shown


def test_a_long_name_is_cut_in_the_middle_and_keeps_its_ending() -> None:
    shown = plain_name("x" * 300 + ".parquet")
    assert len(shown) == MAX_FILE_NAME
    assert shown.endswith(".parquet")


def test_numbers_are_read_and_everything_else_is_left_to_the_desk() -> None:
    assert [read_whole(text) for text in ("7", "-7", "٧", "7.0", "9" * 400, "")] == [7, -7, "٧", "7.0", "9" * 400, ""]
    assert [read_decimal(text) for text in ("2,5", "2.5", "x", "1" * 400)] == [2.5, 2.5, "x", "1" * 400]


def test_a_number_is_refused_by_the_name_of_its_field() -> None:
    assert Form({"budget": " 12 "}).whole("budget", 0) == 12
    assert Form({}).whole("budget", 0) is None
    with pytest.raises(InputError, match=r"cool down is 'x'; it must be a whole number from 0 on"):
        Form({"cool_down": "x"}).whole("cool_down", 0)


def test_lines_are_ids_without_blanks_around_them() -> None:
    assert Form({"must": " ann \r\n\r\nben\n"}).ids("must") == ["ann", "ben"]
    assert Form({"must": " \n"}).ids("must") is None


def test_a_digest_depends_on_every_field_and_on_the_session() -> None:
    digests = {
        Form({"a": "1", "b": "2"}, key="s").digest(["a", "b"]),
        Form({"a": "12", "b": ""}, key="s").digest(["a", "b"]),
        Form({"a": "1", "b": "2"}, key="t").digest(["a", "b"]),
        Form({"a": "1", "b": "2"}, key="s").digest(["a"]),
    }
    assert len(digests) == 4
    assert Form({"a": "1", "key": "y"}).digest_all() == Form({"a": "1"}).digest_all()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with open_site(tmp_path_factory.mktemp("forms")) as opened:
        yield opened


def send(site: Site, parts: bytes, kind: str, path: str = "/login") -> httpx.Response:
    """Send a body as it is, to be read before anybody is let in, or by an operator."""
    browser = site.browser(None if path == "/login" else "operator")
    head = {"Content-Type": kind, "Accept": "text/html"}
    return site.runner.run(browser.client.post(path, content=parts, headers=head))


def part(name: str, value: bytes) -> bytes:
    return b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name.encode(), value)


@pytest.mark.parametrize("charset", ["punycode", '"punycode"', "idna", "utf-7", "latin-1", "zlib", "Punycode; x=y"])
@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_a_form_in_anything_but_utf_8_is_not_decoded(site: Site, charset: str, kind: str) -> None:
    answer = send(site, part("a", b"a-" + b"ab9" * 10) + b"--x--\r\n", f"{kind}; charset={charset}")
    assert answer.status_code == 415
    assert "must be in UTF-8" in answer.text


def test_a_form_may_name_utf_8(site: Site) -> None:
    for charset in ("utf-8", '"UTF-8"', "utf8"):
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        assert send(site, part("a", b"b") + b"--x--", kind).status_code == 401  # read, but there is no token


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"nothing of the kind", "multipart/form-data; boundary=x"),
        (b"--x\r\n\r\n\r\n--x--", "multipart/form-data; boundary=x"),
        (b"--x--", "multipart/form-data"),
        (b"".join(part(f"a{n}", b"") for n in range(MAX_FIELDS + 1)), "multipart/form-data; boundary=x"),
        (b"&".join(b"a=" for _ in range(MAX_FIELDS + 1)), "application/x-www-form-urlencoded"),
    ],
)
def test_a_malformed_form_is_refused(site: Site, body: bytes, kind: str) -> None:
    answer = send(site, body, kind)
    assert (answer.status_code, "could not be read" in answer.text) == (400, True)


def test_all_fields_together_are_bounded_and_a_file_is_not_one_of_them(site: Site) -> None:
    kind, path = "multipart/form-data; boundary=x", "/programs/coupons/states"
    half = b"x" * (MAX_TEXT_BYTES // 2)
    whole = part("must", half) + part("never", half)
    assert send(site, whole + b"--x--", kind, path).status_code == 422  # read, but there is no table
    much = send(site, whole + part("rows", b"x") + b"--x--", kind, path)
    assert (much.status_code, "text is larger than 4 MB" in much.text) == (413, True)
    file = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n%s\r\n' % (half * 3)
    assert send(site, whole + file + b"--x--", kind, path).status_code == 422


def test_large_forms_are_read_and_rendered_in_threads(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    here, seen = threading.get_ident(), set()

    def note(function: Callable[..., T]) -> Callable[..., T]:
        def noted(*args: Any, **kw: Any) -> T:
            seen.add((function.__name__, threading.get_ident() == here))
            return function(*args, **kw)

        return noted

    monkeypatch.setattr(Form, "digest", note(Form.digest))
    monkeypatch.setattr(base, "render", note(base.render))
    browser = site.browser("admin")
    for path, fields in (
        ("/programs/coupons/states", {"known": "1", "must": "zed\n" * 1000}),
        ("/programs/coupons/outcomes", {"rows": "agent,done\nzed,yes"}),
        ("/programs/coupons/settings", {"step": "leave", "agents": "zed\n" * 1000}),
        (
            "/new",
            {"template": "own", "name": "coupons", "state-0": "a", "reward-0": "0", "state-1": "b", "reward-1": "1"},
        ),
    ):
        seen.clear()
        assert browser.post(path, fields).status_code in (404, 409, 422)
        assert seen == {("digest", False), ("render", False)}


def test_shares_are_read_with_or_without_blanks() -> None:
    assert Form({"shares": "north = 0.3\nsouth=0.2\n\na=b= 0.1"}).shares("shares") == {
        "north": 0.3,
        "south": 0.2,
        "a=b": 0.1,
    }
