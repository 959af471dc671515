"""The header of pages: the places of a program, a few always visible and the rest under More, and the link to help."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

REST = (
    ("rounds", "Rounds", "viewer"),
    ("shadow", "Shadow", "viewer"),
    ("settings", "Settings", "operator"),
    ("audit", "Audit log", "admin"),
)
# Pages that belong to a place with another path.
PLACE_OF = {
    "list": "week",
    "states": "week",
    "outcomes": "week",
    "person": "people",
    "unreached": "results",
    "report": "results",
}

# The section of help about each page of a program, and about each page of the server.
HELP_OF_PART = {
    "status": "home-what-to-do-next",
    "list": "during-the-week-report-what-was-different",
    "states": "monday-decide-a-round",
    "outcomes": "during-the-week-report-what-was-different",
    "people": "look-somebody-up",
    "person": "look-somebody-up",
    "results": "see-whether-it-works",
    "shadow": "see-whether-it-works",
    "unreached": "see-whether-it-works",
    "report": "see-whether-it-works",
    "rounds": "earlier-rounds",
    "settings": "settings",
    "webhooks": "settings",
    "audit": "audit-log-and-export",
}
HELP_OF_PAGE = {
    "": "the-first-page",
    "new": "create-a-program",
    "users": "invite-people",
    "join": "sign-in",
    "login": "sign-in",
    "audit": "audit-log-and-export",
    "history": "create-a-program",
    "glossary": "the-first-page",
}


class Place(NamedTuple):
    """A link of the navigation: the part of its path below the program, and whether the page belongs to it."""

    to: str
    label: str
    current: bool


class Places(NamedTuple):
    """The links that are always visible, and those under More on a narrow screen."""

    main: list[Place]
    rest: list[Place]


def find_places(program: Mapping[str, Any], path: str, may: Callable[[str], bool]) -> Places:
    """The places of a program that a user may see, with the one that the path belongs to."""
    parts = path.split("/")
    part = parts[3] if len(parts) > 3 else ""
    here = PLACE_OF.get(part, part)
    words = program["words"]
    people: str = words["people"]
    main = [
        ("status", "Home"),
        ("week", name_round(words["every"])),
        ("people", people[:1].upper() + people[1:]),
        ("results", "Results"),
    ]
    rest = [(to, label) for to, label, role in REST if may(role) and (to != "shadow" or program["shadow"])]
    return Places(*([Place(to, label, to == here) for to, label in each] for each in (main, rest)))


def name_round(every: str) -> str:
    """What the current round is called.

    >>> name_round("week"), name_round("two weeks")
    ('This week', 'This round')
    """
    return f"This {'round' if ' ' in every else every}"


def find_help(path: str) -> str:
    """The URL of the section of help about a page.

    >>> find_help("/programs/x/people"), find_help("/help")
    ('/help/pages#look-somebody-up', '/help')
    """
    parts = path.split("/")
    anchor = HELP_OF_PART.get(parts[3]) if parts[1] == "programs" and len(parts) > 3 else HELP_OF_PAGE.get(parts[1])
    return f"/help/pages#{anchor}" if anchor else "/help"
