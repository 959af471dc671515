"""The files in deploy/ agree with the command, with each other and with the files that they copy."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import typer.main
import yaml

from restive.cli import app
from restive.version import __version__

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
KNOWN = {"RESTIVE_STORE", "RESTIVE_KEYS"} | {
    f"RESTIVE_SERVE_{option.name.upper()}"
    for option in typer.main.get_command(app).commands["serve"].params  # type: ignore[attr-defined]
}


def read_objects() -> dict[str, Any]:
    return {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes" / "server.yaml").read_text())}


def test_every_environment_variable_is_one_that_the_command_reads() -> None:
    files = [file for file in DEPLOY.rglob("*") if file.is_file()]
    used = {name for file in files for name in re.findall(r"RESTIVE_[A-Z_]+", file.read_text())}
    assert {"RESTIVE_STORE", "RESTIVE_SERVE_HOST"} <= used <= KNOWN


def test_the_image_copies_files_that_exist_and_runs_as_a_user_of_its_own() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = [
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    ]
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], *wheel["force-include"], "requirements.lock"} <= {*copied}
    for name in copied:
        assert (ROOT / name).exists(), name
    assert "USER 10001:10001" in lines
    assert (DEPLOY / "start").stat().st_mode & 0o111


def test_the_composed_server_trusts_its_own_network_and_cannot_write_its_root() -> None:
    composed = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    server, network = composed["services"]["server"], composed["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert server["command"] == ["serve", "--trusted-proxy", network]
    assert server["read_only"]
    assert "reverse_proxy server:8787" in (DEPLOY / "Caddyfile").read_text()


def test_a_pod_uses_the_probes_of_the_server_and_no_more_rights_than_it_needs() -> None:
    found = read_objects()
    pod = found["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsUser"] == 10001
    (first,) = pod["initContainers"]
    assert (first["image"], first["args"]) == (container["image"], ["desk", "migrate"])
    assert first["securityContext"] == container["securityContext"]
    assert {each["name"] for each in first["env"]} == {"RESTIVE_STORE", "PGPASSWORD"}
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert found["Service"]["spec"]["selector"] == labels
    assert found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    kustomization = yaml.safe_load((DEPLOY / "kubernetes" / "kustomization.yaml").read_text())
    assert kustomization["images"][0] == {
        "name": container["image"], "newName": "registry.example.org/restive", "newTag": __version__,
    }  # fmt: skip


def test_the_dashboard_shows_metrics_that_the_server_has() -> None:
    from restive.server.monitoring import Metrics
    from restive.server.program_gauges import GAUGES

    metrics = Metrics()
    metrics.seconds.labels("/health", "GET").observe(0.1)
    there = set(re.findall(r"^([a-z_]+)[{ ]", metrics.render().decode(), re.MULTILINE))
    there |= set(re.findall(r"^# TYPE ([a-z_]+) counter", metrics.render().decode(), re.MULTILINE))
    there |= {f"restive_program_{name}" for name in GAUGES}
    dashboard = json.loads((DEPLOY / "grafana.json").read_text(encoding="utf-8"))
    shown = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {name for each in shown for name in re.findall(r"(?:restive|process)_[a-z_]+", each)}
    assert len(named) > 8
    assert named <= there
    assert {"restive_requests_total", "restive_rounds_decided_total", "process_resident_memory_bytes"} <= named
