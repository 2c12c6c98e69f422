"""Write the files of a release: wheels, source distributions, SBOM, conda recipe and checksums.

    python scripts/release_files.py [--out dist] [--no-isolation]

Every wheel is built from its source distribution, without Node: `src/omnigraph/ui/static` is part of the sources. The
SBOM (CycloneDX 1.6) lists the Python packages of `constraints.txt` that the library and its extras need, and the
JavaScript packages in the explorer. Two runs on one commit write the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
TOOLS = ("bench", "dev")
"""Extras of this repository, not of its users."""
SBOM = "omnigraph-{version}.cdx.json"
RECIPE = "conda-recipe.yaml"
CHECKSUMS = "SHA256SUMS"


def main() -> None:
    """Write the files to an empty folder and list them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder; it must be empty or missing")
    parser.add_argument("--no-isolation", action="store_true", help="build with the hatchling of this environment")
    given = parser.parse_args()
    if given.out.is_dir() and any(given.out.iterdir()):
        sys.exit(f"error: '{given.out}' is not empty (hint: remove it)")
    write_files(given.out, isolated=not given.no_isolation)
    for path in sorted(given.out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


def write_files(out: Path, *, isolated: bool) -> None:
    """Write all files of a release to a folder."""
    out.mkdir(parents=True, exist_ok=True)
    made = commit_time()
    for folder in projects():
        build(folder, out, made, isolated=isolated)
    version = project_version()
    sbom = json.dumps(bill_of_materials(version, made), indent=2, ensure_ascii=False) + "\n"
    (out / SBOM.format(version=version)).write_text(sbom, encoding="utf-8")
    (out / RECIPE).write_text(conda_recipe(version, digest(out / f"omnigraph-{version}.tar.gz")), encoding="utf-8")
    lines = [f"{digest(path)}  {path.name}\n" for path in sorted(out.iterdir())]
    (out / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def projects() -> list[Path]:
    """Return the folders with a Python project: the repository, and those in `packages/`."""
    return [ROOT, *sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))]


def build(folder: Path, out: Path, made: int, *, isolated: bool) -> None:
    """Build the source distribution of a project, and the wheel from it."""
    command = [sys.executable, "-m", "build", "--outdir", str(out), *([] if isolated else ["--no-isolation"])]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(made)}
    done = subprocess.run([*command, str(folder)], env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"error: '{folder}' was not built\n{done.stdout}{done.stderr}")


def commit_time() -> int:
    """Return the time of the current commit in seconds, which dates the files; 0 outside a repository."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 0


def project_version() -> str:
    """Return the version of the library."""
    text = (ROOT / "src" / "omnigraph" / "version.py").read_text(encoding="utf-8")
    found = re.search(r'(?m)^__version__ = "(.+)"$', text)
    assert found is not None
    return found[1]


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def conda_recipe(version: str, sha256: str) -> str:
    """Return the recipe for conda-forge with the version and the digest of the source distribution."""
    text = (ROOT / "deploy" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    text = re.sub(r'(?m)^  version: ".*"$', f'  version: "{version}"', text, count=1)
    return re.sub(r"(?m)^  sha256: .*$", f"  sha256: {sha256}", text, count=1)


# -- SBOM ---------------------------------------------------------------------------------------------


@dataclass
class Package:
    """A Python package of the lock."""

    name: str
    version: str
    needed: bool = False
    """True if the library needs it without an extra."""
    licence: str | None = None
    needs: set[str] = field(default_factory=set)

    @property
    def purl(self) -> str:
        """The package URL, which identifies the package in the SBOM."""
        return f"pkg:pypi/{self.name}@{self.version}"


def bill_of_materials(version: str, made: int) -> dict[str, Any]:
    """Return the SBOM as a CycloneDX document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found, direct = locked_packages(project)
    scripts = list(explorer_packages())
    own = Package("omnigraph", version)
    parts = [component(one.name, one.version, one.purl, one.licence, needed=one.needed) for one in found.values()]
    parts += [component(name, number, purl, licence, needed=True) for name, number, purl, licence in scripts]
    edges = [{"ref": own.purl, "dependsOn": [*refs(found, direct), *(purl for *_, purl, _ in scripts)]}]
    edges += [{"ref": one.purl, "dependsOn": refs(found, one.needs)} for one in found.values() if one.needs]
    about = component("omnigraph", version, own.purl, project["license"], needed=True)
    body = {
        "metadata": {
            "timestamp": datetime.fromtimestamp(made, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {key: value for key, value in about.items() if key != "scope"},
        },
        "components": parts,
        "dependencies": edges,
    }
    serial = uuid5(NAMESPACE_URL, json.dumps(body, sort_keys=True))
    head = {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "serialNumber": f"urn:uuid:{serial}"}
    return {**head, **body}


def component(name: str, version: str, purl: str, licence: str | None, *, needed: bool) -> dict[str, Any]:
    """Return one package as a component; an optional one belongs to an extra."""
    found: dict[str, Any] = {"type": "library", "bom-ref": purl, "name": name, "version": version}
    if licence is not None:
        found["licenses"] = [{"expression": licence}]
    return {**found, "purl": purl, "scope": "required" if needed else "optional"}


def refs(found: dict[str, Package], names: Iterable[str]) -> list[str]:
    """Return the references of packages in the SBOM."""
    return sorted(found[name].purl for name in names)


def locked_packages(project: dict[str, Any]) -> tuple[dict[str, Package], set[str]]:
    """Return the packages that the library and its extras need, by name, and the direct ones.

    Versions are those of the lock. What a package needs is read from its metadata in this environment; a package that
    is not installed here, such as a Java runtime beside another, counts without further ones.
    """
    lock = locked_versions()
    extras = {name: texts for name, texts in project["optional-dependencies"].items() if name not in TOOLS}
    needs = [(text, True) for text in project["dependencies"]]
    needs += [(text, False) for texts in extras.values() for text in texts if not text.startswith("omnigraph[")]
    found: dict[str, Package] = {}
    direct: set[str] = set()
    seen: set[tuple[str, str, bool]] = set()
    todo = [(Requirement(text), needed, "") for text, needed in needs]
    while todo:
        need, needed, source = todo.pop()
        name = normalised(need.name)
        if name not in lock:
            sys.exit(f"error: '{name}' is not in constraints.txt (hint: add its version)")
        package = found.setdefault(name, Package(name, lock[name]))
        package.needed |= needed
        (found[source].needs if source else direct).add(name)
        installed = find_installed(name)
        if installed is None:
            continue
        licences = installed.metadata.get_all("License-Expression")
        package.licence = str(licences[0]) if licences else None
        for extra in ("", *need.extras):
            if (name, extra, needed) not in seen:
                seen.add((name, extra, needed))
                todo += [(one, needed, name) for one in requirements(installed, extra)]
    return dict(sorted(found.items())), direct


def locked_versions() -> dict[str, str]:
    """Return the versions of `constraints.txt` by name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==", 1) for line in lines if "==" in line and not line.startswith("#"))
    return {normalised(name): version.split(";")[0].strip() for name, version in pairs}


def find_installed(name: str) -> Distribution | None:
    """Return a package of this environment."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def requirements(package: Distribution, extra: str) -> Iterator[Requirement]:
    """Yield what a package needs here with an extra; without one, what it always needs."""
    for text in package.requires or ():
        need = Requirement(text)
        applies = need.marker is None or need.marker.evaluate({"extra": extra})
        if applies and (not extra or (need.marker is not None and not need.marker.evaluate({"extra": ""}))):
            yield need


def explorer_packages() -> Iterator[tuple[str, str, str, str | None]]:
    """Yield the name, version, package URL and licence of the JavaScript packages in the explorer."""
    lock = json.loads((ROOT / "web" / "package-lock.json").read_text(encoding="utf-8"))
    for path, entry in sorted(lock["packages"].items()):
        if path and not entry.get("dev") and not entry.get("optional"):
            name = path.rpartition("node_modules/")[2]
            yield name, entry["version"], f"pkg:npm/{name.replace('@', '%40')}@{entry['version']}", entry.get("license")


def normalised(name: str) -> str:
    """Return the normalised name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
