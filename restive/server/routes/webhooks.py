"""Routes of webhooks, of their secrets and failed messages; and the messages, as the OpenAPI document describes them.

Adding takes no idempotency key, because the secret is not stored in the audit log: a second request with the same url is
refused.
"""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response

from restive.api.types import Page
from restive.api.webhooks import (
    Delivery,
    NewWebhook,
    Ping,
    RemovedWebhook,
    ResentMessages,
    ResultsComplete,
    RoundDecided,
    Webhook,
)
from restive.desk.audit import RequestContext
from restive.desk.webhooks import (
    add_ping,
    add_webhook,
    change_webhook,
    list_webhooks,
    remove_webhook,
    replace_secret,
    resend_messages,
)
from restive.server.admin_requests import ChangeWebhookBody, Resend, Rotation, WebhookBody
from restive.server.openapi import json_body
from restive.server.requests import MAX_ROUND, DryRun
from restive.server.routes.deps import (
    NO_QUERY,
    Admin,
    Name,
    check_empty_body,
    get_programs,
    json_response,
    make_router,
    program_url,
)
from restive.server.uploads import take_settings
from restive.server.webhooks import check_reachable

router = make_router("webhooks")
P = "/programs/{name}/webhooks"
Number = Annotated[int, Path(alias="webhook", description="The number of a webhook.", ge=1, le=MAX_ROUND)]


@router.get(P, response_model=Page[Webhook], summary="List webhooks", dependencies=NO_QUERY)
async def show_webhooks(name: Name, request: Request, principal: Admin) -> Response:
    """The webhooks of a program with their latest messages, without secrets."""
    found = await get_programs(request).call(request, name, list_webhooks)
    return json_response({"items": found, "next": None})


@router.post(
    P,
    response_model=NewWebhook,
    status_code=201,
    summary="Add a webhook",
    openapi_extra=json_body(WebhookBody),
    dependencies=NO_QUERY,
)
async def make_webhook(name: Name, request: Request, principal: Admin) -> Response:
    """Have messages about a program sent to an address; the secret in the answer is not shown again."""
    body = (await take_settings(request, WebhookBody)).settings
    check_reachable(body.url, request.app.state.settings)
    context = RequestContext(principal.signature)
    made = await get_programs(request).call(request, name, add_webhook, body.url, body.events, context)
    headers = {"Location": program_url(name, "webhooks", made["webhook"]["id"])}
    return json_response(made, 201, headers)


@router.patch(
    P + "/{webhook}",
    response_model=Webhook,
    summary="Change a webhook",
    openapi_extra=json_body(ChangeWebhookBody),
    dependencies=NO_QUERY,
)
async def update_webhook(name: Name, number: Number, request: Request, principal: Admin) -> Response:
    """Change the address or the events of a webhook, or disable or enable it; its secret stays."""
    body = (await take_settings(request, ChangeWebhookBody)).settings
    if body.url is not None:
        check_reachable(body.url, request.app.state.settings)
    changes, context = body.model_dump(), RequestContext(principal.signature)
    found = await get_programs(request).call(request, name, change_webhook, number, **changes, context=context)
    return json_response(found)


@router.delete(P + "/{webhook}", response_model=RemovedWebhook, summary="Remove a webhook")
async def delete_webhook(
    name: Name, number: Number, request: Request, principal: Admin, query: Annotated[DryRun, Query()]
) -> Response:
    """Remove a webhook with its secret and its messages, also those that are waiting."""
    context = RequestContext(principal.signature)
    found = await get_programs(request).call(request, name, remove_webhook, number, query.dry_run, context)
    return json_response({"webhook": found, "recorded": not query.dry_run})


@router.post(P + "/{webhook}/test", response_model=Delivery, summary="Test a webhook", dependencies=NO_QUERY)
async def send_test_message(name: Name, number: Number, request: Request, principal: Admin) -> Response:
    """Send a message of the type `ping` now, once, and answer with its delivery."""
    await check_empty_body(request)
    sender, context = request.app.state.sender, RequestContext(principal.signature)
    programs = get_programs(request)
    message = await programs.call(request, name, add_ping, number, sender.lease_seconds, context)
    return json_response(await sender.send(message))


@router.post(P + "/{webhook}/secret", response_model=NewWebhook, summary="Replace the secret of a webhook")
async def rotate_secret(
    name: Name, number: Number, request: Request, principal: Admin, query: Annotated[Rotation, Query()]
) -> Response:
    """Replace the secret, which is not shown again; for some hours messages are signed by both secrets."""
    await check_empty_body(request)
    context = RequestContext(principal.signature)
    return json_response(await get_programs(request).call(request, name, replace_secret, number, query.hours, context))


@router.post(P + "/{webhook}/resend", response_model=ResentMessages, summary="Send failed messages again")
async def resend(
    name: Name, number: Number, request: Request, principal: Admin, query: Annotated[Resend, Query()]
) -> Response:
    """Have the failed messages of a webhook sent again, or one of them; they keep their ids."""
    await check_empty_body(request)
    context = RequestContext(principal.signature)
    count = await get_programs(request).call(request, name, resend_messages, number, query.message, context)
    request.app.state.sender.wake()
    return json_response({"messages": count})


MessageId = Annotated[
    str, Header(alias="webhook-id", description="The same in every attempt; use it to ignore repetitions.")
]
Timestamp = Annotated[
    int, Header(alias="webhook-timestamp", description="When it was sent, in seconds since 1970; refuse old ones.")
]
Signature = Annotated[
    str,
    Header(
        alias="webhook-signature",
        description="`v1,` and the HMAC-SHA256 of webhook-id.webhook-timestamp.body in base64, by the key in the secret.",
    ),
]
messages = APIRouter(
    generate_unique_id_function=lambda route: route.name,
    responses={
        204: {"description": "The message is accepted; any other status 2xx says the same."},
        "default": {"description": "The message is sent again later; after 410, nothing is sent any more."},
    },
)


@messages.post("round.decided", status_code=204, summary="A round was decided")
def round_decided(body: RoundDecided, id: MessageId, timestamp: Timestamp, signature: Signature) -> None:
    """Sent when the list of a round is ready; again with a new id if the round is undone and decided again."""


@messages.post("results.complete", status_code=204, summary="The results of a round are complete")
def results_complete(body: ResultsComplete, id: MessageId, timestamp: Timestamp, signature: Signature) -> None:
    """Sent once for a round, when everybody in it has an outcome or has left; corrections send nothing."""


@messages.post("ping", status_code=204, summary="A test message")
def ping(body: Ping, id: MessageId, timestamp: Timestamp, signature: Signature) -> None:
    """Sent once, when an admin tests the webhook."""
