"""Who asks: the principal of a token for the API, of a session cookie for the pages, or anybody at an open server.

An open server asks nobody, as long as its store has no token: the first one that is made, by whatever process, closes
it at once. A program that a principal cannot see is answered exactly as one that is not there. Posts from other sites
are refused by the middleware, by Sec-Fetch-Site or Origin; session cookies are SameSite=Lax.

`request.state.principal` is whoever was let in.
"""

import hashlib
import hmac
import math
import os
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Annotated, TypeVar
from urllib.parse import quote

import anyio
from anyio.lowlevel import RunVar
from fastapi import Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import Response

from restive.desk.store import Store
from restive.desk.tokens import (
    HOURS,
    LOCAL,
    Principal,
    close_session,
    find_principal,
    find_session,
    has_tokens,
    open_session,
)
from restive.errors import NotFound
from restive.server.errors import Refusal
from restive.server.rate_limit import Rates, name_address
from restive.server.settings import Settings

COOKIE = "restive_session"
MAX_SECRET = 500
PROCESS_KEY = os.urandom(32)  # of forms that nobody has signed in for; they do not outlive the server
LOOK_UPS = 8  # in the store at once; they must not wait behind a decision in the threads of programs
SESSION_WRITES = 2  # at once, apart from look-ups, which must not wait until the store can be written to
BEARER = HTTPBearer(scheme_name="token", description="A token of `restive desk token`: rst_…", auto_error=False)
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="restive"'}

_LOOK_UPS: RunVar[anyio.CapacityLimiter] = RunVar("restive look-ups")
_WRITES: RunVar[anyio.CapacityLimiter] = RunVar("restive session writes")
T = TypeVar("T")
Dependency = Callable[..., Awaitable[Principal]]


def need_token(role: str) -> Dependency:
    """A dependency of routes of the API: the principal of the bearer token, with that role in the program of the path."""

    async def principal(
        request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)] = None
    ) -> Principal:
        found = await find_bearer(request) or await find_local(request)
        if found is None:
            raise Refusal(401, _why_not(request), CHALLENGE)
        return admit(request, found, role)

    return principal


def need_session(role: str) -> Dependency:
    """A dependency of pages: whoever is signed in; twins of pages that end in .json take a bearer token as well."""

    async def principal(request: Request) -> Principal:
        found = await find_signed_in(request)
        if found is None and request.url.path.endswith(".json"):
            found = await find_bearer(request)
            if found is None:
                raise Refusal(401, _why_not(request), CHALLENGE)
        if found is None:
            raise send_to_sign_in(request)
        return admit(request, found, role)

    return principal


async def find_bearer(request: Request) -> Principal | None:
    """The principal of the token in the header, if there is a good one."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not 0 < len(secret) <= MAX_SECRET:
        return None
    return _know(request, secret, await _look_up(find_principal, _store(request), secret))


async def find_signed_in(request: Request) -> Principal | None:
    """Whoever is signed in with the cookie, or anybody at an open server."""
    cookie = _cookie(request)
    found = _know(request, cookie, await _look_up(find_session, _store(request), cookie)) if cookie else None
    return found or await find_local(request)


async def find_local(request: Request) -> Principal | None:
    """Anybody, at a server that is open and whose store has no token yet; whoever shows a token is not anybody."""
    if not request.app.state.settings.open or "authorization" in request.headers:
        return None
    return None if await _look_up(has_tokens, _store(request)) else LOCAL


def admit(request: Request, principal: Principal, role: str) -> Principal:
    """The principal, if the role is held in the program of the path, or over the whole store where the path has none."""
    program = request.path_params.get("name")
    request.state.principal = principal
    if program is not None and not principal.sees(program):
        raise NotFound(f"There is no program {program!r}.")  # word for word as `Programs` says it
    if not _holds(principal, role, program):
        where = "the whole store" if program is None else program
        raise Refusal(403, f"{principal.name} may not do this; it needs the role {role} for {where}.")
    return principal


def _holds(principal: Principal, role: str, program: str | None) -> bool:
    """Whether the role is held; what belongs to no program may be looked at with any role anywhere."""
    return principal.may(role, program) or (program is None and role == "viewer" and bool(principal.grants))


def send_to_sign_in(request: Request) -> Refusal:
    """The way to the sign-in page and back; where a script asked for a part, the whole page goes there."""
    back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    there = f"/login?next={quote(local_path(back), safe='')}"
    if "hx-request" in request.headers:
        return Refusal(401, "Sign in first.", {"HX-Redirect": there})
    return Refusal(303, "Sign in first.", {"Location": there})


def local_path(given: str | None) -> str:
    """Where to go after signing in: a path of this server, else the start.

    >>> local_path("/programs/a/list?round=2"), local_path("//elsewhere.org"), local_path("https:elsewhere.org")
    ('/programs/a/list?round=2', '/', '/')
    """
    path = given or "/"
    own = path.startswith("/") and path[1:2] != "/" and path.isprintable() and "\\" not in path
    return path if own else "/"


async def sign_in(request: Request, response: Response, secret: str) -> bool:
    """Open a session and set its cookie; False when the secret is nobody's. Too many attempts are refused."""
    wait = _rates(request).sign_ins.take(name_address(request.scope))
    if wait > 0:
        after = {"Retry-After": str(max(math.ceil(wait), 1))}
        raise Refusal(429, "Too many attempts to sign in; wait a minute.", after)
    given, store = secret.strip(), _store(request)
    if len(given) > MAX_SECRET or await _look_up(find_principal, store, given) is None:
        return False
    cookie = await _write(open_session, store, given)
    if cookie is None:
        return False
    settings: Settings = request.app.state.settings
    name, secure = name_cookie(settings), settings.secure
    response.set_cookie(name, cookie, max_age=HOURS * 3600, secure=secure, httponly=True, samesite="lax")
    return True


async def sign_out(request: Request, response: Response) -> None:
    """End the session, here and in the store, which is written to only if it is somebody's."""
    cookie, store = _cookie(request), _store(request)
    if cookie and await _look_up(find_session, store, cookie) is not None:
        await _write(close_session, store, cookie)
    _rates(request).forget(cookie)
    settings: Settings = request.app.state.settings
    response.delete_cookie(name_cookie(settings), secure=settings.secure, httponly=True, samesite="lax")
    response.headers["Clear-Site-Data"] = '"cache"'


def name_cookie(settings: Settings) -> str:
    """What the session's cookie is called: by TLS so that browsers take it from this very host alone.

    >>> name_cookie(Settings()), name_cookie(Settings(https=True))
    ('restive_session', '__Host-restive_session')
    """
    return f"__Host-{COOKIE}" if settings.secure else COOKIE


def find_secret(settings: Settings, headers: Headers) -> str:
    """What a caller shows to be let in: a token, or a session cookie; it need not be a good one."""
    if "authorization" in headers:
        return headers["authorization"].partition(" ")[2].strip()
    name = name_cookie(settings)
    if name not in headers.get("cookie", ""):
        return ""
    try:
        found = SimpleCookie(headers["cookie"]).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def form_key(request: Request) -> str:
    """Key for HMACs of forms: differs between sessions, and outlives the server only with the session."""
    cookie = _cookie(request)
    key = cookie.encode() if cookie else PROCESS_KEY
    return hmac.new(key, b"a form of restive", hashlib.sha256).hexdigest()


async def _look_up(function: Callable[..., T], *args: object) -> T:
    """What the store says, asked in a thread: a database that does not answer must not keep others waiting."""
    return await anyio.to_thread.run_sync(lambda: function(*args), limiter=_limiter(_LOOK_UPS, LOOK_UPS))


async def _write(function: Callable[..., T], *args: object) -> T:
    """Have the store written to, in a thread that no look-up needs."""
    return await anyio.to_thread.run_sync(lambda: function(*args), limiter=_limiter(_WRITES, SESSION_WRITES))


def _limiter(kind: RunVar[anyio.CapacityLimiter], most: int) -> anyio.CapacityLimiter:
    """The one of this event loop."""
    try:
        return kind.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(most)
        kind.set(limiter)
        return limiter


def _know(request: Request, secret: str, principal: Principal | None) -> Principal | None:
    """Count the next requests of whoever shows this against the principal, or no longer."""
    rates = _rates(request)
    if principal is None:
        rates.forget(secret)
    else:
        rates.remember(secret, principal.id)
    return principal


def _why_not(request: Request) -> str:
    if "authorization" not in request.headers:
        return "A token is needed: Authorization: Bearer rst_…; `restive desk token` makes one."
    return "The token is not, or no longer, known here; `restive desk token` makes one."


def _cookie(request: Request) -> str:
    value = request.cookies.get(name_cookie(request.app.state.settings), "")
    return value if len(value) <= MAX_SECRET else ""


def _store(request: Request) -> Store:
    store: Store = request.app.state.desk.store
    return store


def _rates(request: Request) -> Rates:
    rates: Rates = request.app.state.rates
    return rates
