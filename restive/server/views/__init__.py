"""Pages of the server: `router` has all pages and their JSON endpoints, `static_files` the style sheets and scripts."""

from fastapi import APIRouter

from restive.server.views import audit, login, outcomes, people, programs, rounds, settings, status, upload
from restive.server.views.base import static_files

__all__ = ["router", "static_files"]

VIEWS = (programs, status, rounds, people, login, upload, outcomes, settings, audit)

router = APIRouter(include_in_schema=False)
for view in VIEWS:
    router.include_router(view.router)
