"""Work is told apart by what its result depends on, and by nothing else."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from restive.paper import work as module
from restive.paper.work import Work, code_digest

WORK = Work("play", "two-state-v1 B=5 egt:eta=0.1", {"policy": "egt", "runs": 3, "sizes": {"a": 1, "b": 2}})


def test_the_digest_depends_on_task_settings_and_code_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    same = [replace(WORK, label="other"), replace(WORK, weight=9.0)]
    same.append(replace(WORK, settings={"runs": 3, "sizes": {"b": 2, "a": 1}, "policy": "egt"}))
    assert {each.digest() for each in same} == {WORK.digest()}
    other = [replace(WORK, task="bound"), replace(WORK, settings={**WORK.settings, "runs": 4})]
    assert WORK.digest() not in {each.digest() for each in other}
    digest = WORK.digest()
    monkeypatch.setattr(module, "code_digest", lambda: "other code")
    assert WORK.digest() != digest
    monkeypatch.undo()
    monkeypatch.setattr(module, "__version__", "99")
    assert WORK.digest() != digest


def test_settings_survive_json() -> None:
    assert json.loads(json.dumps(WORK.spec())) == WORK.spec()


def test_the_file_is_named_in_words_that_any_file_system_takes() -> None:
    name = replace(WORK, label="a/b:c d\\e*?é=1.5").file_name()
    assert name == f"a-b-c-d-e-=1.5-{WORK.digest()}.parquet"


def test_the_code_digest_sees_every_file_that_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "restive"
    files = [room if room.endswith(".py") else f"{room}/code.py" for room in module.COMPUTING]
    for file in (*files, "problems/wireless.json", "page.py"):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text("one")
    monkeypatch.setattr(module, "ROOT", package)
    before = code_digest.__wrapped__()
    (package / "page.py").write_text("two")
    assert code_digest.__wrapped__() == before
    seen = {before}
    for file in (*files, "problems/wireless.json"):
        (package / file).write_text("two")
        seen.add(code_digest.__wrapped__())
    assert len(seen) == len(files) + 2


def test_the_rooms_that_compute_are_there() -> None:
    assert all((module.ROOT / room).exists() for room in module.COMPUTING)


def test_no_task_depends_on_a_room_that_is_not_in_the_digest() -> None:
    """What the tasks import, directly or through others, is a room that computes, or one that cannot move a number."""
    harmless = {"errors", "types", "version", "record", "processors", "snapshot", "trace", "experiments.work"}
    seen, waiting = set[str](), list((module.ROOT / "experiments/tasks").glob("*.py"))
    while waiting:
        for name in re.findall(r"^(?:from|import) restive\.([\w.]+)", waiting.pop().read_text("utf-8"), re.MULTILINE):
            file = module.ROOT / f"{name.replace('.', '/')}.py"
            if name not in seen:
                seen.add(name)
                waiting.append(file if file.exists() else file.with_suffix("") / "__init__.py")
    rooms = {room.removesuffix(".py").replace("/", ".") for room in module.COMPUTING} | harmless
    assert [name for name in seen if not any(f"{name}.".startswith(f"{room}.") for room in rooms)] == []
    assert "solvers.homogeneous" in seen
