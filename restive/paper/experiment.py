"""An experiment of the paper: its jobs, what is measured in their results, and the claims that this decides.

Titles, descriptions and claims are in `CLAIM_FILES`; a module of this package has the functions that list jobs and
measure. A claim gets its parts by name, or from the board of the experiment if it is about the lead of a policy.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import chain
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from restive.paper.claims import HOLDS, OURS, Claim, Part, parse_range
from restive.paper.curves import SHARE, Lead, Scoreboard
from restive.paper.jobs import Job, Plan, Results, Size
from restive.paper.readings import Reading
from restive.plotting import Picture
from restive.report.tables import Table

CLAIM_FILES = ("claims.toml", "analysis_claims.toml")

Parts = Mapping[str, Sequence[Part]]  # by claim
Reasons = Mapping[str, str]  # why a claim does not hold, by reading or for "all" of them
INFERRED = "inferred"  # a reason that begins so is given also if the claim holds


@dataclass(frozen=True)
class Measured:
    """The numbers of an experiment."""

    parts: Parts
    nearby: Parts = field(default_factory=dict)
    figures: Mapping[str, Figure] = field(default_factory=dict)  # by file name
    tables: tuple[Table, ...] = ()
    values: Mapping[str, object] = field(default_factory=dict)  # named in the texts of claims
    board: Scoreboard | None = None  # for claims about leads


class Findings(NamedTuple):
    """What an experiment has shown."""

    claims: tuple[Claim, ...]
    figures: Mapping[str, Figure | Picture]  # by file name
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Experiment(Plan):
    """One experiment, figure, theorem or example of the paper."""

    place: str  # where it is in the paper
    about: str  # what is done, with the choices that the paper leaves open
    measure: Callable[[Size, Results], Measured]
    claims: tuple[Claim, ...]  # without their parts
    leads: Mapping[str, Lead] = field(default_factory=dict)  # by claim
    texts: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[str, Reasons] = field(default_factory=dict)  # by claim

    def under(self, readings: Sequence[Reading]) -> Plan:
        """The jobs of all readings."""

        def list_jobs(size: Size) -> list[Job]:
            return [job for reading in readings for job in self.list_jobs(size._replace(reading=reading))]

        return Plan(self.name, self.title, list_jobs)

    def tell_apart(self, size: Size, readings: Sequence[Reading]) -> dict[str, Reading]:
        """The first reading with the same jobs, by the name of each reading: their findings are the same."""
        first: dict[frozenset[str], Reading] = {}
        found = {}
        for reading in readings:
            digests = frozenset(job.digest() for job in self.list_jobs(size._replace(reading=reading)))
            found[reading.name] = first.setdefault(digests, reading)
        return found

    def examine(self, size: Size, results: Results) -> Findings:
        """The claims with their parts, figures and tables under the reading of the size."""
        measured = self.measure(size, results)
        unknown = {*measured.parts, *measured.nearby} - {claim.name for claim in self.claims}
        assert not unknown, f"{self.name}: there is no claim {', '.join(sorted(unknown))}"
        claims = tuple(self._judge(each, measured, size.reading) for each in self.claims)
        return Findings(claims, measured.figures, measured.tables)

    def _judge(self, claim: Claim, measured: Measured, reading: Reading) -> Claim:
        values = {"share": SHARE, **self.texts, **measured.values}
        worded = {name: getattr(claim, name).format_map(values) for name in ("sentence", "quantity", "remark")}
        lead = self.leads.get(claim.name)
        if lead and measured.board:
            parts, nearby = lead.measure(measured.board)
        else:
            parts, nearby = tuple(measured.parts[claim.name]), ()
        judged = replace(claim, **worded, parts=parts, nearby=tuple(measured.nearby.get(claim.name, nearby)))
        reasons = self.reasons.get(claim.name, {})
        why = reasons.get(reading.name, reasons.get("all", ""))
        return replace(judged, why=why) if judged.seen != HOLDS or why.startswith(INFERRED) else judged


ListJobs = Callable[[Size], list[Job]]
Measure = Callable[[Size, Results], Measured]


def load_experiments(functions: Mapping[str, tuple[ListJobs, Measure]]) -> dict[str, Experiment]:
    """The experiments of `CLAIM_FILES` with their functions, by name."""
    folder = files("restive.paper")
    tables = [tomllib.loads(folder.joinpath(name).read_text(encoding="utf-8")) for name in CLAIM_FILES]
    named = chain.from_iterable(table.items() for table in tables)
    return {name: _make_experiment(name, table, *functions[name]) for name, table in named}


def _make_experiment(name: str, table: Mapping[str, Any], list_jobs: ListJobs, measure: Measure) -> Experiment:
    rows = dict(_repeat_for_variants(table))
    return Experiment(
        name=name,
        title=table["title"],
        list_jobs=list_jobs,
        place=table["place"],
        about=table["about"],
        measure=measure,
        claims=tuple(_make_claim(claim, row, table) for claim, row in rows.items()),
        leads={claim: Lead(**row["lead"]) for claim, row in rows.items() if "lead" in row},
        reasons={claim: row["why"] for claim, row in rows.items() if "why" in row},
        texts={key: text for key, text in table.items() if isinstance(text, str)},
    )


def _repeat_for_variants(table: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The claims of an experiment, by name, once for each of its variants if it has any."""
    for variant in table.get("variants", [""]):
        for name, row in table["claims"].items():
            texts = {key: text.replace("{variant}", variant) for key, text in row.items() if isinstance(text, str)}
            yield name.replace("{variant}", variant), {**row, **texts}


def _make_claim(name: str, row: Mapping[str, Any], table: Mapping[str, Any]) -> Claim:
    quantity = "lead of {ahead} over {behind}, {{share}}".format_map(row.get("lead", {"ahead": "", "behind": ""}))
    place = row.get("place", table["place"])
    return Claim(
        name=name,
        sentence=row["sentence"],
        place=place,
        quantity=row.get("quantity", quantity),
        agreement=parse_range(row.get("agreement", "above 0")),
        remark=row.get("remark", ""),
        choice=row.get("choice", ""),
        substitute=place != OURS and table.get("substitute", "?") in name,
    )
