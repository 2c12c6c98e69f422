"""Print the packages and the size on disk of the base install and of each extra, from the packages of this environment.

Every package counts with its files as installed, including compiled Python files; an extra counts what it adds to the
base. `make setup` installs all extras.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

PROJECT = "omnigraph"
TOOLS = ("bench", "dev")
"""Extras of this repository, not of its users."""


def key(name: str) -> str:
    """Return the normalised name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(name: str, extras: Iterable[str] = ()) -> set[str]:
    """Return a package and all packages that it needs in this environment."""
    found: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = [(name, extra) for extra in ("", *extras)]
    while todo:
        package, extra = todo.pop()
        if (key(package), extra) in seen:
            continue
        seen.add((key(package), extra))
        found.add(key(package))
        for text in distribution(package).requires or ():
            need = Requirement(text)
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                todo += [(need.name, inner) for inner in ("", *need.extras)]
    return found


def size(name: str) -> int:
    """Return the bytes of the files of a package."""
    places = (Path(str(file.locate())) for file in distribution(name).files or ())
    return sum(place.stat().st_size for place in places if place.is_file())


def row(title: str, names: set[str]) -> str:
    """Return one line: packages, megabytes, and the largest packages."""
    sizes = {name: size(name) for name in names}
    largest = sorted(sizes, key=sizes.__getitem__, reverse=True)[:4]
    shown = ", ".join(f"{name} {sizes[name] / 1e6:.0f}" for name in largest)
    return f"{title:12} {len(names):4} packages {sum(sizes.values()) / 1e6:7.0f} MB   {shown}"


def main() -> None:
    """Print the table."""
    base = closure(PROJECT) - {PROJECT}
    print(row("base", base))
    print(row("  of Lance", closure("pylance")))
    for extra in sorted(distribution(PROJECT).metadata.get_all("Provides-Extra") or ()):
        if extra in TOOLS:
            continue
        try:
            print(row(extra, closure(PROJECT, [extra]) - base - {PROJECT}))
        except PackageNotFoundError as error:
            print(f"{extra:12} not installed: {error}")


if __name__ == "__main__":
    main()
