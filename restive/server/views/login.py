"""Signing in with a token, and signing out."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from restive.server.auth import find_signed_in, local_path, sign_in, sign_out
from restive.server.views.base import PageRoute, render
from restive.server.views.forms import take_form

WRONG_TOKEN = "This token is not valid. It may be mistyped, expired or revoked. Ask the person who gave it to you."

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/login")
async def show_form(request: Request, next: str = "/") -> Response:
    """The form; a user who is signed in already is redirected."""
    if await find_signed_in(request) is not None:
        return RedirectResponse(local_path(next), 303)
    return render(request, "login.html", {"next": local_path(next)})


@router.post("/login")
async def take_token(request: Request) -> Response:
    """Sign in, and redirect to the page that was asked for."""
    async with take_form(request) as form:
        target = local_path(form.text("next"))
        response = RedirectResponse(target, 303)
        if await sign_in(request, response, form.text("token")):
            return response
        return render(request, "login.html", {"next": target}, 401, refused=WRONG_TOKEN)


@router.post("/logout")
async def log_out(request: Request) -> Response:
    """Sign out."""
    response = RedirectResponse("/login", 303)
    await sign_out(request, response)
    return response
