"""A disk that fails while a graph is written: every write is refused or complete, and nothing is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.failing_disk import WRITES, Case, file_size_limit, new_graph


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seed")
    new_graph(folder / "graph")
    return folder


def outcomes(name: str, seed: Path, folder: Path, every: bool) -> list[str]:
    """Limit the size of files, so that the last write of each larger file fails."""
    case = Case.of(name, seed, folder / "works")
    # The size of an entry of the log depends on ids a little.
    limits = sorted({limit for size in case.sizes for limit in (size * 9 // 10, size // 2)})
    chosen = limits if every else limits[-1:] + limits[len(limits) // 2 : -1 : 4]
    return [case.run(seed, folder / f"limit-{limit}", file_size_limit(limit)) for limit in chosen]


@pytest.mark.parametrize("name", WRITES)
def test_files_of_a_limited_size(name, seed, tmp_path):
    assert "refused" in outcomes(name, seed, tmp_path, every=False)


@pytest.mark.long
@pytest.mark.parametrize("name", WRITES)
def test_files_of_every_limited_size(name, seed, tmp_path):
    assert "refused" in outcomes(name, seed, tmp_path, every=True)
