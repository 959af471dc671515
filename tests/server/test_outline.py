import json
import re
import shlex

from restive.server.errors import PROBLEMS
from restive.server.openapi import operations
from restive.server.outline import make_outline, say_kind
from server.calling import Caller


def say(schema: dict[str, object]) -> str:
    return "".join(part["text"] for part in say_kind(schema))


def test_kinds_are_said_in_words() -> None:
    assert say({"type": "array", "items": {"type": "string", "maxLength": 5}}) == "list of text of at most 5 characters"
    assert say({"type": "object", "additionalProperties": {"type": "number"}}) == "object of number"
    assert say({"enum": ["a", 1]}) == '"a" or 1'
    assert say({"$ref": "#/components/schemas/Config"}) == "Config"
    assert say({"type": "integer", "minimum": 0, "maximum": 9}) == "whole number from 0 to 9"


def test_the_page_shows_every_route_with_its_call_and_needs_no_script(caller: Caller) -> None:
    page = caller.call("GET", "/api", headers={"Accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    for path, method, operation in operations(caller.app.openapi()):
        assert f'id="{operation["operationId"]}"' in page.text
        assert f'<span class="method">{method.upper()}</span> <code>{path}</code>' in page.text
    body = page.text.partition("<main")[2]
    assert "<script" not in body
    assert "style=" not in page.text
    assert not re.findall(r'(?:src|href)="https?:', page.text)


def test_every_link_of_the_page_leads_to_a_place_on_it(caller: Caller) -> None:
    page = caller.call("GET", "/api", headers={"Accept": "text/html"}).text
    places = re.findall(r'\bid="([^"]+)"', page)
    assert len(set(places)) == len(places)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(places)
    assert set(PROBLEMS) <= set(places)


def test_calls_can_be_made_as_they_stand(caller: Caller) -> None:
    caller.desk.program("shops").decide({"ann": "low", "ben": "high"})
    outline = make_outline(caller.app.openapi(), "http://127.0.0.1:8787")
    calls = [(route, call) for section in outline["sections"] for route in section["routes"] for call in route["curl"]]
    assert len(calls) > len(list(operations(caller.app.openapi())))
    for route, call in calls:
        words = shlex.split(call)
        assert words[0] == "curl"
        if "@table.csv" in words or route["id"] == "create":
            continue
        headers = dict(words[n + 1].split(": ") for n, word in enumerate(words) if word == "-H")
        headers.pop("Authorization", None)
        content = words[words.index("-d") + 1] if "-d" in words else None
        answer = caller.call(route["method"], words[-1], headers=headers, content=content)
        assert answer.status_code in (200, 201, 409, 404), (call, answer.text)
        if content is not None:
            json.loads(content)
