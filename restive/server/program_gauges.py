"""Gauges of programs for Prometheus: people, rounds, missing results, when the last round was decided, and the lift.

Values are those of programs that this process has in memory, as it last saw them; a request for metrics computes them again only
for programs that have changed and that nobody uses at the moment. After a start, each request opens one more program, the newest
first, until all are known or half of the pool is in use. A caller gets the programs that the token gives access to.
"""

from datetime import datetime
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client.exposition import generate_latest

from restive.desk.program import Program
from restive.desk.status import measure_lift
from restive.desk.tokens import Principal
from restive.errors import InputError
from restive.server.program_pool import Programs
from restive.server.workers import Worker

GAUGES = {
    "people": "People in the program.",
    "rounds": "Decided rounds.",
    "results_waiting": "Missing results.",
    "last_round_timestamp_seconds": "When the last round was decided, in seconds since 1970.",
    "lift": "Gain per person and round against the control group.",
    "lift_low": "Lower end of its 95% interval.",
    "lift_high": "Upper end of its 95% interval.",
}


class Known(NamedTuple):
    """The values of a program after the event with this digest; NaN and missing ones are not shown."""

    digest: str
    values: dict[str, float]


class ProgramGauges:
    """The gauges of the programs of one process."""

    def __init__(self, programs: Programs, worker: Worker | None = None) -> None:
        self._programs, self._known, self._worker = programs, dict[str, Known](), worker

    async def render(self, principal: Principal) -> bytes:
        """The gauges of all programs that the principal sees, in the Prometheus text format."""
        rows = await self._programs.run(self._programs.desk.store.programs)
        names = [row.name for row in rows if self._worker is None or self._worker.owns(row.name)]
        self._known |= await self._programs.inspect_idle(self._measure)
        unknown = [name for name in names if name not in self._known]
        if unknown and self._programs.has_room:
            async with self._programs.using(unknown[-1]) as program:
                self._known[unknown[-1]] = await self._programs.run(self._measure, program)
        self._known = {name: self._known[name] for name in names if name in self._known}
        registry = CollectorRegistry()
        gauges = {
            each: Gauge(f"restive_program_{each}", about, ["program"], registry=registry)
            for each, about in GAUGES.items()
        }
        for name, known in self._known.items():
            for each, value in known.values.items() if principal.sees(name) else ():
                gauges[each].labels(name).set(value)
        return generate_latest(registry)

    def _measure(self, program: Program) -> Known:
        try:
            return measure(program, self._known.get(program.name))
        except InputError:  # it cannot be read, or was deleted; lists of programs say so
            return Known("", {})


def measure(program: Program, before: Known | None = None) -> Known:
    """The values of a program, computed again if it has changed."""
    projection = program.projection
    if before is not None and before.digest == projection.digest:
        return before
    agents, rounds = projection.agents, projection.rounds
    values = {
        "people": float(agents.active.sum()),
        "rounds": float(len(rounds)),
        "results_waiting": float(sum(totals.waiting for totals in rounds)),
    }
    if rounds:
        values["last_round_timestamp_seconds"] = datetime.fromisoformat(rounds[-1].at).timestamp()
    if agents.control.any():
        found = measure_lift(projection)
        values |= {"lift": found.mean, "lift_low": found.low, "lift_high": found.high}
    return Known(projection.digest, {name: value for name, value in values.items() if value == value})
