"""Run the acceptance checks of everything that is said from logs, in worker processes, and tabulate their figures.

A check is a pure function of its size and of the code, so its figures are kept in a folder under a digest of both: the
same call continues where an earlier one ended, and repeats what other code had computed. The code of a check is that of
the modules of restive that are imported with its part, with the data files beside them. `reasons.toml` beside the checks
says why a figure is not reached.
"""

import ast
import hashlib
import json
import time
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import as_completed
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NamedTuple

import restive
from restive.errors import InputError, did_you_mean
from restive.files import write_atomic
from restive.logs import acceptance
from restive.logs.acceptance import Check, Result
from restive.paper.engines import open_engine, result_of
from restive.report.tables import Table
from restive.version import __version__

REASONS = Path(acceptance.__file__).with_name("reasons.toml")
INTRODUCTION = """\
# Acceptance of what is said from logs

Written by `restive check-logs{options} --out results/check-logs --markdown docs/reference/results/acceptance.md`
([options](../../how-to/logs/fit.md#restive-check-logs)). Every figure comes from simulated histories whose truth is known, with
fixed seeds: the same version prints the same figures. A note says how many histories a figure rests on. The small form has few
of them and allows for their noise: it can refute a figure, not confirm it. A figure of the full size that was computed before
the code changed says so.
`make acceptance` runs every check at its full size and continues where an earlier call ended. Speed is measured by `make bench`,
and `tests/logs/test_fit_oracle.py` compares the fit with numpyro.

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
    quick: bool = False
    earlier: bool = False  # whether other code than this computed them

    def as_json(self) -> dict[str, Any]:
        """The figures as plain data."""
        return self._asdict() | {"results": [result._asdict() for result in self.results]}


def find_checks(only: Sequence[str] = ()) -> dict[str, Check]:
    """The checks by `part/name`: all, or those of the parts and the single checks that are named.

    >>> find_checks(["tea"])
    Traceback (most recent call last):
        ...
    restive.errors.InputError: There are no checks of 'tea'.
    """
    parts = [module.name for module in iter_modules(acceptance.__path__)]
    asked = {name.partition("/")[0] for name in only}
    found = {
        f"{part}/{check.name}": check for part in parts if not only or part in asked for check in _load(part).CHECKS
    }
    for name in only:
        if name not in parts and name not in found:
            raise InputError(f"There are no checks of {name!r}{did_you_mean(name, [*parts, *found])}")
    return {name: check for name, check in found.items() if not only or {name, name.partition("/")[0]} & set(only)}


def run_checks(
    checks: Sequence[str],
    quick: bool,
    folder: Path | None,
    report: Callable[[str], None],
    workers: int | None = None,
    earlier: bool = False,
) -> list[Outcome]:
    """Run checks, named as by `find_checks`, each in a worker process; with a folder, those that are not kept there.

    Figures of the full size that are kept also stand for those of the small form; if `earlier`, also figures of the full
    size that other code computed.
    """
    found = {name: kept for name in checks if earlier and (kept := _read_earlier(folder, name)) is not None}
    found |= {
        name: kept for name in checks for size in (quick, False) if (kept := _read(folder, name, size)) is not None
    }
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
    check = find_checks([name])[name]
    try:
        results = tuple(each._replace(holds=bool(each.holds)) for each in check.run(quick))
    except Exception as error:
        results = (Result(title, "no error", f"{type(error).__name__}: {error}", False),)
    return Outcome(part, title, results, quick)


def tabulate(outcomes: Sequence[Outcome]) -> Table:
    """The acceptance table."""
    rows = tuple(
        (
            f"{outcome.part}: {each.what}",
            each.wanted,
            each.reached,
            _judge(each, outcome.quick),
            "; ".join(filter(None, ("small form" * outcome.quick, "earlier code" * outcome.earlier, each.note))),
        )
        for outcome in outcomes
        for each in outcome.results
    )
    return Table("", ("what", "wanted", "reached", "holds", "note"), rows)


def _judge(result: Result, quick: bool) -> str:
    if not result.holds:
        return "NO"
    return "not refuted" if quick else "yes"


def summarize(outcomes: Sequence[Outcome]) -> str:
    """How many of the figures hold, in a sentence for each size."""
    said = []
    sizes = (
        ((False, False), "of the full size hold"),
        ((False, True), "of the full size, computed by earlier code, hold"),
        ((True, False), "of the small form are not refuted"),
    )
    for size, words in sizes:
        held = [
            each.holds for outcome in outcomes if (outcome.quick, outcome.earlier) == size for each in outcome.results
        ]
        said += [f"{sum(held)} of {len(held)} figures {words}."] if held else []
    return " ".join(said)


def write_markdown(path: Path, outcomes: Sequence[Outcome], quick: bool, earlier: bool = False) -> None:
    """Write the acceptance table as a page of the documentation."""
    introduction = INTRODUCTION.format(options=" --quick" * quick + " --earlier" * earlier)
    parts = [introduction, tabulate(outcomes).markdown(), summarize(outcomes), *_explain(outcomes)]
    write_atomic(path, ("\n\n".join(part.strip("\n") for part in parts) + "\n").encode())


def _explain(outcomes: Sequence[Outcome]) -> list[str]:
    """What is not reached, and why, as a section of the page."""
    reasons = tomllib.loads(REASONS.read_text(encoding="utf-8"))
    missed = [f"{outcome.part}: {each.what}" for outcome in outcomes for each in outcome.results if not each.holds]
    lines = [f"- **{what}**: {reasons.get(what, 'the cause is not known.')}" for what in missed]
    return ["## What is not reached, and why", "\n".join(lines)] if lines else []


@cache
def list_code(module: str) -> dict[str, str]:
    """The code of a module of restive and of those that are imported with it, without comments and docstrings, and their data.

    Imports within functions do not count: checks call none of those.

    >>> list(list_code("restive.logs.group_sequential"))
    ['restive.logs.group_sequential']
    """
    root, waiting, found = Path(restive.__file__).parent, [module], dict[str, str]()
    while waiting:
        name = waiting.pop()
        path = root.joinpath(*name.split(".")[1:])
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if name in found or not name.startswith("restive.") or not path.exists():
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Import):
                waiting += [each.name for each in node.names]
            elif isinstance(node, ast.ImportFrom):
                waiting += [str(node.module), *(f"{node.module}.{each.name}" for each in node.names)]
        found[name] = ast.unparse(_Bare().visit(tree))
        if path.name == "__init__.py":
            data = [each for each in path.parent.iterdir() if each.suffix in (".json", ".toml") and each != REASONS]
            found |= {f"{name}/{each.name}": each.read_text(encoding="utf-8") for each in data}
    return dict(sorted(found.items()))


class _Bare(ast.NodeTransformer):
    """Takes docstrings out."""

    def visit(self, node: ast.AST) -> ast.AST:
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and ast.get_docstring(node) is not None
        ):
            node.body = node.body[1:] or [ast.Pass()]
        return super().generic_visit(node)


def _load(part: str) -> Any:
    return import_module(f"{acceptance.__name__}.{part}")


def _slug(name: str) -> str:
    return name.replace("/", "-").replace(" ", "-")


def _file(folder: Path, name: str, quick: bool) -> Path:
    digest = hashlib.sha256(f"{name} {quick} {__version__}".encode())
    for code in list_code(f"{acceptance.__name__}.{name.partition('/')[0]}").values():
        digest.update(code.encode())
    return folder / f"{_slug(name)}-{digest.hexdigest()[:16]}.json"


def _read(folder: Path | None, name: str, quick: bool) -> Outcome | None:
    if folder is None or not (path := _file(folder, name, quick)).exists():
        return None
    return _load_outcome(path)


def _read_earlier(folder: Path | None, name: str) -> Outcome | None:
    """The latest figures of the full size, whatever code computed them."""
    files = [] if folder is None else folder.glob(f"{_slug(name)}-{'?' * 16}.json")
    for path in sorted(files, key=lambda each: each.stat().st_mtime, reverse=True):
        kept = _load_outcome(path)
        if not kept.quick:
            return kept._replace(earlier=True)
    return None


def _load_outcome(path: Path) -> Outcome:
    kept = json.loads(path.read_text(encoding="utf-8"))
    return Outcome(**kept | {"results": tuple(Result(**each) for each in kept["results"])})


def _write(folder: Path | None, name: str, quick: bool, outcome: Outcome) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(_file(folder, name, quick), json.dumps(outcome.as_json(), indent=1).encode())
