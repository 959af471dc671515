"""Parameters that an address may have, as the API's document says it.

A number is written with digits alone and a switch is true or false: what a person might type by mistake is refused.
"""

import re
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from restive.desk.config import MAX_BUDGET
from restive.desk.table_schema import MAX_ID
from restive.server.requests import AGAIN, CORRECT, DRY, MAX_ROUND, NEW, NUMBER, Text

MAX_PAGE = 1000


def _read_whole(given: object) -> object:
    """A whole number in an address, written with digits alone."""
    if isinstance(given, str) and not re.fullmatch(r"-?[0-9]{1,18}", given):
        raise ValueError("it must be a whole number")
    return given


def _read_switch(given: object) -> object:
    if isinstance(given, str) and given not in ("true", "false"):
        raise ValueError("it must be true or false")
    return given


# The bounds come before the reader, or the document would not have them.
Whole = Annotated[int, BeforeValidator(_read_whole)]
WholeBudget = Annotated[int, Field(ge=0, le=MAX_BUDGET), BeforeValidator(_read_whole)]
WholeRound = Annotated[int, Field(ge=1, le=MAX_ROUND), BeforeValidator(_read_whole)]
WholePlace = Annotated[int, Field(ge=1, le=10**15), BeforeValidator(_read_whole)]
Switch = Annotated[bool, BeforeValidator(_read_switch)]


class Query(BaseModel):
    """Parameters in the address."""

    model_config = ConfigDict(extra="forbid")


class Page(Query):
    """Which part of a long list."""

    after: Whole = Field(0, ge=0, le=10**15, description="Go on behind this place; `next` of an answer has it.")
    limit: Whole = Field(100, ge=1, le=MAX_PAGE, description="How many at most.")


class Back(Query):
    """Which part of a list that begins with the newest."""

    before: WholePlace | None = Field(None, description="Go on with what is older than this number.")
    limit: Whole = Field(100, ge=1, le=MAX_PAGE, description="How many at most.")


class Find(Page):
    """Whom to look for."""

    find: str = Field("", max_length=MAX_ID, description="A part of the id, in capitals or not; none: everybody.")


class OfAgent(Query):
    """Whose history."""

    agent: str = Field(min_length=1, max_length=MAX_ID, description="The id of the person.", examples=["ann"])


class DryRun(Query):
    """Whether to record."""

    dry_run: Switch = Field(False, description=DRY)


class WithStates(DryRun):
    """What goes with a table of states that is no JSON; with JSON it stands in the body."""

    budget: WholeBudget | None = Field(None, description="How many can be acted on.")
    must: list[Text] | None = Field(None, description="Somebody who is on the list in any case; may be repeated.")
    never: list[Text] | None = Field(None, description="Somebody who is not on it now; may be repeated.")
    round: WholeRound | None = Field(None, description=NUMBER)
    again: Switch = Field(False, description=AGAIN)
    new: Switch = Field(False, description=NEW)
    limit: Whole = Field(1000, ge=1, le=100_000, description="How many rows of the list the answer holds at most.")


class WithOutcomes(DryRun):
    """What goes with a table of outcomes that is no JSON; with JSON it stands in the body."""

    round: WholeRound | None = Field(None, description="The round that the outcomes are of.")
    correct: Switch = Field(False, description=CORRECT)
