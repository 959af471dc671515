"""`restive desk webhook`: where `restive serve` sends messages about a program: add, list, change, test, remove, new secrets, and
failed messages."""

from typing import TYPE_CHECKING, Annotated

import typer

from restive.desk.cli import DryRunOption, JsonOption, ProgramName, open_program
from restive.desk.cli_options import StoreOption

if TYPE_CHECKING:
    from restive.api.webhooks import NewWebhook

webhook = typer.Typer(
    name="webhook", help="Signed messages about a program that `restive serve` sends.", no_args_is_help=True
)
Number = Annotated[int, typer.Argument(help="The number of the webhook, see `list`.", show_default=False)]
EventOption = Annotated[
    list[str] | None,
    typer.Option(help="round.decided or results.complete; repeatable.", show_default="both"),
]


@webhook.command(name="add")
def add_webhook(
    name: ProgramName,
    url: Annotated[str, typer.Argument(help="Address to send to, https://…", show_default=False)],
    event: EventOption = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a webhook; the secret that signs its messages is printed once and never again."""
    from restive.desk import webhooks

    with open_program(name, store) as program:
        print_secret(webhooks.add_webhook(program, url, event or webhooks.EVENTS), as_json)


def print_secret(made: "NewWebhook", as_json: bool) -> None:
    """Print the secret of a webhook alone on its line, so that it can be piped."""
    from restive.console import print_json, print_notices

    if as_json:
        print_json(made)
    else:
        print(made["secret"], flush=True)
    print_notices(f"this is the secret of webhook {made['webhook']['id']}; store it now, it is not shown again.")


@webhook.command(name="list")
def list_webhooks(name: ProgramName, store: StoreOption = None, as_json: JsonOption = False) -> None:
    """List the webhooks of a program and the last message of each."""
    from restive.desk import webhooks
    from restive.desk.output import print_webhooks

    with open_program(name, store) as program:
        print_webhooks(webhooks.list_webhooks(program), as_json)


@webhook.command(name="change")
def change_webhook(
    name: ProgramName,
    number: Number,
    url: Annotated[str | None, typer.Option(help="Another address; the secret stays.")] = None,
    event: EventOption = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Whether messages are sent.")] = None,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the address or the events of a webhook, disable or enable it."""
    from restive.desk import webhooks
    from restive.desk.output import print_webhooks

    with open_program(name, store) as program:
        print_webhooks([webhooks.change_webhook(program, number, url, event or None, enabled)], as_json)


@webhook.command(name="test")
def send_test_message(
    name: ProgramName, number: Number, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Have a test message sent, by a server on this store that runs or is started next; `list` shows its result."""
    from restive.desk import webhooks
    from restive.desk.output import print_webhooks

    with open_program(name, store) as program:
        webhooks.add_ping(program, number)
        print_webhooks([webhooks.find_webhook(program, number)], as_json)


@webhook.command(name="secret")
def replace_secret(
    name: ProgramName,
    number: Number,
    hours: Annotated[int, typer.Option(help="How long the secret before also signs messages.")] = 24,
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace the secret of a webhook; for some hours messages are signed by both."""
    from restive.desk import webhooks

    with open_program(name, store) as program:
        print_secret(webhooks.replace_secret(program, number, hours), as_json)


@webhook.command(name="resend")
def resend_messages(
    name: ProgramName,
    number: Number,
    message: Annotated[str | None, typer.Option(help="The id of one message.", show_default="all that failed")] = None,
    store: StoreOption = None,
) -> None:
    """Have failed messages sent again, by a server on this store; they keep their ids."""
    from restive.desk import webhooks

    with open_program(name, store) as program:
        count = webhooks.resend_messages(program, number, message)
    print(f"The number of messages that are sent again is {count:,}.")


@webhook.command(name="remove")
def remove_webhook(
    name: ProgramName,
    number: Number,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
) -> None:
    """Remove a webhook with its secret and its messages, also those that are waiting."""
    from restive.console import print_json
    from restive.desk import webhooks

    with open_program(name, store) as program:
        removed = webhooks.remove_webhook(program, number, dry_run)
    if as_json:
        print_json({"webhook": removed, "recorded": not dry_run})
    else:
        done = "would be" if dry_run else "is"
        print(f"Webhook {number} {done} removed; the number of messages that wait is {removed['pending']:,}.")
