"""People who can sign in: invite somebody by a link and its QR code, change roles, revoke. For admins of all programs.

A link is shown in the answer to the form that made it, never in an address, and is not stored.
"""

from collections.abc import Mapping

from fastapi import Request, Response
from markupsafe import Markup
from starlette.exceptions import HTTPException

from restive.desk.audit import RequestContext
from restive.desk.store import Store
from restive.desk.tokens import (
    Invitation,
    change_grants,
    find_token,
    invite,
    invite_again,
    list_tokens,
    revoke_token,
)
from restive.errors import InputError
from restive.server.addresses import link
from restive.server.auth import check_invited, check_other, invitation_link
from restive.server.errors import describe
from restive.server.views.base import Data, page, render_in_thread, router
from restive.server.views.forms import Admin, Form, redirect, take_form

NO_ROLE = "none"


@page("/users", "users.html", role="admin")
async def show_users(request: Request) -> Data:
    """Everybody who can sign in or send a token."""
    data: Data = await request.app.state.programs.run(build_users, request.app.state.desk.store)
    return data


@page("/users/{user}", "user.html", role="admin")
async def show_user(request: Request, user: str) -> Data:
    """One of them."""
    data: Data = await request.app.state.programs.run(build_user, request.app.state.desk.store, user)
    return data


def build_users(store: Store) -> Data:
    """All users, and the programs in which they can have a role."""
    found = [each.as_json() for each in list_tokens(store, valid=True)]
    return {"users": found, "programs": [row.name for row in store.programs()]}


def build_user(store: Store, name: str) -> Data:
    """One user, and the programs."""
    return {"user": find_token(store, name).as_json(), "programs": [row.name for row in store.programs()]}


@router.post("/users")
async def take_invitation(request: Request, principal: Admin) -> Response:
    """Invite somebody, and show the link."""
    async with take_form(request) as form:
        programs, store = request.app.state.programs, request.app.state.desk.store
        grants = {form.text("program") or None: form.text("role")}
        context = RequestContext(principal.signature)
        try:
            check_invited(principal, grants)
            made = await programs.record(invite, store, form.text("name"), grants, None, context)
        except InputError as error:
            failure = describe(error, request)
            more = {"refused": failure["detail"], "typed": form.fields}
            return await render_in_thread(request, "users.html", await show_users(request), failure["status"], **more)
        invited = show_invitation(request, made)
        return await render_in_thread(request, "users.html", await show_users(request), invited=invited)


@router.post("/users/{user}")
async def take_step(request: Request, user: str, principal: Admin) -> Response:
    """Make a new link, change a role, or revoke."""
    async with take_form(request) as form:
        programs, store = request.app.state.programs, request.app.state.desk.store
        context, step = RequestContext(principal.signature), form.text("step")
        if step not in ("link", "role", "revoke"):
            raise HTTPException(400, "The form has no step. Reload the page.")
        found = await show_user(request, user)
        try:
            if step == "link":
                invited = show_invitation(request, await programs.record(invite_again, store, user, context))
                return await render_in_thread(request, "user.html", await show_user(request, user), invited=invited)
            check_other(principal, user)
            if step == "role":
                await programs.record(change_grants, store, user, merge_role(found["user"], form), context)
                return redirect(request, link("users", user), "The role is changed.")
            if form.text("again") != user:
                raise InputError("The name is not the one of this user, so nothing was revoked.")
            await programs.record(revoke_token, store, user, context)
            return redirect(request, link("users"), f"{user} can no longer sign in.")
        except InputError as error:
            failure = describe(error, request)
            more = {"refused": failure["detail"], "typed": form.fields}
            return await render_in_thread(request, "user.html", found, failure["status"], **more)


def merge_role(user: Mapping[str, list[dict[str, str | None]]], form: Form) -> dict[str | None, str]:
    """The roles of a user with the one of a form in place of that of the same program."""
    program, role = form.text("program") or None, form.text("role")
    grants = {grant["program"]: str(grant["role"]) for grant in user["grants"]} | {program: role}
    if role == NO_ROLE:
        del grants[program]
        if not grants:
            raise InputError("This is the last role. Revoke the user instead.")
    return grants


def show_invitation(request: Request, made: Invitation) -> Data:
    """The link of an invitation and its QR code, black on white in dark mode too, because scanners expect that."""
    import segno

    address = invitation_link(request, made.code)
    code = segno.make(address, error="m", micro=False)
    svg = Markup(code.svg_inline(scale=4, dark="#000", light="#fff", title=f"QR code of the link for {made.name}"))
    return {"name": made.name, "link": address, "expires": made.expires, "svg": svg}
