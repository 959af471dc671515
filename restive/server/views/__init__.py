"""Pages of the server: `router` has all pages and their JSON endpoints, `static_files` the style sheets and scripts.

Each module adds its pages to the router when it is imported.
"""

from restive.server.views import (
    audit,
    help,
    history,
    lists,
    people,
    programs,
    results,
    rounds,
    settings,
    status,
    upload,
    users,
    webhooks,
)
from restive.server.views.base import router, static_files

__all__ = [
    "audit",
    "help",
    "history",
    "lists",
    "people",
    "programs",
    "results",
    "rounds",
    "router",
    "settings",
    "static_files",
    "status",
    "upload",
    "users",
    "webhooks",
]
