"""The files of deploy/: their syntax, and their agreement with the options, variables, routes and times of the program.

No container daemon, systemd or cluster runs here. Linters and schemas check the syntax; the entry point of the image
runs as a process with the variables of the files.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from omnigraph.cli.commands.serve.server_program import DEFAULT_BIND
from omnigraph.cli.main import run
from omnigraph.cli.program import build_program
from omnigraph.cli.reference import command_tree
from omnigraph.config import find_config
from omnigraph.config_keys import SERVER_SETTINGS
from omnigraph.server.deployment.settings import ServerSettings, read_settings
from omnigraph.server.observability import metrics_endpoint
from omnigraph.server.process.listening import BACKLOG
from omnigraph.server.route_table import ROUTES
from support.deployment import (
    DEPLOY,
    ROOT,
    files,
    known_variables,
    read_compose,
    read_containerfile,
    read_manifests,
    read_unit,
    size_of,
    stop_time,
    values_of,
    words_of,
)
from support.serving import WAIT_S, environment, make_graph, program, request
from support.waiting import wait_for

PORT = int(DEFAULT_BIND.rpartition(":")[2])
PATHS = {route.path for route in ROUTES}
ENTRY = "omnigraph.cli.commands.serve.server_program"
TOKEN = "a-token-of-this-test"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def tool(name: str) -> str:
    """Return a program of the test environment or of the system; skips the test without it."""
    own = Path(sysconfig.get_path("scripts")) / name
    found = str(own) if own.is_file() else shutil.which(name)
    if found is None:
        pytest.skip(f"the program '{name}' is not installed")
    return found


def checked(*command: str) -> str:
    """Run a program that must succeed and return what it printed."""
    found = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout + found.stderr


def settings_of(config: Path, environ: dict[str, str] | None = None) -> ServerSettings:
    """Return the settings of a server with a configuration file; an unknown key fails."""
    found = find_config(str(config), environ or {})
    assert found.warnings == ()
    return read_settings(found, environ or {}).settings


# -- all files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_variable_exists(path: Path):
    given = {"OMNIGRAPH_TOKEN", "OMNIGRAPH_DOMAIN"}  # inputs of the compose file
    found = set(re.findall(r"\bOMNIGRAPH_[A-Z_]+\b", path.read_text(encoding="utf-8")))
    assert found <= known_variables() | given


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_command_exists(path: Path):
    """A command line in a file names a program, a command and options that exist."""
    known = {" ".join(words): command for words, command in command_tree(get_command(build_program()))}
    for words in re.findall(r"\bomnigraph ([a-z]+(?: [^\n|&>#`']*)?)", path.read_text(encoding="utf-8")):
        prefixes = (" ".join(words.split()[:number]) for number in (2, 1))
        command = next((known[prefix] for prefix in prefixes if prefix in known), None)
        if command is None or getattr(command, "commands", None):
            continue
        options = {spelling for parameter in command.params for spelling in parameter.opts}
        assert set(re.findall(r"(?<=\s)--[a-z-]+", words)) <= options, words


# -- Containerfile ------------------------------------------------------------------------------------

ARGUMENTS, STAGES = read_containerfile(DEPLOY / "Containerfile")
IMAGE = STAGES[-1]


def test_containerfile_passes_the_linter():
    assert checked(tool("hadolint"), "--failure-threshold", "style", str(DEPLOY / "Containerfile")) == ""


def test_image_installs_existing_extras_for_a_supported_python():
    build = STAGES[0]
    (extras,) = (text.removeprefix("EXTRAS=") for text in build.all("ARG"))
    assert set(extras.split(",")) == {"server", "aws", "mcp"}
    assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert set(PROJECT["optional-dependencies"]["kernels"]) <= set(PROJECT["optional-dependencies"]["server"])
    assert f"Programming Language :: Python :: {ARGUMENTS['PYTHON']}" in PROJECT["classifiers"]
    assert {stage.base for stage in STAGES} == {"docker.io/library/python:${PYTHON}-slim-bookworm"}


def test_image_copies_files_that_exist_and_are_not_ignored():
    ignored = (DEPLOY / "Containerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    assert ignored[0] == "*"
    for text in STAGES[0].all("COPY"):
        for source in text.split()[:-1]:
            assert (ROOT / source).exists(), source
            assert f"!{source}" in ignored, source
    needed = {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"]}
    assert needed <= set(" ".join(STAGES[0].all("COPY")).split())
    forced = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert set(forced["wheel"]["force-include"]) <= set(" ".join(STAGES[0].all("COPY")).split())


def test_image_runs_the_server_without_root():
    user, group = IMAGE.last("USER").split(":")
    assert int(user) >= 10000
    assert int(group) >= 10000
    assert words_of(IMAGE.last("ENTRYPOINT")) == ["omnigraph-server"]
    assert "omnigraph-server" in PROJECT["scripts"]
    assert IMAGE.last("EXPOSE") == str(PORT)
    assert IMAGE.environment["OMNIGRAPH_BIND"] == DEFAULT_BIND
    assert IMAGE.last("STOPSIGNAL") == "SIGTERM"


def test_image_has_the_health_check_of_the_specification():
    options, _, command = IMAGE.last("HEALTHCHECK").partition(" CMD ")
    assert options.split() == ["--interval=30s", "--timeout=5s", "--start-period=10s", "--retries=3"]
    assert words_of(command) == ["omnigraph-server", "--health"]


def test_entry_of_the_image_runs_with_its_variables(tmp_path):
    """The environment of the image, with a free port and a cache folder of this test."""
    make_graph(tmp_path / "kb.omni", "Ada")
    variables = {
        **{name: value for name, value in IMAGE.environment.items() if name != "PATH"},
        "OMNIGRAPH_CACHE_DIR": str(tmp_path / "cache"),
        "OMNIGRAPH_BIND": "0.0.0.0:0",
        "OMNIGRAPH_TARGET_URI": str(tmp_path / "kb.omni"),
        "OMNIGRAPH_SERVER_BEARER_TOKEN": TOKEN,
        "HOME": "/nonexistent",
    }
    with program(tmp_path, module=ENTRY, **variables) as server:
        address = server.address.replace("0.0.0.0", "127.0.0.1")
        health = subprocess.run(
            [sys.executable, "-m", ENTRY, "--health"],
            env={**variables, "OMNIGRAPH_BIND": server.address, "PYTHONPATH": str(ROOT / "src")},
            timeout=WAIT_S,
            check=False,
        )
        assert health.returncode == 0
        assert request(address, "/snapshot").status == 401
        assert request(address, "/snapshot", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
        assert server.stop() == 0
    assert server.log.startswith("{"), "the log of a container is JSON"


def test_first_process_of_a_container_obeys_a_signal_while_it_starts(tmp_path):
    """The configuration is a pipe that is never written: the server waits in its start when the signal arrives."""
    unshare = tool("unshare")
    if subprocess.run([unshare, "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no permission to create a process namespace")
    os.mkfifo(tmp_path / "og.yaml")
    process = subprocess.Popen(
        [unshare, "--pid", "--fork", "--kill-child", sys.executable, "-m", ENTRY],
        cwd=tmp_path,
        env=environment(OMNIGRAPH_CONFIG=str(tmp_path / "og.yaml")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    opened: list[int] = []

    def is_read() -> bool:
        """Open the pipe for writing, which succeeds when the server reads it."""
        with suppress(OSError):
            opened.append(os.open(tmp_path / "og.yaml", os.O_WRONLY | os.O_NONBLOCK))
        return bool(opened)

    try:
        wait_for(is_read, "the start of the server")
        child = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        os.kill(child, signal.SIGTERM)
        assert process.wait(WAIT_S) == 128 + signal.SIGTERM
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)
        for descriptor in opened:
            os.close(descriptor)


# -- compose ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return read_compose({"OMNIGRAPH_TOKEN": TOKEN})


def test_compose_file_has_the_schema_of_the_specification():
    checked(tool("check-jsonschema"), "--builtin-schema", "vendor.compose-spec", str(DEPLOY / "compose.yaml"))


def test_compose_requires_a_token():
    with pytest.raises(KeyError, match="OMNIGRAPH_TOKEN"):
        read_compose({})


def test_compose_services_depend_on_each_other_in_order(compose):
    services = compose["services"]
    waits = {name: list(service.get("depends_on", ())) for name, service in services.items()}
    assert waits == {"server": ["demo"], "demo": ["bucket"], "bucket": ["storage"], "storage": [], "proxy": ["server"]}
    assert services["proxy"]["profiles"] == ["tls"]
    for name, service in services.items():
        for condition in service.get("depends_on", {}).values():
            assert condition["condition"] in ("service_completed_successfully", "service_healthy"), name
        for mount in service.get("configs", ()):
            assert mount["source"] in compose["configs"]


def test_compose_server_is_restricted_and_published_locally(compose):
    server = compose["services"]["server"]
    assert server["read_only"] is True
    assert server["cap_drop"] == ["ALL"]
    assert server["tmpfs"] == ["/tmp"]
    assert server["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    assert server["build"]["dockerfile"] == "deploy/Containerfile"
    assert (DEPLOY / server["build"]["context"]).resolve() == ROOT
    assert f"reverse_proxy server:{PORT}" in compose["configs"]["Caddyfile"]["content"]


def test_compose_addresses_agree(compose):
    services = compose["services"]
    assert services["server"]["environment"]["AWS_ENDPOINT_URL_S3"] == "http://storage:8333"
    assert "-s3.port=8333" in services["storage"]["command"]
    identity = yaml.safe_load(compose["configs"]["s3.json"]["content"])["identities"][0]["credentials"][0]
    for name in ("server", "demo"):
        given = services[name]["environment"]
        assert (given["AWS_ACCESS_KEY_ID"], given["AWS_SECRET_ACCESS_KEY"]) == tuple(identity.values())


def test_compose_store_options_exist(compose):
    """The installed SeaweedFS knows every option of the `storage` service."""
    known = subprocess.run([tool("weed"), "server", "-h"], capture_output=True, text=True, timeout=WAIT_S, check=False)
    for word in compose["services"]["storage"]["command"][1:]:
        option = word.partition("=")[0].removeprefix("-")
        assert re.search(rf"^\s+-{re.escape(option)}\b", known.stdout + known.stderr, re.MULTILINE), option


def test_compose_configuration_is_valid(compose, tmp_path):
    for name in ("omnigraph.yaml", "policy.yaml"):
        (tmp_path / name).write_text(compose["configs"][name]["content"], encoding="utf-8")
    settings = settings_of(tmp_path / "omnigraph.yaml")
    assert list(settings.proxies) == [compose["networks"]["default"]["ipam"]["config"][0]["subnet"]]
    assert run(["policy", "validate", "--file", str(tmp_path / "policy.yaml")]) == 0
    grace = int(compose["services"]["server"]["stop_grace_period"].removesuffix("s"))
    assert stop_time(settings.drain_s, settings.shutdown_grace_s) < grace
    graph = find_config(str(tmp_path / "omnigraph.yaml"), {}).get("graphs.demo.uri")
    for word in (graph, "-name graphs"):
        assert any(word in line for name in ("demo", "bucket") for line in compose["services"][name]["command"])


# -- systemd ------------------------------------------------------------------------------------------

UNITS = DEPLOY / "systemd"
SERVICE = read_unit(UNITS / "omnigraph.service")["Service"]


def installed_units(folder: Path) -> list[str]:
    """Copy the units with the paths of this environment; the verification looks for the programs."""
    for name in ("omnigraph.service", "omnigraph.socket"):
        text = (UNITS / name).read_text(encoding="utf-8")
        (folder / name).write_text(text.replace("/opt/omnigraph/bin/omnigraph-server", sys.executable))
    return [str(folder / "omnigraph.service"), str(folder / "omnigraph.socket")]


def test_units_are_verified(tmp_path):
    assert checked(tool("systemd-analyze"), "verify", "--man=no", *installed_units(tmp_path)) == ""


def test_unit_exposes_little(tmp_path):
    """The exposure is at most 2.0 of 10."""
    service = installed_units(tmp_path)[0]
    checked(tool("systemd-analyze"), "security", "--offline=true", "--threshold=20", "--no-pager", service)


def test_unit_uses_the_protocols_of_the_server():
    assert SERVICE["Type"] == ["notify"]
    assert SERVICE["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert SERVICE["KillMode"] == ["mixed"], "workers ignore signals; the supervisor stops them"
    required = ("DynamicUser", "StateDirectory", "ProtectSystem", "MemoryHigh", "WatchdogSec")
    assert {key: SERVICE[key] for key in required} == {
        "DynamicUser": ["yes"],
        "StateDirectory": ["omnigraph"],
        "ProtectSystem": ["strict"],
        "MemoryHigh": ["80%"],
        "WatchdogSec": ["60"],
    }


def test_unit_gives_the_server_time_to_stop():
    settings = read_settings(find_config(None, {}), {}).settings
    assert stop_time(settings.drain_s, settings.shutdown_grace_s) < float(SERVICE["TimeoutStopSec"][0])


def test_unit_limits_suffice_for_the_connections():
    settings = read_settings(find_config(None, {}), {}).settings
    assert int(SERVICE["LimitNOFILE"][0]) > 2 * settings.limits.connections


def test_socket_unit_has_the_default_address():
    found = read_unit(UNITS / "omnigraph.socket")["Socket"]
    default = next(setting.default for setting in SERVER_SETTINGS if setting.key == "bind")
    assert found["ListenStream"] == [default], "one socket"
    assert found["Backlog"] == [str(BACKLOG)]


# -- Kubernetes ---------------------------------------------------------------------------------------

MANIFESTS = read_manifests()
POD = MANIFESTS["Deployment"]["spec"]["template"]["spec"]
CONTAINER = POD["containers"][0]
CONFIG = DEPLOY / "kubernetes" / "config"


def test_kustomize_base_builds_valid_resources(tmp_path):
    built = tmp_path / "base.yaml"
    built.write_text(checked(tool("kubectl"), "kustomize", str(DEPLOY / "kubernetes")), encoding="utf-8")
    documents = list(yaml.safe_load_all(built.read_text(encoding="utf-8")))
    assert {document["kind"] for document in documents} == {*MANIFESTS, "ConfigMap"}
    assert {document["metadata"]["namespace"] for document in documents} == {"omnigraph"}
    template = next(document for document in documents if document["kind"] == "Deployment")["spec"]["template"]
    assert template["metadata"]["labels"] == {"app.kubernetes.io/name": "omnigraph"}


@pytest.mark.parametrize("kind", [kind for kind in MANIFESTS if kind != "ServiceMonitor"])
def test_manifests_have_the_schema_of_kubernetes(kind: str):
    validate = pytest.importorskip("kubernetes_validate")
    for version in ("1.30", "1.34"):
        validate.validate(MANIFESTS[kind], version, strict=True)


def test_selectors_name_the_pods():
    labels = {"app.kubernetes.io/name": "omnigraph"}
    assert MANIFESTS["Deployment"]["spec"]["selector"]["matchLabels"] == labels
    assert MANIFESTS["Service"]["spec"]["selector"] == labels
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert MANIFESTS["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    assert MANIFESTS["ServiceMonitor"]["spec"]["selector"]["matchLabels"] == labels


def test_two_replicas_survive_one_disruption():
    spec = MANIFESTS["Deployment"]["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert MANIFESTS["PodDisruptionBudget"]["spec"]["minAvailable"] == 1


def test_probes_ask_routes_that_exist():
    probes = {name: CONTAINER[f"{name}Probe"]["httpGet"] for name in ("startup", "liveness", "readiness")}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "startup": "/healthz",
        "liveness": "/healthz",
        "readiness": "/readyz",
    }
    assert {probe["path"] for probe in probes.values()} <= PATHS
    assert {probe["port"] for probe in probes.values()} == {"http"}


def test_ports_agree():
    settings = settings_of(CONFIG / "omnigraph.yaml")
    assert settings.metrics.bind is not None
    metrics = int(settings.metrics.bind.rpartition(":")[2])
    ports = [{"name": "http", "containerPort": PORT}, {"name": "metrics", "containerPort": metrics}]
    assert CONTAINER["ports"] == ports
    variables = {item["name"]: item["value"] for item in CONTAINER["env"]}
    assert variables["OMNIGRAPH_BIND"] == DEFAULT_BIND
    assert [port["targetPort"] for port in MANIFESTS["Service"]["spec"]["ports"]] == ["http", "metrics"]
    allowed = [rule["ports"] for rule in MANIFESTS["NetworkPolicy"]["spec"]["ingress"]]
    assert allowed == [[{"port": "http"}], [{"port": "metrics"}]]
    ends = [(end["port"], end["path"]) for end in MANIFESTS["ServiceMonitor"]["spec"]["endpoints"]]
    assert ends == [("metrics", metrics_endpoint.PATH)]


def test_files_are_mounted_where_the_configuration_expects_them():
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert {volume["name"] for volume in POD["volumes"]} == set(mounts)
    variables = {item["name"]: item["value"] for item in CONTAINER["env"]}
    assert variables["OMNIGRAPH_CONFIG"] == f"{mounts['config']}/omnigraph.yaml"
    settings = settings_of(CONFIG / "omnigraph.yaml")
    assert str(settings.auth.tokens.file) == f"{mounts['tokens']}/tokens.json"
    assert mounts["temporary"] == "/tmp"
    kustomization = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text(encoding="utf-8"))
    assert set(kustomization["configMapGenerator"][0]["files"]) == {f"config/{path.name}" for path in CONFIG.iterdir()}
    assert {volume["configMap"]["name"] for volume in POD["volumes"] if "configMap" in volume} == {"omnigraph-config"}


def test_configuration_of_the_base_is_valid():
    settings = settings_of(CONFIG / "omnigraph.yaml")
    config = find_config(str(CONFIG / "omnigraph.yaml"), {})
    variables = {item["name"]: item["value"] for item in CONTAINER["env"]}
    assert config.get(f"graphs.{variables['OMNIGRAPH_TARGET']}.uri").startswith("s3://"), "replicas share storage"
    assert settings.drain_s == 5
    assert run(["policy", "validate", "--file", str(CONFIG / "policy.yaml")]) == 0
    assert run(["policy", "validate", "--server", "--file", str(CONFIG / "server-policy.yaml")]) == 0


def test_pods_have_time_to_stop():
    settings = settings_of(CONFIG / "omnigraph.yaml")
    before = int(CONTAINER["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = before + stop_time(settings.drain_s, settings.shutdown_grace_s)
    assert needed < POD["terminationGracePeriodSeconds"]
    assert float(SERVICE["TimeoutStopSec"][0]) < POD["terminationGracePeriodSeconds"]


def test_pods_are_restricted():
    user, group = IMAGE.last("USER").split(":")
    context = POD["securityContext"]
    assert (context["runAsNonRoot"], context["runAsUser"], context["runAsGroup"]) == (True, int(user), int(group))
    assert CONTAINER["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert set(CONTAINER["resources"]["limits"]) == {"cpu", "memory"}
    assert MANIFESTS["ServiceAccount"]["automountServiceAccountToken"] is False


def test_limits_fit_the_memory_of_a_pod():
    settings = settings_of(CONFIG / "omnigraph.yaml")
    assert 4 * settings.limits.query_bytes < size_of(CONTAINER["resources"]["limits"]["memory"])
    (sizes,) = values_of(POD["volumes"], "sizeLimit")
    assert settings.limits.load_bytes * 4 <= size_of(sizes)
