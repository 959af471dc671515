"""The routes of the HTTP API."""

from restive.server.routes import people, programs, rounds, system, users

ROUTERS = (system.server, system.router, programs.router, rounds.router, people.router, programs.audit, users.router)
