"""Webhooks of a program, for admins: add one and see its secret once, test, disable, enable, remove, replace its secret, and
send failed messages again.

The secret is shown in the answer to the form that made it, and nowhere else.
"""

from fastapi import Request, Response
from starlette.exceptions import HTTPException

from restive.desk.audit import RequestContext
from restive.desk.program import Program
from restive.desk.webhooks import (
    EVENTS,
    ROTATION_HOURS,
    add_ping,
    add_webhook,
    change_webhook,
    list_webhooks,
    remove_webhook,
    replace_secret,
    resend_messages,
)
from restive.errors import InputError, check_whole
from restive.server.addresses import link
from restive.server.errors import describe
from restive.server.views.base import Data, Query, ask, build_page, program_page, render_in_thread, router
from restive.server.views.forms import Admin, Form, read_whole, redirect, take_form
from restive.server.webhooks import check_reachable

STEPS = ("add", "test", "enable", "disable", "remove", "secret", "resend")


@program_page("webhooks", "webhooks.html", role="admin")
def build_webhooks(program: Program, _: Query) -> Data:
    """All webhooks with their latest messages, without secrets."""
    return {"webhooks": list_webhooks(program), "events": EVENTS}


@router.post("/programs/{name}/webhooks")
async def take_webhook_step(request: Request, name: str, principal: Admin) -> Response:
    """Add a webhook and show its secret, or do something with one."""
    async with take_form(request) as form:
        if form.text("step") not in STEPS:
            raise HTTPException(400, "The form has no step. Reload the page.")
        context = RequestContext(principal.signature)
        try:
            if form.text("step") == "add":
                check_reachable(form.text("url"), request.app.state.settings)
                events = [event for event in EVENTS if form.checked(event)]
                made = await ask(request, name, add_webhook, form.text("url"), events, context)
                return await _show(request, name, 200, made=made)
            if form.text("step") == "secret":
                made = await ask(request, name, replace_secret, read_number(form), context=context)
                return await _show(request, name, 200, made=made, hours=ROTATION_HOURS)
            message = await run_step(request, name, form, context)
        except InputError as error:
            failure = describe(error, request)
            refused = {"step": form.text("step"), "detail": failure["detail"]}
            return await _show(request, name, failure["status"], refused=refused, typed=form.fields)
    return redirect(request, link("programs", name, "webhooks"), message)


async def run_step(request: Request, name: str, form: Form, context: RequestContext) -> str:
    """Do something with a webhook; the message about it."""
    step, number = form.text("step"), read_number(form)
    if step == "test":
        sender = request.app.state.sender
        sent = await sender.send(await ask(request, name, add_ping, number, sender.lease_seconds, context))
        if sent["status"] == "delivered":
            return f"The test message was delivered; the receiver answered {sent['result']}."
        return f"The test message was not delivered: {sent['result']}."
    if step == "remove":
        await ask(request, name, remove_webhook, number, context=context)
        return f"Webhook {number} is removed."
    if step == "resend":
        count = await ask(request, name, resend_messages, number, context=context)
        request.app.state.sender.wake()
        return f"{count:,} failed message{' is' if count == 1 else 's are'} sent again."
    await ask(request, name, change_webhook, number, enabled=step == "enable", context=context)
    return f"Webhook {number} is {step}d."


def read_number(form: Form) -> int:
    """The number of the webhook that a form is about."""
    return check_whole("webhook", read_whole(form.text("webhook")), 1)


async def _show(request: Request, name: str, status: int, **more: object) -> Response:
    """The page with a secret or an error."""
    data = await build_page(request, name, build_webhooks)
    return await render_in_thread(request, "webhooks.html", data, status, **more)
