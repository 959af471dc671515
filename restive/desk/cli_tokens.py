"""`restive desk token`: make, list and revoke tokens with roles for `restive serve`."""

from typing import Annotated

import typer

from restive.desk.cli import JsonOption, StoreOption, open_store
from restive.errors import InputError

token = typer.Typer(name="token", help="Tokens with roles for `restive serve`.", no_args_is_help=True)
TokenName = Annotated[str, typer.Argument(help="The person or system that uses the token.", show_default=False)]


@token.command(name="make")
def make_token(
    name: TokenName,
    program: Annotated[
        list[str] | None,
        typer.Option(help="A role in one program, coupons=operator: viewer, operator or admin; repeatable."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="A role in all programs, also in future ones.")] = None,
    days: Annotated[int | None, typer.Option(help="Days until it expires.", show_default="until revoked")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token; its secret is printed once and never again."""
    from restive.console import print_json, print_notices
    from restive.desk import tokens
    from restive.formats import show_minute

    grants = _parse_grants(program or [], role)
    # An admin of all programs may create the first program through the server, so the store may be new.
    with open_store(store, make=None in grants) as opened:
        secret = tokens.make_token(opened.store, name, grants, days)
        made = next(each for each in tokens.list_tokens(opened.store) if secret.startswith(f"rst_{each.id}_"))
    if as_json:
        print_json({**made.as_json(), "secret": secret})
    else:
        print(secret, flush=True)  # alone on its line, so that it can be piped
    until = f" It expires at {show_minute(made.expires)} UTC." if made.expires else ""
    print_notices(f"this is the secret of the token {name}; store it now, it is not shown again.{until}")


@token.command(name="list")
def list_tokens(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List all tokens, also expired and revoked ones, without their secrets."""
    from restive.desk import tokens
    from restive.desk.output import print_tokens

    with open_store(store) as opened:
        print_tokens([each.as_json() for each in tokens.list_tokens(opened.store)], as_json)


@token.command(name="revoke")
def revoke_token(name: TokenName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Revoke a token and end its sessions."""
    from restive.console import print_json
    from restive.desk import tokens

    with open_store(store) as opened:
        tokens.revoke_token(opened.store, name)
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        print(f"The token {name} is revoked.")


def _parse_grants(pairs: list[str], role: str | None) -> dict[str | None, str]:
    """The roles by program, None for all of them."""
    grants: dict[str | None, str] = {} if role is None else {None: role}
    for pair in pairs:
        name, equals, held = pair.rpartition("=")
        if not equals or not name:
            raise InputError(f"--program {pair}: write the name of a program and a role, as in coupons=operator.")
        if name in grants:
            raise InputError(f"--program {pair}: the program {name} already has a role.")
        grants[name] = held
    if not grants:
        raise InputError("A token needs a role: --role admin in all programs, or --program coupons=operator.")
    return grants
