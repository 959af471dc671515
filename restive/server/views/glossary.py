"""The page on which all words are explained."""

from typing import Any

from fastapi import APIRouter

from restive.server.views.base import PageRoute, page
from restive.server.views.definitions import WORDS

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@page(router, "/words", "words.html")
async def words() -> dict[str, Any]:
    """All words."""
    return {"words": {key: word._asdict() for key, word in sorted(WORDS.items(), key=lambda each: each[1].title)}}
