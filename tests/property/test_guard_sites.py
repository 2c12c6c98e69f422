"""Every use of a guard for rows is listed, and a surface notices if it is removed.

`tests/cases/guards.txt` has one line for each use: the surface that notices its removal, and the place. A new use must
be added there. `other` stands for a use whose removal these surfaces cannot notice; the comment above it gives the
reason or the test that covers it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.guard_sites import Site, sites, without
from support.guarded_surfaces import SURFACES, make, observe

LIST = Path(__file__).parents[1] / "cases" / "guards.txt"
OTHER = "other"
SHORT = ("queries", "tables", "history", "pages", "exploration", "writes", "loads", "merges", "proposals")
"""Surfaces of which the short form removes the first guard."""


def listed() -> dict[str, str]:
    """Return place → the surface that notices its removal."""
    lines = (line for line in LIST.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#"))
    return {place.strip(): surface for surface, _, place in (line.partition(" ") for line in lines)}


PLACES = listed()
SITES = {str(site): site for site in sites()}
NOTICED = [(surface, SITES[place]) for place, surface in PLACES.items() if surface != OTHER and place in SITES]
FIRST = [next(one for one in NOTICED if one[0] == surface) for surface in SHORT]


def test_every_use_of_a_guard_is_listed():
    assert sorted(PLACES) == sorted(SITES)
    assert set(PLACES.values()) <= {*SURFACES, OTHER}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
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
    assert shown(surface) == shown(surface, again=True)


@pytest.mark.parametrize(("surface", "site"), FIRST, ids=str)
def test_removed_guard_is_noticed(shown, surface, site):
    check_noticed(shown, surface, site)


@pytest.mark.long
@pytest.mark.parametrize(("surface", "site"), NOTICED, ids=str)
def test_every_removed_guard_is_noticed(shown, surface, site):
    check_noticed(shown, surface, site)
