"""The pages of the server: `router` has all of them, with their twins and the files that they need."""

from fastapi import APIRouter

from restive.server.pages import (
    audit,
    changing,
    files,
    glossary,
    lists,
    people,
    programs,
    rounds,
    setting_up,
    shadow,
    signing,
    status,
    uploading,
)

SHOWING = (files, programs, status, lists, rounds, people, shadow, glossary)
CHANGING = (signing, setting_up, uploading, changing, audit)

router = APIRouter(include_in_schema=False)
for part in (*SHOWING, *CHANGING):
    router.include_router(part.router)
