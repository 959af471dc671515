"""The rooms import one way, kernels stay cacheable, files and functions stay short, and no luck comes from outside."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "restive").rglob("*.py"))
MODULES = {
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for path in SOURCES
}

# From the ground up: a module imports from its own layer and from those above it in this list, never from below.
LAYERS = (
    {"types", "errors", "version", "problem", "parallel", "files", "formats", "api"},
    {"kernels"},
    {"contract"},
    {"solvers"},
    {"policies", "problems"},
    {"world", "simulation", "trace", "stats", "checkpoint"},
    {"comparison", "plotting", "page", "console", "report", "solution", "checks", "gym"},
    {"paper", "benchmark", "desk"},
    {"server", "client"},
    {"cli"},
    {"__main__", ""},
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
MAX_MODULE, MAX_BODY = 500, 60


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def room_of(module: str) -> str:
    """The first part below the package: a file, or a folder with all that is in it."""
    return [*module.split("."), ""][1]


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every name that is imported anywhere, also inside functions, with the module that it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the whole name of the module"
            for alias in node.names:
                within = f"{node.module}.{alias.name}"
                yield alias.asname or alias.name, within if within in MODULES else str(node.module)


def own(module: str) -> bool:
    return module.partition(".")[0] == "restive"


def is_compiled(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        isinstance(mark, ast.Name) and mark.id in ("compiled", "brief") for mark in node.decorator_list
    )


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def body_length(function: ast.FunctionDef) -> int:
    """Lines after the signature and the docstring."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def climbing_imports(tree: ast.AST, room: str) -> list[str]:
    """What a module in that room imports from a layer above its own."""
    return [source for _, source in imports(tree) if own(source) and LEVEL[room_of(source)] > LEVEL[room]]


def stray_names(tree: ast.AST) -> set[str]:
    """What kernels use of other files than their own and the shared kernels; numba would not see it change."""
    foreign = {name for name, source in imports(tree) if own(source) and room_of(source) not in ("kernels", "types")}
    bodies = [statement for kernel in filter(is_compiled, functions(tree)) for statement in kernel.body]
    return foreign & {node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)}


def long_functions(tree: ast.AST) -> list[str]:
    return [node.name for node in functions(tree) if body_length(node) > MAX_BODY]


def ambient_luck(tree: ast.AST) -> set[str]:
    """Sources of luck other than the seed; np.random.Generator may be named, where a caller hands one over."""
    taken = {whole for name, source in imports(tree) for whole in (source, f"{source}.{name}")}
    modules = {"random", "uuid", "numpy.random"} & taken  # `secrets` makes tokens and keys, which need no replay
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    drawn = {ast.unparse(part) for part in parts if ast.unparse(part.value) in ("np.random", "numpy.random")}
    return modules | drawn - {"np.random.Generator"}


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_run_one_way(path: Path) -> None:
    module = name_of(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    assert climbing_imports(parse(path), room_of(module)) == []


def test_policies_and_problem_families_do_not_know_each_other() -> None:
    for room, other in (("policies", "problems"), ("problems", "policies")):
        for path in (ROOT / "restive" / room).rglob("*.py"):
            assert [source for _, source in imports(parse(path)) if room_of(source) == other and own(source)] == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_kernels_use_only_their_own_file_and_the_shared_kernels(path: Path) -> None:
    assert stray_names(parse(path)) == set()


def test_every_kernel_is_compiled_in_the_one_way() -> None:
    trees = {name_of(path): parse(path) for path in SOURCES}
    users = [
        name for name, tree in trees.items() if any(source.split(".")[0] == "numba" for _, source in imports(tree))
    ]
    assert users == ["restive/kernels/jit.py"]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_files_and_functions_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_MODULE
    assert long_functions(parse(path)) == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_no_luck_comes_from_outside(path: Path) -> None:
    assert ambient_luck(parse(path)) == set()


def test_rules_catch_what_they_forbid() -> None:
    upward = ast.parse("def late():\n    from restive import simulation\n")
    assert climbing_imports(upward, "solvers") == ["restive.simulation"]
    assert climbing_imports(upward, "cli") == []
    stray = "from restive.solvers.joint_dp import TIE\n@compiled\ndef kernel(a: Floats) -> float:\n    return a + TIE\n"
    assert stray_names(ast.parse(stray)) == {"TIE"}
    assert stray_names(ast.parse(stray.replace("solvers.joint", "kernels.box"))) == set()
    long = "def long() -> None:\n    'Doc.'\n" + "    pass\n" * (MAX_BODY + 1)
    assert long_functions(ast.parse(long)) == ["long"]
    assert ambient_luck(ast.parse("import random\nnp.random.default_rng()")) == {"random", "np.random.default_rng"}
    assert ambient_luck(ast.parse("from numpy import random\nfrom restive.policies import random")) == {"numpy.random"}
