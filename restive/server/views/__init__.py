"""The pages of the server: `router` has all of them, with their twins and the files that they need."""

from fastapi import APIRouter

from restive.server.views import (
    audit,
    files,
    glossary,
    lists,
    login,
    new_program,
    people,
    programs,
    rounds,
    settings,
    shadow,
    status,
    upload,
)

SHOWING = (files, programs, status, lists, rounds, people, shadow, glossary)
CHANGING = (login, new_program, upload, settings, audit)

router = APIRouter(include_in_schema=False)
for part in (*SHOWING, *CHANGING):
    router.include_router(part.router)
