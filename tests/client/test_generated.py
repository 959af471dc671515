"""A client that `openapi-python-client` generates from our OpenAPI document, against a real server.

The generator is installed in an environment of its own, because it needs an older typer than ours. What it generates needs
httpx and attrs alone.
"""

import importlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import polars as pl
import pytest

from client.served import Served
from restive.desk.excel import excel_bytes

STATES = {"agent": ["ann", "ben", "cem", "dia"], "state": ["low", "high", "low", "low"]}
PLAN = {"states": ["low", "high"], "rewards": [0, 1], "budget": 2, "control": 0}
TYPES = ("text/csv", "application/zip", "application/vnd.apache.parquet",
         "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet")  # fmt: skip

pytestmark = pytest.mark.soak


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command of the generator, installed here if it is not on the path."""
    if found := shutil.which("openapi-python-client"):
        return found
    folder = tmp_path_factory.mktemp("generator")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([folder / "bin/pip", "install", "--quiet", "openapi-python-client"], check=True)
    return str(folder / "bin/openapi-python-client")


@pytest.fixture(scope="module")
def generated(generator: str, served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of the generated package; the generator has nothing to complain about."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(httpx.get(f"{served.address}/openapi.json").text)
    # Which types are bytes: without it, the generator leaves out files among the answers.
    (folder / "config.yaml").write_text(
        json.dumps({"content_type_overrides": dict.fromkeys(TYPES[1:], "application/octet-stream")})
    )
    command = [
        generator,
        "generate",
        "--path",
        "openapi.json",
        "--config",
        "config.yaml",
        "--output-path",
        "platform_client",
    ]
    done = subprocess.run([*command, "--meta", "none"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stdout.splitlines() if line.startswith("WARNING")]
    assert not warned, done.stdout
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield "platform_client"


class Calls:
    """The operations of the generated client by name."""

    def __init__(self, package: str, served: Served) -> None:
        self.package = package
        client = importlib.import_module(f"{package}.client")
        self.client = client.AuthenticatedClient(served.address, served.secret, raise_on_unexpected_status=True)

    def ask(self, operation: str, *path: Any, **settings: Any) -> Any:
        """The parsed answer of an operation."""
        module = importlib.import_module(f"{self.package}.api.{operation}")
        return module.sync(*path, client=self.client, **settings)

    def model(self, name: str, data: dict[str, Any]) -> Any:
        found = getattr(importlib.import_module(f"{self.package}.models"), name)
        return found.from_dict(data)

    def file(self, content: bytes) -> Any:
        return importlib.import_module(f"{self.package}.types").File(payload=io.BytesIO(content))


@pytest.fixture
def calls(generated: str, served: Served) -> Iterator[Calls]:
    calls = Calls(generated, served)
    with calls.client:
        yield calls


def write_parquet() -> bytes:
    content = io.BytesIO()
    pl.DataFrame(STATES).write_parquet(content)
    return content.getvalue()


TABLES: dict[str, Callable[[], bytes]] = {
    "csv": lambda: pl.DataFrame(STATES).write_csv().encode(),
    "parquet": write_parquet,
    "xlsx": lambda: excel_bytes(pl.DataFrame(STATES), "states"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_round_with_an_uploaded_table(calls: Calls, kind: str) -> None:
    name = f"generated-{kind}"
    calls.ask("programs.create", body=calls.model("CreateBody", {"name": name, **PLAN}))
    table = TABLES[kind]()
    tried = calls.ask("rounds.decide", name, body=calls.file(table), dry_run=True, budget=1)
    assert (tried.recorded, [row.list_ for row in tried.people].count("chosen")) == (False, 1)
    decided = calls.ask("rounds.decide", name, body=calls.file(table), budget=3, idempotency_key="k1")
    again = calls.ask("rounds.decide", name, body=calls.file(table), budget=3, idempotency_key="k1")
    assert (decided.round_, decided.recorded, again.to_dict()) == (1, True, decided.to_dict())
    rows = [{"agent": agent, "done": True, "next_state": "high"} for agent in STATES["agent"]]
    learned = calls.ask("people.learn", name, body=calls.model("OutcomesBody", {"outcomes": rows}))
    assert learned.new == 4


def test_settings_in_the_body_files_and_problems(calls: Calls) -> None:
    calls.ask("programs.create", body=calls.model("CreateBody", {"name": "generated", **PLAN}))
    body = calls.model("DecideBody", {"states": STATES, "budget": 1, "dry_run": True})
    assert calls.ask("rounds.decide", "generated", body=body).recorded is False
    assert calls.ask("rounds.decide", "generated", body=calls.model("DecideBody", {"states": STATES})).round_ == 1
    found = calls.ask("results.results", "generated")
    assert found.reach.people == 4
    assert [each.round_ for each in calls.ask("rounds.list_rounds", "generated").items] == [1]
    assert calls.ask("programs.status", "generated").people.active == 4
    with zipfile.ZipFile(calls.ask("programs.export_program", "generated").payload) as packed:
        assert "generated/agents.parquet" in packed.namelist()
    assert calls.ask("rounds.list_xlsx", "generated", 1).payload.read(2) == b"PK"
    assert calls.ask("rounds.list_csv", "generated", 1).startswith("rank,agent")
    refused = calls.ask("rounds.decide", "generated", body=calls.file(b"agent,state\nann,loud\n"))
    assert (refused.code, refused.faults[0].row, refused.recorded) == ("invalid_table", 2, False)
    made = calls.ask(
        "users.make_new_token",
        body=calls.model("InviteBody", {"name": "system", "grants": [{"program": "generated", "role": "viewer"}]}),
    )
    assert made.token.startswith("rst_")
