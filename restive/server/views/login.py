"""Signing in with a token and out again; on a server that is open to its own machine nobody needs to."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from restive.server.auth import find_signed_in, local_path, sign_in, sign_out
from restive.server.views.base import PageRoute, render
from restive.server.views.forms import take_form

WRONG = "This token is not known here: it may be mistyped, expired or revoked. Ask whoever gave it to you."

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/login")
async def show_form(request: Request, next: str = "/") -> Response:
    """The form; whoever is signed in already goes on."""
    if await find_signed_in(request) is not None:
        return RedirectResponse(local_path(next), 303)
    return render(request, "signing.html", _describe(next))


@router.post("/login")
async def take_token(request: Request) -> Response:
    """Sign in, and go on to where one was on the way to."""
    async with take_form(request) as form:
        answer = RedirectResponse(local_path(form.text("next")), 303)
        if await sign_in(request, answer, form.text("token")):
            return answer
        return render(request, "signing.html", _describe(form.text("next")), 401, refused=WRONG)


@router.post("/logout")
async def leave(request: Request) -> Response:
    """Sign out."""
    async with take_form(request):
        answer = RedirectResponse("/login", 303)
        await sign_out(request, answer)
        return answer


def _describe(wanted: str) -> dict[str, Any]:
    return {"next": local_path(wanted)}
