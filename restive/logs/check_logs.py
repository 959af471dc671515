"""Run the acceptance checks of everything that is said from logs, in worker processes, and tabulate their figures.

A check is a pure function of its size and of the code, so its figures are kept in a folder, with a digest of each module
whose code ran: the same call continues where an earlier one ended, and repeats what other code had computed. A compiled
function and a constant do not show that they ran, so modules that these are imported from count too. `reasons.toml`
beside the checks says why a figure is not reached.
"""

import ast
import hashlib
import json
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import as_completed
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import FrameType
from typing import Any, NamedTuple

from restive.errors import InputError, did_you_mean
from restive.files import write_atomic
from restive.logs import acceptance
from restive.logs.acceptance import Check, Result
from restive.paper.engines import open_engine, result_of
from restive.report.tables import Table

ROOT = Path(acceptance.__file__).parents[2]
REASONS = Path(acceptance.__file__).with_name("reasons.toml")
MAX_NAMED = 3  # modules that changed, in a note
INTRODUCTION = """\
# Acceptance of what is said from logs

Written by `restive check-logs{options} --out results/check-logs --markdown docs/reference/results/acceptance.md`
([options](../../how-to/logs/fit.md#restive-check-logs)). Every figure comes from simulated histories whose truth is known, with
fixed seeds: the same version prints the same figures. A note says how many histories a figure rests on. The small form has few
of them and allows for their noise: it can refute a figure, not confirm it. A figure that was computed before code changed that ran
for it names the modules that changed.
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
    code: Mapping[str, str] = {}  # the digest of each module that ran
    changed: tuple[str, ...] = ()  # the modules that are different now

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
    found = {
        name: kept
        for name in checks
        for size in (quick, False)
        if (kept := _read(folder, name, size)) is not None and (not kept.changed or (earlier and not size))
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
    check, files = find_checks([name])[name], set[str]()

    def note(frame: FrameType, event: str, value: Any) -> None:
        files.add(frame.f_code.co_filename)

    threading.settrace(note)
    sys.settrace(note)
    try:
        results = tuple(each._replace(holds=bool(each.holds)) for each in check.run(quick))
    except Exception as error:
        results = (Result(title, "no error", f"{type(error).__name__}: {error}", False),)
    finally:
        sys.settrace(None)
        threading.settrace(None)
    return Outcome(part, title, results, quick, list_code(files))


def tabulate(outcomes: Sequence[Outcome]) -> Table:
    """The acceptance table; shares that count towards a pool of several checks are pooled at its end."""
    rows = tuple(
        (
            f"{outcome.part}: {each.what}",
            each.wanted,
            each.reached,
            _judge(each, outcome.quick),
            "; ".join(filter(None, ("small form" * outcome.quick, _tell_changes(outcome.changed), each.note))),
        )
        for outcome in outcomes
        for each in outcome.results
    )
    return Table("", ("what", "wanted", "reached", "holds", "note"), (*rows, *_pool(outcomes)))


def _pool(outcomes: Sequence[Outcome]) -> list[tuple[str, ...]]:
    """A row for each pool that several checks of the full size count towards."""
    pools = dict[str, list[Result]]()
    for outcome in outcomes:
        for each in outcome.results:
            if each.pool and not outcome.quick:
                pools.setdefault(f"{outcome.part}, all settings: {each.pool}", []).append(each)
    rows: list[tuple[str, ...]] = []
    for what, results in pools.items():
        held, of, wanted = sum(each.held for each in results), sum(each.of for each in results), results[0].wanted
        low, high = map(float, wanted.split("–"))
        if len(results) > 1:
            holds = "yes" if low <= held / of <= high else "NO"
            rows.append((what, wanted, f"{held / of:.3f}", holds, f"{of} intervals in {len(results)} settings"))
    return rows


def _tell_changes(changed: Sequence[str]) -> str:
    """A note on modules that changed after the figures were computed, without the name of the package.

    >>> _tell_changes(["restive.stats", "restive.logs.fit"]), _tell_changes(["restive.stats"] * 5)
    ('earlier code of stats, logs.fit', 'earlier code of 5 modules')
    """
    if not changed:
        return ""
    names = ", ".join(name.removeprefix("restive.") for name in changed)
    return f"earlier code of {names if len(changed) <= MAX_NAMED else f'{len(changed)} modules'}"


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
            each.holds
            for outcome in outcomes
            if (outcome.quick, bool(outcome.changed)) == size
            for each in outcome.results
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


def list_code(files: Iterable[str]) -> dict[str, str]:
    """The digest of each module of restive among these files, and of modules with compiled code and constants that they use.

    >>> sorted(list_code([f"{ROOT}/logs/group_sequential.py"]))
    ['restive.logs.group_sequential']
    """
    waiting = [_name(Path(file)) for file in files if Path(file).is_relative_to(ROOT) and Path(file) != Path(__file__)]
    found = dict[str, str]()
    while waiting:
        name = waiting.pop()
        if name in found or (digest := find_digest(name)) is None:
            continue
        found[name] = digest
        waiting += _find_uses(name)
    return dict(sorted(found.items()))


@cache
def find_digest(module: str) -> str | None:
    """The digest of a module without comments and docstrings, and of data files that it names; None without one."""
    path = _path(module)
    if not path.exists():
        return None
    code = path.read_text(encoding="utf-8")
    digest = hashlib.sha256(ast.unparse(_Bare().visit(ast.parse(code))).encode())
    for data in sorted({*path.parent.glob("*.json"), *path.parent.glob("*.toml")}):
        digest.update(data.read_bytes() if data.name in code else b"")
    return digest.hexdigest()[:16]


@cache
def _find_uses(module: str) -> tuple[str, ...]:
    """The modules from which a module imports constants or compiled code."""
    used = list[str]()
    for node in ast.walk(ast.parse(_path(module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("restive."):
            names = [each.name for each in node.names]
            used += [node.module] * (any(name.isupper() for name in names) or _is_compiled(node.module))
            used += [f"{node.module}.{name}" for name in names if _is_compiled(f"{node.module}.{name}")]
    return tuple(used)


@cache
def _is_compiled(module: str) -> bool:
    return _path(module).exists() and "@compiled" in _path(module).read_text(encoding="utf-8")


def _path(module: str) -> Path:
    path = ROOT.joinpath(*module.split(".")[1:])
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _name(path: Path) -> str:
    parts = ("restive", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


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
    return folder / f"{_slug(name)}{'-quick' * quick}.json"


def _read(folder: Path | None, name: str, quick: bool) -> Outcome | None:
    """The figures that are kept, with the modules that changed since."""
    if folder is None or not (path := _file(folder, name, quick)).exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    changed = tuple(module for module, digest in kept["code"].items() if find_digest(module) != digest)
    return Outcome(**kept | {"results": tuple(Result(**each) for each in kept["results"]), "changed": changed})


def _write(folder: Path | None, name: str, quick: bool, outcome: Outcome) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(_file(folder, name, quick), json.dumps(outcome.as_json(), indent=1).encode())
