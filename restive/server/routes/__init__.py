"""The routes of the HTTP API, a router for each thing that is asked about."""

from restive.server.routes import log, people, programs, rounds, store

ROUTERS = (store.server, store.router, programs.router, rounds.router, people.router, log.router)
