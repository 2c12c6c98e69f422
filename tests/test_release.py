"""The files of a release as `make dist` writes them, the conda recipe, and the workflows."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
import yaml
from packaging.requirements import Requirement

from omnigraph.version import __version__

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CONDA_NAMES = {"prompt_toolkit": "prompt-toolkit"}
"""Packages that have another name on conda-forge."""
STATIC = "omnigraph/ui/static"


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, built by the backend of the test environment."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    script = [sys.executable, "scripts/release_files.py", "--no-isolation", "--out", str(folder)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def sbom(dist: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((dist / f"omnigraph-{__version__}.cdx.json").read_text(encoding="utf-8"))
    return found


def test_files_of_every_project_have_checksums(dist: Path) -> None:
    sums = dict(reversed(line.split("  ")) for line in (dist / "SHA256SUMS").read_text().splitlines())
    assert sums == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in dist.iterdir() if path.name != "SHA256SUMS"
    }
    expected = {f"omnigraph-{__version__}.cdx.json", "conda-recipe.yaml"}
    expected |= {f"omnigraph-{__version__}.tar.gz", f"omnigraph-{__version__}-py3-none-any.whl"}
    assert expected <= sums.keys()
    projects = 1 + len(list(ROOT.glob("packages/*/pyproject.toml")))
    assert [sum(name.endswith(end) for name in sums) for end in (".whl", ".tar.gz")] == [projects, projects]


def test_wheel_has_the_explorer_and_its_programs(dist: Path) -> None:
    with ZipFile(dist / f"omnigraph-{__version__}-py3-none-any.whl") as wheel:
        names = set(wheel.namelist())
        entries = ConfigParser()
        entries.read_string(wheel.read(f"omnigraph-{__version__}.dist-info/entry_points.txt").decode())
    built = {f"{STATIC}/{path.name}" for path in (ROOT / "src" / STATIC).iterdir()}
    assert built == {name for name in names if name.startswith(f"{STATIC}/")}
    assert "omnigraph/docs/errors.md" in names
    assert {name.split("/")[0] for name in names} == {"omnigraph", f"omnigraph-{__version__}.dist-info"}
    assert dict(entries["console_scripts"]) == PROJECT["scripts"]


def test_source_distribution_has_no_other_folders(dist: Path) -> None:
    with tarfile.open(dist / f"omnigraph-{__version__}.tar.gz") as archive:
        names = archive.getnames()
    found = {name.split("/")[1] for name in names}
    own = {"pyproject.toml", "PKG-INFO", ".gitignore", "README.md", "CHANGELOG.md", "LICENSE", "llms.txt"}
    assert found == own | {"src", "docs", "examples", "skills"}


def test_sbom_lists_the_packages_of_the_lock(sbom: dict[str, Any]) -> None:
    assert (sbom["bomFormat"], sbom["specVersion"]) == ("CycloneDX", "1.6")
    assert sbom["metadata"]["component"]["version"] == __version__
    parts = {part["bom-ref"]: part for part in sbom["components"]}
    lock = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines())
    locked = {f"pkg:pypi/{normalised(name)}@{version}" for name, version in lock.items()}
    assert {ref for ref in parts if ref.startswith("pkg:pypi/")} <= locked
    scopes = {part["name"]: part["scope"] for part in parts.values()}
    assert {scopes[normalised(Requirement(text).name)] for text in PROJECT["dependencies"]} == {"required"}
    assert (scopes["pyspark"], scopes["duckdb"], scopes["preact"]) == ("optional", "optional", "required")
    assert not {"mypy", "pytest", "kuzu"} & scopes.keys()
    assert parts["pkg:npm/%40codemirror/view@" + npm_version("@codemirror/view")]["licenses"] == [{"expression": "MIT"}]


def test_references_of_the_sbom_exist(sbom: dict[str, Any]) -> None:
    root = sbom["metadata"]["component"]["bom-ref"]
    known = {root, *(part["bom-ref"] for part in sbom["components"])}
    assert len(known) == len(sbom["components"]) + 1
    edges = {entry["ref"]: entry["dependsOn"] for entry in sbom["dependencies"]}
    assert edges.keys() <= known
    reached: set[str] = set()
    todo = [root]
    while todo:
        ref = todo.pop()
        if ref not in reached:
            reached.add(ref)
            todo += edges.get(ref, [])
    assert reached == known


def test_conda_recipe_has_the_dependencies_and_programs_of_the_project(dist: Path) -> None:
    recipe = yaml.safe_load((dist / "conda-recipe.yaml").read_text(encoding="utf-8"))
    assert recipe["context"] == {"version": __version__}
    sums = (dist / "SHA256SUMS").read_text()
    assert f"{recipe['source']['sha256']}  omnigraph-{__version__}.tar.gz\n" in sums
    needs = [Requirement(text) for text in PROJECT["dependencies"]]
    named = {f"{CONDA_NAMES.get(need.name, need.name)} {upper_last(str(need.specifier))}" for need in needs}
    assert set(recipe["requirements"]["run"]) == {f"python {PROJECT['requires-python']}", *named}
    programs = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == programs
    assert recipe["about"]["summary"] == PROJECT["description"]


def test_server_and_command_line_start_without_extras() -> None:
    """`ui` and `serve` of a graph without a policy need only the base install."""
    extras = {need for name, texts in PROJECT["optional-dependencies"].items() if name != "dev" for need in texts}
    names = {Requirement(text).name.lower() for text in extras} - {"omnigraph", "pydantic"}  # Lance needs pydantic
    blocked = sorted({**dict.fromkeys(names), "jwt": None, "prometheus_client": None})
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))"
    code = f"{block}\nimport omnigraph.server.main, omnigraph.cli.program"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_the_schema_of_github_and_existing_targets(path: Path) -> None:
    check = [f"{sysconfig.get_path('scripts')}/check-jsonschema", "--builtin-schema", "vendor.github-workflows", path]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make (?:PYTHON=python )?([\w./-]+)", path.read_text(encoding="utf-8")):
        assert re.search(rf"(?m)^{re.escape(target)}:", makefile), target


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def upper_last(specifier: str) -> str:
    """Return a version range with its lower limit first."""
    return ",".join(sorted(specifier.split(","), reverse=True))


def npm_version(name: str) -> str:
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    return str(lock["packages"][f"node_modules/{name}"]["version"])
