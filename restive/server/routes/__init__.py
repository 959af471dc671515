"""The routes of the HTTP API."""

from restive.server.routes import people, programs, results, rounds, system, users, webhooks

ROUTERS = (
    system.server,
    system.router,
    programs.router,
    rounds.router,
    people.router,
    results.router,
    programs.audit,
    users.router,
    webhooks.router,
)
