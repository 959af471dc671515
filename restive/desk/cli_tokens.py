"""`restive desk token`: users of `restive serve`: make tokens, invite people, list, change roles and revoke."""

from typing import Annotated

import typer

from restive.desk.cli import JsonOption, open_store
from restive.desk.cli_options import StoreOption
from restive.errors import InputError

token = typer.Typer(name="token", help="Tokens with roles for `restive serve`.", no_args_is_help=True)
TokenName = Annotated[str, typer.Argument(help="The person or system that uses the token.", show_default=False)]
ProgramOption = Annotated[
    list[str] | None,
    typer.Option(help="A role in one program, coupons=operator: viewer, operator or admin; repeatable."),
]
RoleOption = Annotated[str | None, typer.Option(help="A role in all programs, also in future ones.")]
DaysOption = Annotated[int | None, typer.Option(help="Days until it expires.", show_default="until revoked")]


@token.command(name="make")
def make_token(
    name: TokenName,
    program: ProgramOption = None,
    role: RoleOption = None,
    days: DaysOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token; its secret is printed once and never again."""
    from restive.console import print_json, print_notices
    from restive.desk import tokens
    from restive.desk.schedule import show_time

    grants = _parse_grants(program or [], role)
    # An admin of all programs may create the first program through the server, so the store may be new.
    with open_store(store, make=None in grants) as opened:
        secret = tokens.make_token(opened.store, name, grants, days)
        made = next(each for each in tokens.list_tokens(opened.store) if secret.startswith(f"rst_{each.id}_"))
    if as_json:
        print_json({**made.as_json(), "secret": secret})
    else:
        print(secret, flush=True)  # alone on its line, so that it can be piped
    until = f" It expires at {show_time(made.expires)} UTC." if made.expires else ""
    print_notices(f"this is the secret of the token {name}; store it now, it is not shown again.{until}")


@token.command(name="invite")
def invite(
    name: TokenName,
    program: ProgramOption = None,
    role: RoleOption = None,
    days: DaysOption = None,
    address: Annotated[str, typer.Option(help="Address of the server, as a browser opens it.")] = (
        "http://127.0.0.1:8787"
    ),
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Invite a person by a link that signs one browser in, once; without a role, a new link for a known person."""
    from restive.console import print_json, print_notices
    from restive.desk import tokens
    from restive.desk.schedule import show_time

    again = not program and role is None
    grants = {} if again else _parse_grants(program or [], role)
    with open_store(store, make=None in grants) as opened:
        if again:
            made = tokens.invite_again(opened.store, name)
        else:
            made = tokens.invite(opened.store, name, grants, days)
    link = f"{address.rstrip('/')}/join?code={made.code}"
    if as_json:
        print_json({"name": name, "link": link, "expires": made.expires})
    else:
        print(link, flush=True)
    print_notices(f"send this link to {name} only; it works once, until {show_time(made.expires)} UTC.")


@token.command(name="change")
def change_roles(
    name: TokenName,
    program: ProgramOption = None,
    role: RoleOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace all roles of a token, from its next request on."""
    from restive.desk import tokens
    from restive.desk.output import print_tokens

    with open_store(store) as opened:
        tokens.change_grants(opened.store, name, _parse_grants(program or [], role))
        print_tokens([tokens.find_token(opened.store, name).as_json()], as_json)


@token.command(name="list")
def list_tokens(store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List all tokens, also expired and revoked ones, without their secrets."""
    from restive.desk import tokens
    from restive.desk.output import print_tokens

    with open_store(store) as opened:
        print_tokens([each.as_json() for each in tokens.list_tokens(opened.store)], as_json)


@token.command(name="revoke")
def revoke_token(name: TokenName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """Revoke a token, and end its sessions and its invitation."""
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
