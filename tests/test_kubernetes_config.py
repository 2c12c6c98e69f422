"""The configuration of the Kubernetes base, served by a process: tokens, policy, metrics, a changed ConfigMap."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from omnigraph.server.auth.token_file import create_token
from omnigraph.server.auth.tokens import Principal
from support.deployment import DEPLOY, read_manifests
from support.serving import Program, make_graph, program, request
from support.waiting import wait_for

CONFIG = DEPLOY / "kubernetes" / "config"
CONTAINER = read_manifests()["Deployment"]["spec"]["template"]["spec"]["containers"][0]
ENTRY = "omnigraph.cli.commands.serve.server_program"
CHANGE = '{"query": "query add() { insert Person { name: \\"Cleo\\" } }"}'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="symbolic links")


def mount(folder: Path, version: int, files: dict[str, str]) -> None:
    """Put files into a volume as the kubelet does: a new folder, and one rename of the link `..data`."""
    data = folder / f"..{version}"
    data.mkdir(parents=True)
    for name, text in files.items():
        (data / name).write_text(text, encoding="utf-8")
    (folder / "..data_tmp").symlink_to(data.name)
    (folder / "..data_tmp").rename(folder / "..data")
    for name in files:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")


def status(server: Program, token: str, path: str, body: str | None = None) -> int:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    method = "GET" if body is None else "POST"
    address = server.address.replace("0.0.0.0", "127.0.0.1")
    return request(address, path, method=method, headers=headers, body=body).status


def test_the_configuration_serves_and_a_changed_config_map_takes_effect(tmp_path):
    graph = make_graph(tmp_path / "kb.omni", "Ada")
    tokens = tmp_path / "tokens.json"
    ana, ben = (create_token(tokens, Principal(actor)) for actor in ("ana", "ben"))
    replaced = {
        "s3://graphs/kb": str(graph),
        "/etc/omnigraph/tokens/tokens.json": str(tokens),
        "drain_s: 5": "drain_s: 0",
    }
    files = {path.name: path.read_text(encoding="utf-8") for path in CONFIG.iterdir()}
    for old, new in replaced.items():
        assert old in files["omnigraph.yaml"]
        files["omnigraph.yaml"] = files["omnigraph.yaml"].replace(old, new)
    volume = tmp_path / "config"
    mount(volume, 1, files)
    variables = {item["name"]: item["value"] for item in CONTAINER["env"]}
    variables |= {
        "OMNIGRAPH_CONFIG": str(volume / "omnigraph.yaml"),
        "OMNIGRAPH_BIND": "0.0.0.0:0",
        "OMNIGRAPH_SERVER_METRICS_BIND": "127.0.0.1:0",
    }
    with program(tmp_path, module=ENTRY, **variables) as server:
        assert [status(server, token, "/mutate", CHANGE) for token in (ana, ben)] == [200, 403]
        assert [status(server, token, "/status") for token in (ana, ben)] == [200, 403]
        events = [json.loads(line) for line in server.log.splitlines()]
        address = next(event for event in events if event["event"] == "metrics")["address"]
        assert b"omnigraph_http_requests_total" in request(address, "/metrics").body
        mount(volume, 2, {**files, "policy.yaml": files["policy.yaml"].replace("[ana, ben]", "[ana]")})
        shutil.rmtree(volume / "..1")
        wait_for(lambda: status(server, ben, "/snapshot") == 403, "the reload of the ConfigMap")
        assert status(server, ana, "/snapshot") == 200
        assert server.stop() == 0
