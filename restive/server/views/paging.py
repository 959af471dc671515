"""Pages of a long table: which rows are on one, and how many pages there are."""

from typing import NamedTuple

from restive.errors import NotFound


class Part(NamedTuple):
    """One page of a table; rows are counted from 1."""

    page: int
    pages: int
    first: int
    last: int
    total: int

    @property
    def rows(self) -> slice:
        """The places of its rows."""
        return slice(self.first - 1, self.last)


def turn_to(page: int, total: int, size: int) -> Part:
    """A page of so many rows; an empty table has one page, with nothing on it.

    >>> turn_to(3, total=410, size=200)
    Part(page=3, pages=3, first=401, last=410, total=410)
    """
    pages = max(1, -(-total // size))
    if page > pages:
        raise NotFound(f"There is no page {page}; there {'is one' if pages == 1 else f'are {pages:,}'}.")
    return Part(page, pages, (page - 1) * size + 1, min(page * size, total), total)
