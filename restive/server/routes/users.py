"""Routes of users: list them, invite by a link, make a token, change roles, revoke.

All need the role admin in all programs.
"""

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Request, Response

from restive.api.administration import Invitation as UserInvitation
from restive.api.administration import NewToken, User
from restive.api.types import Page
from restive.desk.audit import RequestContext
from restive.desk.tokens import (
    MAX_NAME,
    Invitation,
    change_grants,
    find_token,
    invite,
    invite_again,
    list_tokens,
    make_token,
    revoke_token,
)
from restive.server.addresses import at_root
from restive.server.admin_requests import GrantsBody, InviteBody
from restive.server.auth import check_invited, check_other, invitation_link
from restive.server.openapi import json_body
from restive.server.routes.deps import (
    NO_QUERY,
    PREFIX,
    Admin,
    check_empty_body,
    get_programs,
    json_response,
    make_router,
)
from restive.server.uploads import take_settings

router = make_router("users")
UserName = Annotated[str, Path(description="The name of a user.", max_length=MAX_NAME, examples=["ann"])]


@router.get("/users", response_model=Page[User], summary="List users", dependencies=NO_QUERY)
async def list_users(request: Request, principal: Admin) -> Response:
    """Everybody who can sign in or send a token, the oldest first."""
    found = await get_programs(request).run(list_tokens, request.app.state.desk.store, valid=True)
    return json_response({"items": [each.as_json() for each in found], "next": None})


@router.post(
    "/users",
    response_model=UserInvitation,
    status_code=201,
    summary="Invite a user",
    openapi_extra=json_body(InviteBody),
    dependencies=NO_QUERY,
)
async def invite_user(request: Request, principal: Admin) -> Response:
    """Add a person; the link in the answer signs one browser in, once, and is not shown again."""
    body = (await take_settings(request, InviteBody)).settings
    grants, context = body.as_mapping(), RequestContext(principal.signature)
    check_invited(principal, grants)
    store = request.app.state.desk.store
    made = await get_programs(request).record(invite, store, body.name, grants, body.days, context)
    return await _describe(request, made, 201)


@router.post(
    "/tokens",
    response_model=NewToken,
    status_code=201,
    summary="Make a token",
    openapi_extra=json_body(InviteBody),
    dependencies=NO_QUERY,
)
async def make_new_token(request: Request, principal: Admin) -> Response:
    """Add a system; the token in the answer is not shown again. It is listed, changed and revoked as a user."""
    body = (await take_settings(request, InviteBody)).settings
    grants, context = body.as_mapping(), RequestContext(principal.signature)
    check_invited(principal, grants)
    programs, store = get_programs(request), request.app.state.desk.store
    secret = await programs.record(make_token, store, body.name, grants, body.days, context)
    user = await programs.run(find_token, store, body.name)
    headers = {"Location": at_root(f"{PREFIX}/users/{quote(body.name)}")}
    return json_response({"user": user.as_json(), "token": secret}, 201, headers)


@router.post(
    "/users/{user}/invitation", response_model=UserInvitation, summary="Make a new link", dependencies=NO_QUERY
)
async def renew_invitation(user: UserName, request: Request, principal: Admin) -> Response:
    """A new link for another device, or after the last one was lost; the last one is void."""
    await check_empty_body(request)
    store, context = request.app.state.desk.store, RequestContext(principal.signature)
    return await _describe(request, await get_programs(request).record(invite_again, store, user, context))


@router.put(
    "/users/{user}/grants",
    response_model=User,
    summary="Change the roles of a user",
    openapi_extra=json_body(GrantsBody),
    dependencies=NO_QUERY,
)
async def change_user(user: UserName, request: Request, principal: Admin) -> Response:
    """Replace all roles of a user, from the next request on; not your own."""
    grants = (await take_settings(request, GrantsBody)).settings.as_mapping()
    check_other(principal, user)
    programs, store = get_programs(request), request.app.state.desk.store
    await programs.record(change_grants, store, user, grants, RequestContext(principal.signature))
    return json_response((await programs.run(find_token, store, user)).as_json())


@router.delete("/users/{user}", response_model=User, summary="Revoke a user", dependencies=NO_QUERY)
async def revoke_user(user: UserName, request: Request, principal: Admin) -> Response:
    """End all access of a user at once: token, link and browsers that are signed in; not your own."""
    check_other(principal, user)
    programs, store = get_programs(request), request.app.state.desk.store
    found = await programs.run(find_token, store, user)
    await programs.record(revoke_token, store, user, RequestContext(principal.signature))
    over = {"revoked": store.now(), "invitation": None, "sessions": 0}
    return json_response(found.as_json() | over)


async def _describe(request: Request, made: Invitation, status: int = 200) -> Response:
    """An invitation with its link; a new user has an address."""
    user = await get_programs(request).run(find_token, request.app.state.desk.store, made.name)
    link = invitation_link(request, made.code)
    content = {"user": user.as_json(), "link": link, "expires": made.expires}
    headers = {"Location": at_root(f"{PREFIX}/users/{quote(made.name)}")} if status == 201 else None
    return json_response(content, status, headers)
