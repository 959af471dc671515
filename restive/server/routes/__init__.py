"""The routes of the HTTP API."""

from restive.server.routes import audit, people, programs, rounds, system

ROUTERS = (system.server, system.router, programs.router, rounds.router, people.router, audit.router)
