"""How kernels are compiled: without the GIL, cached where no edit of a helper can leave them stale, and said once."""

import gc
import os
import shutil
import subprocess
import sys
from importlib import import_module, invalidate_caches
from pathlib import Path
from typing import Any, cast

import numba
import pytest

from restive.kernels.jit import cache_folder, compiled, inlined
from restive.kernels.rng import mix

MODULE = import_module("restive.kernels.jit")
CALL = "import numpy; from restive.kernels.rng import mix; assert mix(numpy.uint64(0)) == 0"


def double(value: int) -> int:
    return 2 * value


def test_a_kernel_releases_the_gil_and_is_cached() -> None:
    kernel, settings = cast(Any, mix), cast(Any, numba.config)
    assert kernel.targetoptions["nogil"]
    users = settings.CACHE_DIR
    assert str(Path(users) / cache_folder().name if users else cache_folder()) in kernel._cache.cache_path


def test_an_inlined_helper_becomes_part_of_its_caller_and_the_garbage_collector_stays_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    helper: Any = inlined(double)

    def quadruple(value: int) -> int:
        return int(helper(helper(value)))

    assert compiled(quadruple)(3) == 12
    assert helper.signatures == []
    assert helper(3) == 6
    assert gc.isenabled()


def test_compiling_leaves_the_users_own_cache_where_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for own in ("", str(tmp_path)):
        monkeypatch.setattr(numba.config, "CACHE_DIR", own)
        compiled(double)
        assert own == cast(Any, numba.config).CACHE_DIR


def test_the_cache_of_a_user_gets_a_folder_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    kernel: Any = compiled(double)
    assert kernel(4) == 8
    assert kernel._cache.cache_path.startswith(str(tmp_path / cache_folder().name))


def test_a_kernel_is_not_cached_elsewhere_if_our_folder_is_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "/dev/null/nowhere")
    kernel = compiled(double)
    assert kernel(21) == 42
    assert kernel._cache.cache_path is None  # type: ignore[attr-defined]


def test_an_edited_helper_means_another_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(Path(str(MODULE.__file__)).parent, tmp_path / "kernels")
    monkeypatch.setattr(MODULE, "__file__", str(tmp_path / "kernels" / "jit.py"))
    assert cache_folder.__wrapped__() == cache_folder()
    helper = tmp_path / "kernels" / "rng.py"
    helper.write_text(helper.read_text() + "\n# edited\n")
    edited = cache_folder.__wrapped__()
    assert edited != cache_folder()
    monkeypatch.setattr(MODULE, "__version__", "0.0.0")
    assert cache_folder.__wrapped__() not in (edited, cache_folder())


def test_the_first_start_on_a_machine_says_why_it_is_slow_and_later_ones_are_silent(tmp_path: Path) -> None:
    own = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    environment = {**own, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}

    def start(program: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == ""
        return done.stderr

    assert start(CALL) == "restive: compiling kernels at their first use; later starts skip this.\n"
    assert start(CALL) == ""


def test_a_renamed_record_does_not_end_later_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = """
from typing import NamedTuple
from restive.kernels.jit import compiled
class Pair(NamedTuple):
    one: int
    two: int
@compiled
def swap(pair: Pair) -> Pair:
    return Pair(pair.two, pair.one)
"""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("Pair", "Couple"):
        (tmp_path / "renamed.py").write_text(text.replace("Pair", name))
        MODULE._file_digest.cache_clear()
        sys.modules.pop("renamed", None)
        invalidate_caches()
        module = import_module("renamed")
        assert tuple(module.swap(getattr(module, name)(1, 2))) == (2, 1)
