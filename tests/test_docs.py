"""Documents are correct and complete: their examples are executed, and every public name is documented.

A page is executed from top to bottom in one namespace and one empty folder: `>>>` examples, plain ```python blocks
(with their printed output in a ```text block right below; one that begins with `# name.py` is also saved as that file),
and ```console blocks, whose `$ restive`, `$ curl`, `$ grep` and `$ export` lines are run. `$ restive serve ... &`
starts a server that runs until the page ends, on a free port; the port of the page (8787, or the one it names) is
replaced in commands and in their output. `examples` is the folder of this repository. JSON that curl prints gets a blank
after each comma and colon, so that a page can break its lines. `...` matches anything; speeds are not compared.
"""

import contextlib
import doctest
import inspect
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.main

import restive
from restive.cli import app
from restive.logs.cli import logs_verb
from restive.policies import POLICIES
from restive.problems import PROBLEMS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


def find_verbs(group: Any, before: str = "") -> dict[str, Any]:
    """All verbs of a group by name, including nested groups: `desk decide` as well as `desk`."""
    verbs: dict[str, Any] = {}
    for name, command in getattr(group, "commands", {}).items():
        verbs |= {before + name: command} | find_verbs(command, f"{before}{name} ")
    return verbs


def find_shared_options() -> dict[tuple[str, str], Any]:
    """The options of every verb that reads a history or shows an answer, by name and help."""

    def verb(history: object, output: object) -> None:
        """A verb."""

    alone = typer.Typer(add_completion=False)
    alone.command()(logs_verb(verb))
    params: list[Any] = list(typer.main.get_command(alone).params)
    return {(option.name, option.help): option for option in params}


VERBS = find_verbs(typer.main.get_command(app))
LOGS = DOCS / "how-to/logs"
SHARED = find_shared_options()
MACHINE = re.compile(r"(?<![\w.:/])/(work|home|root|tmp|usr|var|opt|etc|mnt|Users)\b|\b[A-Z]:\\")
INDEX_HOST = re.compile(r"index-url|find-links|/simple/|\bpackages?\.\w+\.\w+", re.IGNORECASE)
RUN = ("restive ", "curl ", "grep ", "export ")
SPEEDS = (
    (re.compile(r"(?<=\]) +[\d.]+ *$", re.MULTILINE), " 1"),
    (re.compile(r"(?<=   [01]) {3,}\d+\.\d *$", re.MULTILINE), " 1"),
    (re.compile(r'(?<="agent_steps_per_second": )\d+'), "1"),
    (re.compile("─+"), "─"),
    (re.compile(r"^restive: compiling kernels.*\n", re.MULTILINE), ""),
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


class Piece(NamedTuple):
    """A part of a page: a fenced block with its language, or the prose between blocks (language "")."""

    language: str
    text: str
    line: int


def cut(text: str) -> Iterator[Piece]:
    """The pieces of a page in order, without the fence lines."""
    language, lines, first, fenced = "", list[str](), 0, False
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if fence := re.match(r" {0,3}```(\w*)", line):
            yield Piece(language, "".join(lines), first)
            language, lines, first, fenced = ("" if fenced else fence[1] or "text"), [], number, not fenced
        else:
            lines.append(line)
    yield Piece(language, "".join(lines), first)


def agree(shown: str, printed: str) -> bool:
    for speed, one in SPEEDS:
        shown, printed = speed.sub(one, shown), speed.sub(one, printed)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(shown.strip() + "\n", printed.strip() + "\n", flags)


def complain(piece: Piece, what: str, shown: str, printed: str) -> str:
    return f"line {piece.line}: {what}\n--- shown\n{shown.strip()}\n--- printed\n{printed.strip()}\n"


def run_examples(piece: Piece, names: dict[str, object], page: str) -> list[str]:
    """Run the examples of a piece and return the failures that doctest reports."""
    examples = doctest.DocTestParser().get_examples(piece.text, page)
    said: list[str] = []
    test = doctest.DocTest(examples, names, page, page, piece.line, piece.text)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    return said


def run_block(piece: Piece, below: Piece | None, names: dict[str, object], page: str) -> list[str]:
    """Execute a plain block, and save it if it names its file; a text block right below it is its expected output."""
    if named := re.match(r"# (\w+\.py)\n", piece.text):
        Path(named[1]).write_text(piece.text, encoding="utf-8")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * piece.line + piece.text, page, "exec"), names)
    shown = below.text if below and below.language == "text" else ""
    return [] if agree(shown, printed.getvalue()) else [complain(piece, "the block", shown, printed.getvalue())]


def run_console(piece: Piece, shell: "Shell") -> list[str]:
    """Run the supported commands; without shown output they must succeed, and other commands must not show output."""
    failed = []
    for part in re.split(r"^\$ ", piece.text, flags=re.MULTILINE)[1:]:
        command, shown = take_command(re.sub(r" *\\\n +", " ", part))
        code, printed = shell.run(command) if command.startswith(RUN) else (0, "")
        right = agree(shown, printed) if shown.strip() else code == 0
        if not right:
            failed.append(complain(piece, command, shown, printed))
    return failed


def take_command(text: str) -> tuple[str, str]:
    """The first command of a text, which extends over several lines inside quotes, and the rest."""
    command, _, rest = text.partition("\n")
    while command.count("'") % 2 and rest:
        more, _, rest = rest.partition("\n")
        command = f"{command}\n{more}"
    return command, rest


class Shell:
    """Runs the commands of a page in one environment; its servers stop at the end of the page."""

    def __init__(self) -> None:
        self._environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        self._servers: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, str] = {}  # the port on the page, and the real one

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command, and its output."""
        for said, real in self._ports.items():
            command = command.replace(said, real)
        if command.startswith("restive serve ") and command.endswith(" &"):
            code, printed = self._serve(command.removesuffix(" &"))
        elif command.startswith("export "):
            code, printed = self._export(command)
        else:
            code, printed = self._call(command, subprocess.STDOUT)[::2]
        for said, real in self._ports.items():
            printed = printed.replace(real, said)
        return code, lay_out(printed) if command.startswith("curl ") else printed

    def _call(self, command: str, errors: int) -> tuple[int, str, str]:
        done = subprocess.run(
            command,
            shell=True,
            stdout=subprocess.PIPE,
            stderr=errors,
            encoding="utf-8",
            env=self._environment,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stderr or "", done.stdout

    def _export(self, command: str) -> tuple[int, str]:
        code, said, found = self._call(f"{command} && env -0", subprocess.PIPE)
        self._environment = dict(each.split("=", 1) for each in found.split("\0") if each) or self._environment
        return code, said

    def _serve(self, command: str) -> tuple[int, str]:
        """Start a server, wait until it listens, and return its output."""
        port = re.search(r" --port (\d+)", command)
        redirected = re.search(r" 2> (\S+)$", command)
        log = Path(redirected[1] if redirected else f"server-{len(self._servers)}.txt")
        bare = re.sub(r" --port \d+| 2> \S+$", "", command)
        with log.open("wb") as output:
            arguments = ["/bin/sh", "-c", f"exec {bare} --port 0"]
            server = subprocess.Popen(arguments, stdout=output, stderr=output, env=self._environment)
        self._servers.append(server)
        while "Ctrl+C" not in log.read_text(encoding="utf-8") and server.poll() is None:
            time.sleep(0.02)
        printed = log.read_text(encoding="utf-8")
        if found := re.search(r"https?://[\w.]+(:\d+)", printed):
            self._ports[f":{port[1] if port else 8787}"] = found[1]
        return server.poll() or 0, "" if redirected else printed

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.terminate()
            server.wait(60)


def lay_out(printed: str) -> str:
    """JSON in what was printed, with blanks where its lines can be broken."""
    lines = printed.splitlines()
    for place, line in enumerate(lines):
        if line.startswith(("{", "[")):
            with contextlib.suppress(ValueError):
                lines[place] = json.dumps(json.loads(line), ensure_ascii=False)
    return "\n".join(lines)


def run_page(text: str, page: str) -> list[str]:
    """Run all examples of a page and return the failures."""
    names: dict[str, object] = {"__name__": "__main__"}
    pieces = [piece for piece in cut(text) if piece.language or piece.text.strip()]
    failed: list[str] = []
    with Shell() as shell:
        for piece, below in zip(pieces, [*pieces[1:], None], strict=True):
            if piece.language == "console":
                failed += run_console(piece, shell)
            elif piece.language in ("", "python") and ">>> " in piece.text:
                failed += run_examples(piece, names, page)
            elif piece.language == "python":
                failed += run_block(piece, below, names, page)
    return failed


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_shows_what_its_examples_print(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("examples").symlink_to(ROOT / "examples")
    failed = run_page(page.read_text(encoding="utf-8"), name_of(page))
    assert not failed, "\n".join(failed)


def test_a_wrong_example_of_every_kind_is_found() -> None:
    wrong = ["    >>> 1 + 1\n    3\n", "```python\n>>> 1 + 1\n3\n```\n", "```python\nprint(2)\n```\n```text\n3\n```\n",
            "```console\n$ restive --version\n9.9.9\n```\n",
            "```console\n$ restive simulate --policy nobody\n```\n",
            "```console\n$ curl -s http://127.0.0.1:1/health\nall is well\n```\n",
            "```console\n$ make test\nall is well\n```\n"]  # fmt: skip
    assert [len(run_page(each, "page")) > 0 for each in wrong] == [True] * len(wrong)


def test_blocks_of_a_page_share_names_and_speeds_are_ignored() -> None:
    page = "```python\na = 2\nprint(a)\n```\n```text\n2\n```\n\n    >>> b = a + 1\n\n```python\n>>> a + b\n5\n```\n"
    assert not run_page(page, "page")
    assert agree("egt  9.1 ± 0.2  0.75 [0.69, 0.81]  7.1\n───", "egt  9.1 ± 0.2  0.75 [0.69, 0.81]  12.3  \n─────")
    assert not agree("egt  9.1 ± 0.2  0.75 [0.69, 0.81]  7.1", "egt  9.1 ± 0.2  0.75 [0.69, 0.82]  7.1")
    assert agree("random  9.1 ± 0.2      0    7.1", "random  9.1 ± 0.2      0   12.3")
    assert not agree("random  9.1 ± 0.2      0    7.1", "random  9.1 ± 0.2      1    7.1")


def test_a_server_of_a_page_runs_until_the_page_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLACE", raising=False)
    begun = "$ restive serve --store a.db --port 9911 &\nrestive: listening on http://127.0.0.1:9911, ...\n...\n"
    asked = '$ export PLACE=http://127.0.0.1:9911\n$ curl -s $PLACE/health\n{"status": "ok",\n "version": ...}\n'
    page = f"```console\n{begun}{asked}$ grep -c listening server-0.txt\n1\n```\n"
    assert not run_page(page, "page")
    assert "PLACE" not in os.environ
    (address,) = re.findall(r"http://[\w.:]+", Path("server-0.txt").read_text())
    assert len(run_page(f"```console\n$ curl -s {address}/health\n```\n", "page")) == 1  # it is gone


def test_a_block_that_names_its_file_is_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = "```python\n# mine.py\na = 2\n```\n\n    >>> import mine\n    >>> mine.a\n    2\n"
    monkeypatch.syspath_prepend(tmp_path)
    assert not run_page(page, "page")


@pytest.mark.parametrize("page", [page for page in DOCS.rglob("*.md") if page.name != "index.md"], ids=name_of)
def test_every_page_of_docs_has_an_executed_example(page: Path) -> None:
    assert re.search(r"^ *>>> |^```python|^\$ restive ", page.read_text(encoding="utf-8"), re.MULTILINE)


def rows(text: str, *heads: str) -> list[list[str]]:
    """The rows of the first table with these heads."""
    lines = iter(text.splitlines())
    for line in lines:
        if [cell.strip() for cell in line.strip("|").split("|")] == list(heads):
            next(lines)
            break
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def section(text: str, head: str) -> str:
    """The text below a heading of the second level."""
    assert f"\n## {head}\n" in text, f"no section {head!r}"
    return text.partition(f"\n## {head}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("name", POLICIES)
def test_page_of_a_policy_names_exactly_its_settings_and_defaults(name: str) -> None:
    page = read(f"docs/reference/policies/{name}.md")
    named = [tuple(row[:2]) for row in rows(page, "setting", "default", "meaning")]
    assert named == [(f"`{field.name}`", f"`{field.default!r}`") for field in fields(POLICIES[name])]
    assert f"`{name}`" in page.splitlines()[0]
    assert "Reference" in page


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_is_in_the_overview(name: str) -> None:
    assert f"[`{name}`](policies/{name}.md)" in read("docs/reference/policies.md")


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_has_a_section_with_its_settings_and_defaults(name: str) -> None:
    documented = section(read("docs/reference/problems.md"), f"`{name}`")
    named = [tuple(row[:2]) for row in rows(documented, "setting", "default")]
    parameters = inspect.signature(PROBLEMS[name]).parameters.values()
    assert named == [(f"`{each.name}`", f"`{each.default!r}`") for each in parameters]
    assert name in read("docs/reference/command.md")


def describe_default(option: Any) -> str:
    if option.required:
        return "required"
    if isinstance(option.show_default, str):
        return option.show_default
    words = [word for value, word in ((None, "none"), (False, "off"), (True, "on")) if option.default is value]
    return words[0] if words else f"`{option.default}`"


def describe_names(option: Any) -> str:
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))


def test_verbs_of_groups_are_among_the_verbs() -> None:
    assert {"desk", "desk init", "desk decide", "desk erase", "desk token", "desk token make", "simulate"} <= set(VERBS)


def table_of_options(text: str) -> list[tuple[str, ...]]:
    return [tuple(row[:2]) for row in rows(text, "option", "default", "meaning")]


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_section_with_exactly_its_options_and_defaults(verb: str) -> None:
    sources = [DOCS / "reference/command.md", *sorted(LOGS.glob("*.md"))]
    pages = "".join(page.read_text(encoding="utf-8") for page in sources)
    own = [option for option in VERBS[verb].params if (option.name, option.help) not in SHARED]
    documented = table_of_options(section(pages, f"`restive {verb}`"))
    assert documented == [(describe_names(option), describe_default(option)) for option in own]


def test_options_of_all_verbs_that_answer_from_logs_are_documented_once() -> None:
    documented = table_of_options(section(read("docs/how-to/logs/from-logs.md"), "Options"))
    assert documented == [(describe_names(option), describe_default(option)) for option in SHARED.values()]


def test_every_public_module_and_name_is_documented() -> None:
    documented = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))
    modules = [path.relative_to(ROOT).with_suffix("").as_posix() for path in (ROOT / "restive").rglob("[!_]*.py")]
    wanted = [*(module.replace("/", ".") for module in modules), *restive.__all__]
    assert [word for word in wanted if not re.search(rf"(?<![\w.]){re.escape(word)}\b", documented)] == []


def test_index_links_every_page() -> None:
    index = read("docs/index.md")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.name != "index.md"]
    assert [page for page in pages if f"]({page})" not in index] == []


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_have_a_target(page: Path) -> None:
    prose = "".join(piece.text for piece in cut(page.read_text(encoding="utf-8")) if not piece.language)
    for target in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", prose):
        file, _, anchor = target.partition("#")
        place = page.parent / file if file else page
        assert place.exists(), f"{target} does not exist"
        assert not anchor or anchor in anchors(place), f"{target} has no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_page_names_no_package_index_and_no_place_on_a_machine(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not INDEX_HOST.search(text)
    assert not MACHINE.search(text)


def test_readme_shows_the_results_of_the_last_comparison() -> None:
    results = read("docs/reference/results/compared.md")
    policies = ("egt", "wiql", "thompson-whittle", "cet-whittle", "lagrange")
    shown = rows(read("README.md"), "people", *policies)
    assert len(shown) == 6
    for scenario, *cells in shown:
        (table,) = re.findall(rf"\*\*Gap closed in {scenario}\*\*\n\n(.*?)\n\n", results, re.DOTALL)
        head, _, *lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
        closed = {line[0]: line[head.index("t = 30")] for line in lines}
        assert cells == [closed[policy] for policy in policies]


def test_readme_is_short() -> None:
    assert len(read("README.md").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_page_has_a_placeholder(page: Path) -> None:
    assert not re.search(r"^(TODO|TBD|FIXME|[A-Z]{4,})$", page.read_text(encoding="utf-8"), re.MULTILINE)
