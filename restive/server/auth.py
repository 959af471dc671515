"""Authentication: bearer tokens for the API, session cookies for the pages, and the local admin of an open server.

An open server needs no token as long as its store has none; the first token, made by any process, closes it at once. A
program that a principal cannot see is answered exactly like one that does not exist. Session cookies are SameSite=Lax;
posts from other sites are rejected by the middleware.

`request.state.principal` is the authenticated principal.
"""

import asyncio
import hashlib
import hmac
import math
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Annotated, Concatenate, ParamSpec, TypeVar

from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException
from starlette.responses import Response

from restive.desk.store import Store, StoreError
from restive.desk.tokens import (
    INVITATION,
    LOCAL,
    MAX_NAME,
    Principal,
    close_session,
    find_invited,
    find_named,
    find_principal,
    find_session,
    has_tokens,
    open_session,
)
from restive.errors import Conflict, InputError, NotFound
from restive.server.addresses import cookie_path, link
from restive.server.limits import (
    CHALLENGE,
    MAX_SECRET_CHARACTERS,
    RateLimits,
    client_address,
    find_cookie,
    name_identity,
)
from restive.server.settings import Settings

DAY_SECONDS = 86_400
MAX_LOOKUPS, MAX_SESSION_WRITES = 8, 2  # concurrent
LOOKUPS = ThreadPoolExecutor(
    MAX_LOOKUPS, "lookup"
)  # they must not wait behind decisions in the threads of the program pool
SESSION_WRITES = ThreadPoolExecutor(
    MAX_SESSION_WRITES, "session"
)  # lookups must not wait until the store can be written to
BEARER = HTTPBearer(
    scheme_name="token", description="A token from the administrator of the server: rst_…", auto_error=False
)

P = ParamSpec("P")
T = TypeVar("T")
Dependency = Callable[..., Awaitable[Principal]]


def need_token(role: str) -> Dependency:
    """Dependency of API routes: the principal of the bearer token, if it has the role in the program of the path."""

    async def principal(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None
    ) -> Principal:
        found = await find_bearer(request) or await find_identity(request) or await find_local(request)
        if found is None:
            raise _unauthorized(request)
        return admit(request, found, role)

    return principal


def need_session(role: str) -> Dependency:
    """Dependency of pages: the signed-in principal; JSON endpoints of pages accept a bearer token as well."""

    async def principal(request: Request) -> Principal:
        found = await find_signed_in(request)
        if found is None and request.url.path.endswith(".json"):
            found = await find_bearer(request)
            if found is None:
                raise _unauthorized(request)
        if found is None:
            raise redirect_to_sign_in(request)
        return admit(request, found, role)

    return principal


async def find_bearer(request: Request) -> Principal | None:
    """The principal of the bearer token, None without a valid one."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not 0 < len(secret) <= MAX_SECRET_CHARACTERS:
        return None
    return _note(request, secret, await _look_up(find_principal, _store(request), secret))


async def find_signed_in(request: Request) -> Principal | None:
    """The principal that the proxy names, or that of the session cookie, or the local admin of an open server."""
    if (identity := await find_identity(request)) is not None:
        return identity
    cookie = _cookie(request)
    found = _note(request, cookie, await _look_up(find_session, _store(request), cookie)) if cookie else None
    return found or await find_local(request)


async def find_identity(request: Request) -> Principal | None:
    """The principal that a trusted proxy names, None if it names nobody; an unknown name is refused.

    The middleware removes the header from requests of anybody else. It does not count beside an Authorization header:
    such requests are not checked for other sites, and a browser sends one for an address with a password.
    """
    header = request.app.state.settings.identity_header
    name = request.headers.get(header, "") if header else ""
    if not name or "authorization" in request.headers:
        return None
    found = None
    if len(name) <= MAX_NAME:
        found = _note(request, name_identity(name), await _look_up(find_named, _store(request), name))
    if found is None:
        raise HTTPException(403, "The proxy signs you in with a name that has no access here; ask an admin.")
    return found


async def find_local(request: Request) -> Principal | None:
    """The local admin, if the server is open and no token exists; never for requests with an Authorization header."""
    if not request.app.state.settings.open or "authorization" in request.headers:
        return None
    return None if await _look_up(has_tokens, _store(request)) else LOCAL


def admit(request: Request, principal: Principal, role: str) -> Principal:
    """The principal, if it has the role in the program of the path, or in the store if the path has no program."""
    program = request.path_params.get("name")
    request.state.principal = principal
    if program is not None and not principal.sees(program):
        raise NotFound(f"There is no program {program!r}.")  # the same message as in `Programs`
    if not _has_role(principal, role, program):
        where = "all programs" if program is None else program
        raise HTTPException(403, f"{principal.name} is not allowed to do this; it needs the role {role} for {where}.")
    return principal


def _has_role(principal: Principal, role: str, program: str | None) -> bool:
    """Whether the principal has the role; without a program, any role anywhere is enough for `viewer`."""
    return principal.may(role, program) or (program is None and role == "viewer" and bool(principal.grants))


def redirect_to_sign_in(request: Request) -> HTTPException:
    """Redirect to the sign-in page, which redirects back; requests of htmx redirect the whole page."""
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    address = link("login", next=local_path(target))
    if "hx-request" in request.headers:
        return HTTPException(401, "Sign in first.", {"HX-Redirect": address})
    return HTTPException(303, "Sign in first.", {"Location": address})


def local_path(given: str | None) -> str:
    """The path to go to after signing in: the given one if it is on this server, else the start page.

    >>> local_path("/programs/a/list?round=2"), local_path("//elsewhere.org"), local_path("https:elsewhere.org")
    ('/programs/a/list?round=2', '/', '/')
    """
    path = given or "/"
    own = path.startswith("/") and path[1:2] != "/" and path.isprintable() and "\\" not in path
    return path if own else "/"


async def sign_in(request: Request, response: Response, secret: str) -> Principal | None:
    """Open a session by a token or an invitation and set its cookie; None: it is not valid. Attempts are rate limited."""
    wait = _rates(request).sign_ins.take(client_address(request.scope))
    if wait > 0:
        raise HTTPException(429, "Too many sign-in attempts; wait a minute.", {"Retry-After": str(math.ceil(wait))})
    given, store = secret.strip(), _store(request)
    find = find_invited if INVITATION.fullmatch(given) else find_principal
    principal = None if len(given) > MAX_SECRET_CHARACTERS else await _look_up(find, store, given)
    if principal is None:
        return None
    settings: Settings = request.app.state.settings
    cookie = await _write(open_session, store, given, settings.session_days)
    if cookie is None:
        return None
    name, max_age = settings.cookie_name, round(settings.session_days * DAY_SECONDS)
    response.set_cookie(
        name, cookie, max_age, path=cookie_path(), secure=settings.secure, httponly=True, samesite="lax"
    )
    return principal


async def sign_out(request: Request, response: Response) -> None:
    """End the session; an unknown cookie does not cause a write to the store."""
    cookie, store = _cookie(request), _store(request)
    if cookie and await _look_up(find_session, store, cookie) is not None:
        await _write(close_session, store, cookie)
    _rates(request).forget(cookie)
    settings: Settings = request.app.state.settings
    name, path = settings.cookie_name, cookie_path()
    response.delete_cookie(name, path, secure=settings.secure, httponly=True, samesite="lax")
    response.headers["Clear-Site-Data"] = '"cache"'


def invitation_link(request: Request, code: str) -> str:
    """The address that an invited person opens, at the host by which the server was asked."""
    return f"{request.url.scheme}://{request.headers['host']}{link('join', code=code)}"


def check_invited(principal: Principal, grants: Mapping[str | None, str]) -> None:
    """Refuse a first user who cannot invite others: an open server asks everybody to sign in from then on."""
    if principal.id is None and grants.get(None) != "admin":
        raise InputError(
            "The first user must be an admin of all programs, because everybody has to sign in from then on.",
            location="grants",
        )


def check_other(principal: Principal, user: str) -> None:
    """Refuse to change one's own access, so that an admin remains."""
    if principal.name == user:
        raise Conflict("You cannot change or revoke your own access; ask another admin.")


def form_key(request: Request) -> str:
    """Key for HMACs of forms, the same at every server of the store: it differs between sessions, "" without one."""
    cookie = _cookie(request)
    return hmac.new(cookie.encode(), b"a form of restive", hashlib.sha256).hexdigest() if cookie else ""


async def _look_up(function: Callable[Concatenate[Store, P], T], store: Store, *args: P.args, **kw: P.kwargs) -> T:
    """Query the store, in a thread if that can take long, so that a slow database does not block other requests."""
    if store.at_once is not None:
        with suppress(StoreError):
            return function(store.at_once, *args, **kw)
    return await asyncio.get_running_loop().run_in_executor(LOOKUPS, partial(function, store, *args, **kw))


async def _write(function: Callable[..., T], *args: object) -> T:
    """Write to the store in a thread that no lookup needs."""
    return await asyncio.get_running_loop().run_in_executor(SESSION_WRITES, function, *args)


def _note(request: Request, secret: str, principal: Principal | None) -> Principal | None:
    """Record whether a secret is valid, for the rate limits of the next requests; return the principal."""
    rates = _rates(request)
    if principal is None:
        rates.forget(secret)
    else:
        rates.remember(secret, principal.id)
    return principal


def _unauthorized(request: Request) -> HTTPException:
    missing = "authorization" not in request.headers
    problem = "A token is required: Authorization: Bearer rst_…" if missing else "The token is not valid"
    return HTTPException(401, f"{problem}; ask the administrator of the server for one.", CHALLENGE)


def _cookie(request: Request) -> str:
    value = find_cookie(request.app.state.settings.cookie_name, request.headers)
    return value if len(value) <= MAX_SECRET_CHARACTERS else ""


def _store(request: Request) -> Store:
    store: Store = request.app.state.desk.store
    return store


def _rates(request: Request) -> RateLimits:
    rates: RateLimits = request.app.state.rates
    return rates
