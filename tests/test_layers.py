"""Packages import one way, kernels stay cacheable, files and functions stay short, and all random numbers come from a seed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "restive").rglob("*.py"))
MODULES = {
    path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for path in SOURCES
}

# Lowest layer first: a module imports only from its own layer and from lower ones.
LAYERS = (
    {"types", "errors", "version", "problem", "parallel", "files", "formats", "api", "display"},
    {"kernels"},
    {"contract"},
    {"solvers"},
    {"policies", "problems"},
    {"world", "observation", "simulation", "names", "agent", "trace", "stats", "checkpoint"},
    {"comparison", "plotting", "page", "console", "report", "solution", "checks", "gym", "precompile"},
    {"paper", "benchmark", "desk", "logs"},
    {"server", "client"},
    {"new", "sweeps"},
    {"cli"},
    {"__main__", ""},
)
LEVEL = {package: level for level, packages in enumerate(LAYERS) for package in packages}
MAX_MODULE, MAX_BODY = 500, 60


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def package_of(module: str) -> str:
    """The first part of a module's name below `restive`: a module or a package."""
    return [*module.split("."), ""][1]


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every imported name, also inside functions, with the module that it comes from."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: write the full name of the module"
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


def upward_imports(tree: ast.AST, package: str) -> list[str]:
    """What a module of that package imports from a higher layer."""
    return [source for _, source in imports(tree) if own(source) and LEVEL[package_of(source)] > LEVEL[package]]


def stray_names(tree: ast.AST) -> set[str]:
    """Names that kernels use from modules other than their own and the shared kernels; numba would not notice a change."""
    foreign = {name for name, source in imports(tree) if own(source) and package_of(source) not in ("kernels", "types")}
    bodies = [statement for kernel in filter(is_compiled, functions(tree)) for statement in kernel.body]
    return foreign & {node.id for body in bodies for node in ast.walk(body) if isinstance(node, ast.Name)}


def long_functions(tree: ast.AST) -> list[str]:
    return [node.name for node in functions(tree) if body_length(node) > MAX_BODY]


def ambient_randomness(tree: ast.AST) -> set[str]:
    """Sources of random numbers other than the seed; a generator that is made from a seed is allowed."""
    taken = {whole for name, source in imports(tree) for whole in (source, f"{source}.{name}")}
    modules = {"random", "uuid", "numpy.random"} & taken  # `secrets` makes tokens and keys, which need no replay
    parts = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    drawn = {ast.unparse(part) for part in parts if ast.unparse(part.value) in ("np.random", "numpy.random")}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and (node.args or node.keywords)]
    seeded = {ast.unparse(call.func) for call in calls} & {"np.random.default_rng"}
    return modules | drawn - {"np.random.Generator"} - seeded


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_run_one_way(path: Path) -> None:
    module = name_of(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    assert upward_imports(parse(path), package_of(module)) == []


def test_policies_and_problem_families_do_not_import_each_other() -> None:
    for package, other in (("policies", "problems"), ("problems", "policies")):
        for path in (ROOT / "restive" / package).rglob("*.py"):
            assert [source for _, source in imports(parse(path)) if package_of(source) == other and own(source)] == []


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_kernels_use_only_their_own_file_and_the_shared_kernels(path: Path) -> None:
    assert stray_names(parse(path)) == set()


def test_only_one_module_imports_numba() -> None:
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
def test_random_numbers_come_only_from_the_seed(path: Path) -> None:
    assert ambient_randomness(parse(path)) == set()


def test_rules_catch_what_they_forbid() -> None:
    upward = ast.parse("def late():\n    from restive import simulation\n")
    assert upward_imports(upward, "solvers") == ["restive.simulation"]
    assert upward_imports(upward, "cli") == []
    stray = "from restive.solvers.joint_dp import TIE\n@compiled\ndef kernel(a: Floats) -> float:\n    return a + TIE\n"
    assert stray_names(ast.parse(stray)) == {"TIE"}
    assert stray_names(ast.parse(stray.replace("solvers.joint", "kernels.box"))) == set()
    long = "def long() -> None:\n    'Doc.'\n" + "    pass\n" * (MAX_BODY + 1)
    assert long_functions(ast.parse(long)) == ["long"]
    assert ambient_randomness(ast.parse("import random\nnp.random.default_rng()")) == {
        "random",
        "np.random.default_rng",
    }
    assert ambient_randomness(ast.parse("from numpy import random\nfrom restive.policies import random")) == {
        "numpy.random"
    }
