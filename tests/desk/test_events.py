"""The kinds of events: each is known to the projection, and described."""

from restive.desk import events
from restive.desk.projection import HANDLERS

KINDS = {value for name, value in vars(events).items() if name.isupper()}


def test_every_kind_of_event_is_folded_and_no_other() -> None:
    assert set(HANDLERS) == KINDS
    assert len(KINDS) == 11


def test_every_kind_of_event_is_described() -> None:
    described = {line.split()[0] for line in (events.__doc__ or "").splitlines() if line and not line.startswith(" ")}
    assert described >= KINDS
