"""Run the acceptance checks of everything that is said from logs, in worker processes, and tabulate their figures.

A check is a pure function of its size and of the code, so its figures are kept in a folder under a digest of both: the
same call continues where an earlier one ended, and repeats what other code had computed.
"""

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

from restive.errors import InputError, did_you_mean
from restive.files import write_atomic
from restive.logs import acceptance
from restive.logs.acceptance import Check, Result
from restive.paper.engines import open_engine, result_of
from restive.paper.jobs import code_digest
from restive.report.tables import Table
from restive.version import __version__

INTRODUCTION = """\
# Acceptance of what is said from logs

Written by `restive check-logs --markdown docs/logs/acceptance.md`{quick}. Every figure comes from simulated histories whose
truth is known, with fixed seeds: the same version prints the same figures.

```python
>>> from restive.logs.check_logs import find_checks
>>> "fit/coverage" in find_checks()
True

```
"""


class Outcome(NamedTuple):
    """The figures of one check."""

    part: str  # the module of `restive.logs.acceptance`
    check: str
    results: tuple[Result, ...]

    def as_json(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {"part": self.part, "check": self.check, "results": [result._asdict() for result in self.results]}


def find_checks(only: Sequence[str] = ()) -> dict[str, Check]:
    """The checks by `part/name`, of the named parts or of all.

    >>> find_checks(["tea"])
    Traceback (most recent call last):
        ...
    restive.errors.InputError: There are no checks of 'tea'.
    """
    parts = [module.name for module in iter_modules(acceptance.__path__)]
    for part in only:
        if part not in parts:
            raise InputError(f"There are no checks of {part!r}{did_you_mean(part, parts)}")
    chosen = [part for part in parts if not only or part in only]
    return {f"{part}/{check.name}": check for part in chosen for check in _load(part).CHECKS}


def run_checks(
    checks: Sequence[str], quick: bool, folder: Path | None, report: Callable[[str], None], workers: int | None = None
) -> list[Outcome]:
    """Run checks, named as by `find_checks`, each in a worker process; with a folder, those that are not kept there."""
    found = {name: kept for name in checks if (kept := _read(folder, name, quick)) is not None}
    missing = [name for name in checks if name not in found]
    if missing:
        begun = time.monotonic()
        with open_engine("processes", workers) as engine:
            waiting = {engine.submit(run_check, name, quick): name for name in missing}
            for done, future in enumerate(as_completed(waiting), start=1):
                name = waiting[future]
                found[name] = result_of(future, name)
                _write(folder, name, quick, found[name])
                report(f"{name} done after {time.monotonic() - begun:.0f} s, {done} of {len(missing)}")
    return [found[name] for name in checks]


def run_check(name: str, quick: bool) -> Outcome:
    """Run one check; an error in it is a figure that does not hold."""
    part, _, title = name.partition("/")
    check = find_checks([part])[name]
    try:
        results = tuple(check.run(quick))
    except Exception as error:
        results = (Result(title, "no error", f"{type(error).__name__}: {error}", False),)
    return Outcome(part, title, results)


def tabulate(outcomes: Sequence[Outcome]) -> Table:
    """The acceptance table."""
    rows = tuple(
        (f"{outcome.part}: {each.what}", each.wanted, each.reached, "yes" if each.holds else "NO", each.note)
        for outcome in outcomes
        for each in outcome.results
    )
    return Table("", ("what", "wanted", "reached", "holds", "note"), rows)


def summarize(outcomes: Sequence[Outcome]) -> str:
    """How many of the figures hold, in a sentence."""
    results = [each for outcome in outcomes for each in outcome.results]
    return f"{sum(each.holds for each in results)} of {len(results)} figures hold."


def write_markdown(path: Path, outcomes: Sequence[Outcome], quick: bool) -> None:
    """Write the acceptance table as a page of the documentation."""
    introduction = INTRODUCTION.format(quick=" with `--quick`" if quick else "")
    write_atomic(path, f"{introduction}\n{tabulate(outcomes).markdown()}\n\n{summarize(outcomes)}\n".encode())


def _load(part: str) -> Any:
    return import_module(f"{acceptance.__name__}.{part}")


def _file(folder: Path, name: str, quick: bool) -> Path:
    digest = hashlib.sha256(f"{name} {quick} {__version__} {code_digest()}".encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    return folder / f"{name.replace('/', '-').replace(' ', '-')}-{digest.hexdigest()[:16]}.json"


def _read(folder: Path | None, name: str, quick: bool) -> Outcome | None:
    if folder is None or not (path := _file(folder, name, quick)).exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Outcome(kept["part"], kept["check"], tuple(Result(**each) for each in kept["results"]))


def _write(folder: Path | None, name: str, quick: bool, outcome: Outcome) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(_file(folder, name, quick), json.dumps(outcome.as_json(), indent=1).encode())
