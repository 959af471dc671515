"""An experiment of the paper: what has to be done, and what is made of the results."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from matplotlib.figure import Figure

from restive.errors import InputError
from restive.files import Columns
from restive.paper.claims import Claim
from restive.paper.work import Work
from restive.report.tables import Table

Either = TypeVar("Either")


class Size(NamedTuple):
    """How large, and with what luck."""

    quick: bool = False
    seed: int = 0

    def pick(self, full: Either, quick: Either) -> Either:
        """One of two."""
        return quick if self.quick else full


class Findings(NamedTuple):
    """What an experiment has shown."""

    claims: tuple[Claim, ...]
    figures: Mapping[str, Figure]  # by the name of their file
    tables: tuple[Table, ...] = ()


class Results:
    """What the works gave, by work."""

    def __init__(self, columns: Mapping[str, Columns]) -> None:
        self.columns = columns

    def __getitem__(self, work: Work) -> Columns:
        if work.digest() not in self.columns:
            raise InputError(f"{work.label}: no such work was done; something was changed in between, so run again.")
        return self.columns[work.digest()]


@dataclass(frozen=True)
class Undertaking:
    """Something with a name for which works have to be done."""

    name: str
    title: str
    plan: Callable[[Size], list[Work]]


@dataclass(frozen=True)
class Experiment(Undertaking):
    """One experiment, figure, theorem or example of the paper."""

    place: str  # where it stands in the paper
    about: str  # what is done, with the choices that the paper leaves open
    examine: Callable[[Size, Results], Findings]
