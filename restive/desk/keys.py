"""`restive desk token`: who may use a store through `restive serve`; one short function for each verb.

A secret is printed alone on its line, so that it can be piped into where it is kept, and never again.
"""

from typing import TYPE_CHECKING, Annotated

import typer

from restive.desk.options import JsonOption, StoreOption, open_store
from restive.desk.saying import note, print_json
from restive.errors import InputError

if TYPE_CHECKING:
    from restive.desk.tokens import Token

token = typer.Typer(
    name="token",
    help="Who may use this store through `restive serve`: tokens with roles.",
    no_args_is_help=True,
)
TokenName = Annotated[str, typer.Argument(help="Whom or what it is for.", show_default=False)]


@token.command()
def make(
    name: TokenName,
    program: Annotated[
        list[str] | None,
        typer.Option(help="A role in one program, coupons=operator: viewer, operator or admin; several times."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="A role in all programs, also in those to come.")] = None,
    days: Annotated[int | None, typer.Option(help="For how many days.", show_default="until revoked")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token; its secret is printed once, and is not to be seen again."""
    from restive.desk.audit import RequestContext
    from restive.desk.tokens import list_tokens, make_token

    grants = _read_grants(program or [], role)
    # A server can be the first to make a program, and needs somebody who may.
    with open_store(store, make=None in grants) as opened:
        secret = make_token(opened.store, name, grants, days, RequestContext(by="command"))
        made = next(each for each in list_tokens(opened.store) if secret.startswith(f"rst_{each.id}_"))
    if as_json:
        print_json(made.as_json() | {"secret": secret})
    else:
        print(secret, flush=True)
    until = f" It expires at {made.expires[:16].replace('T', ' ')} UTC." if made.expires else ""
    note([f"this is the secret of the token {name}; keep it, it is not shown again.{until}"])


@token.command(name="list")
def list_(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the tokens there are and were, without their secrets."""
    from restive.desk.screen import print_tokens
    from restive.desk.tokens import list_tokens

    with open_store(store) as opened:
        rows = list_tokens(opened.store)
    if as_json:
        print_json({"tokens": [each.as_json() for each in rows]})
    else:
        print_tokens([each.as_json() | {"grants": _say_grants(each)} for each in rows])


@token.command()
def revoke(name: TokenName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """End a token, and sign out whoever is signed in with it."""
    from restive.desk.audit import RequestContext
    from restive.desk.tokens import revoke_token

    with open_store(store) as opened:
        revoke_token(opened.store, name, RequestContext(by="command"))
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print(f"The token {name} is revoked.")


def _read_grants(pairs: list[str], role: str | None) -> dict[str | None, str]:
    """The roles by program, None for all of them."""
    grants: dict[str | None, str] = {} if role is None else {None: role}
    for pair in pairs:
        name, equals, held = pair.rpartition("=")
        if not equals or not name:
            raise InputError(f"--program {pair}: write the name of a program and a role, as in coupons=operator.")
        if name in grants:
            raise InputError(f"--program {pair}: the program {name} has a role already; give it one.")
        grants[name] = held
    if not grants:
        raise InputError("a token needs a role: --role admin in all programs, or --program coupons=operator.")
    return grants


def _say_grants(made: "Token") -> str:
    return ", ".join(f"{'all programs' if each.program is None else each.program}: {each.role}" for each in made.grants)
