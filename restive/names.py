"""What the agents or states of an `Agent` are called, and entries that people give for them."""

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.errors import InputError, check_whole, did_you_mean
from restive.types import Bools, Floats, Ints

Name: TypeAlias = str | int


class Names:
    """What agents or states are called: the numbers from 0 on, or names.

    given  their number or the list of names, as plain data
    names  all of them, in order
    """

    def __init__(self, one: str, many: str, given: int | Iterable[Name], low: int) -> None:
        self.one, self.many = one, many
        self.names: Sequence[Any]
        self._position: dict[Any, int] | None = None
        if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
            self.names = range(check_whole(many, given, low))
        else:
            self.names = [name.item() if isinstance(name, np.generic) else name for name in given]
            self._require_names(low)
            self._position = {name: place for place, name in enumerate(self.names)}

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.names)

    @property
    def given(self) -> int | list[Any]:
        """Their number, or their names."""
        return self.size if self._position is None else list(self.names)

    def add(self, more: int | Iterable[Name]) -> "Names":
        """The same with more at the end, which are numbered or named as the others are."""
        new = Names(self.one, self.many, more, 0)
        if (new._position is None) != (self._position is None):
            kind = "numbered; give the number of new ones" if self._position is None else "named; give a list of names"
            raise InputError(f"{self.many} is {more!r}, but the {self.many} are {kind}.", location=self.many)
        both = self.size + new.size if self._position is None else [*self.names, *new.names]
        return Names(self.one, self.many, both, 0)

    def select(self, position: Ints) -> list[Any]:
        """The names at these positions."""
        if self._position is None:
            return list(position.tolist())
        return [self.names[place] for place in position.tolist()]

    def positions(self, entry: NDArray[Any]) -> tuple[Ints, Bools]:
        """The position of each name, and whether there is such a name."""
        if self._position is None:
            number, valid = as_numbers(entry)
            valid &= (number >= 0) & (number < self.size)
            place = np.where(valid, number, 0).astype(np.int64)
            return place, valid & (place == number)
        place = np.array([self._position.get(name, -1) for name in entry.tolist()], np.int64)
        return place, place >= 0

    def find(self, place: str, given: Iterable[Any]) -> Ints:
        """The positions of these names; `place` is where they were given."""
        listed = isinstance(given, Iterable) and not isinstance(given, str | np.ndarray)
        entry = as_array(place, list(given) if listed else given)
        if entry.ndim != 1:
            raise InputError(f"{place} is {given!r}; it must be a list of {self.many}.", location=place)
        position, valid = self.positions(entry)
        if not valid.all():
            name = entry[np.argmin(valid) :][:1].tolist()[0]
            raise InputError(f"{place} names {self.one} {name!r}; {self.describe(name)}", location=place)
        return position

    def describe(self, wrong: object) -> str:
        """What is allowed instead of a wrong name, as the end of a sentence."""
        if self._position is None:
            return f"it must be a whole number from 0 to {self.size - 1}."
        if self.size <= 10:
            return f"it must be one of {', '.join(map(repr, self.names))}."
        return f"there is no such {self.one}{did_you_mean(str(wrong), map(str, self.names))}"

    def _require_names(self, low: int) -> None:
        texts = all(isinstance(name, str) for name in self.names)
        numbers = all(isinstance(name, Integral) and not isinstance(name, bool) for name in self.names)
        if not (texts or numbers) or len(self.names) < low:
            raise InputError(
                f"{self.many} must be a number from {low} on, or a list of names, all texts or all whole numbers.",
                location=self.many,
            )
        seen = set()
        for name in self.names:
            if name in seen:
                raise InputError(f"{self.many} names {name!r} twice.", location=self.many)
            seen.add(name)


def as_array(place: str, given: Any) -> NDArray[Any]:
    """Entries as an array, texts as objects; `place` is where they were given."""
    try:
        array = np.asarray(given)
        return np.asarray(given, object) if array.dtype.kind in "US" else array  # texts only where texts were given
    except (TypeError, ValueError):
        raise InputError(f"{place} is not a list of single entries.", location=place) from None


def is_known(entry: NDArray[Any]) -> Bools:
    """Whether each entry is there: neither None nor NaN."""
    if entry.dtype.kind == "O":
        return np.array([value is not None and value == value for value in entry.tolist()], np.bool_)
    missing: Bools = entry != entry
    return ~missing


def as_numbers(entry: NDArray[Any]) -> tuple[Floats, Bools]:
    """The entries as floats, and whether each is a number."""
    if entry.dtype.kind in "biuf":
        return entry.astype(np.float64), np.ones(entry.shape, np.bool_)
    numbers = [value if isinstance(value, int | float | np.number) else np.nan for value in entry.tolist()]
    found = np.array(numbers, np.float64)
    return found, ~np.isnan(found)
