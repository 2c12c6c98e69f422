"""Every use of a guard for rows is listed, and a surface or a test notices if it is removed.

`tests/cases/guards.txt` has one line for each use: the surface or the test that notices its removal, and the place. A
new use must be added there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.guard_sites import Site, sites, without
from support.guarded_graph import make
from support.guarded_surfaces import SURFACES, observe
from support.removed_guard import REMOVED_GUARD

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "cases" / "guards.txt"
SHORT = ("queries", "tables", "history", "pages", "exploration", "writes", "loads", "merges", "proposals")
"""Surfaces of which the short form removes the first guard."""


def listed() -> dict[str, str]:
    """Return place → the surface or the test that notices its removal."""
    lines = (line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {place.strip(): notices for notices, _, place in (line.partition(" ") for line in lines)}


PLACES = listed()
SITES = {str(site): site for site in sites()}
NOTICED = [(notices, SITES[place]) for place, notices in PLACES.items() if notices in SURFACES and place in SITES]
FIRST = [next(one for one in NOTICED if one[0] == surface) for surface in SHORT]
TESTED = [(notices, place) for place, notices in PLACES.items() if notices not in SURFACES]


def test_every_use_of_a_guard_is_listed() -> None:
    assert sorted(PLACES) == sorted(SITES)
    for notices, _ in TESTED:
        path, _, name = notices.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text(encoding="utf-8"), notices


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that observes a surface of a graph, and keeps what it shows with all guards."""
    root = tmp_path_factory.mktemp("guards")
    make(root / "origin")
    kept = cache(lambda surface: observe(root / "origin", root / "copy", surface))

    def look(surface: str, *, again: bool = False) -> Any:
        return observe(root / "origin", root / "copy", surface) if again else kept(surface)

    return look


def check_noticed(shown: Callable[..., Any], surface: str, site: Site) -> None:
    before = shown(surface)
    with without(site):
        found = shown(surface, again=True)
    assert found != before


@pytest.mark.parametrize("surface", SHORT)
def test_surfaces_show_the_same_twice(shown, surface):
    assert not isinstance(shown(surface), str), "the surface ends in an internal error"
    assert shown(surface) == shown(surface, again=True)


@pytest.mark.parametrize(("surface", "site"), FIRST, ids=str)
def test_removed_guard_is_noticed(shown, surface, site):
    check_noticed(shown, surface, site)


@pytest.mark.long
@pytest.mark.parametrize(("surface", "site"), NOTICED, ids=str)
def test_every_removed_guard_is_noticed(shown, surface, site):
    check_noticed(shown, surface, site)


@pytest.mark.long
@pytest.mark.parametrize(("test", "place"), TESTED, ids=[place for _, place in TESTED])
def test_every_removed_guard_fails_its_test(test: str, place: str) -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "support.removed_guard",
        "-p",
        "no:cacheprovider",
        test,
    ]
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    environ = {**os.environ, REMOVED_GUARD: place, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout
