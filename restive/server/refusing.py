"""An answer to a request that goes no further: the one shape of all failures, or a sentence for who reads a page."""

from html import escape
from string import Template

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from restive.server.errors import Failure, Refusal, answer, describe

PAGE = Template(
    '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    '<title>$title</title><h1>$title</h1><p>$detail</p><p>Request <code>$request</code></p><p><a href="/">Start</a></p>'
)


async def refuse(error: Exception, scope: Scope, receive: Receive, send: Send) -> int:
    """Answer with what is wrong; the status that it was answered with."""
    failure = describe(error, HTTPConnection(scope))
    await make_answer(error, failure, scope)(scope, receive, send)
    return failure.status


def make_answer(error: Exception, failure: Failure, scope: Scope) -> Response:
    """The failure as a page where one was asked for, elsewhere as a problem."""
    headers = error.headers if isinstance(error, Refusal) else None
    if wants_page(scope):
        return HTMLResponse(show(failure), failure.status, headers)
    return answer(failure, headers)


def wants_page(scope: Scope) -> bool:
    """Whether a browser asked, for something to be looked at."""
    return "text/html" in Headers(scope=scope).get("accept", "") and not scope["path"].startswith("/api/")


def show(failure: Failure) -> str:
    """A page with nothing but the sentence."""
    said = {"title": failure.title, "detail": failure.detail, "request": failure.request}
    return PAGE.substitute({name: escape(text) for name, text in said.items()})
