"""A disk that fails while a graph is written: every write is refused or complete, and nothing is damaged."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import pytest

from support.failing_disk import WRITES, Case, file_size_limit, new_graph


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seed")
    new_graph(folder / "graph")
    return folder


def outcomes(name: str, seed: Path, folder: Path, *, every: bool) -> Counter[str]:
    """Limit the size of files, so that the last write of each larger file fails, and count the outcomes."""
    case = Case.of(name, seed, folder / "works", nullcontext())
    lasts = [size - 1 for size in case.sizes]
    chosen = {*lasts, *(size // 2 for size in case.sizes)} if every else {case.sizes[0] // 2, *lasts[-2:]}
    limits = sorted(chosen)
    return Counter(case.run(seed, folder / f"limit-{limit}", file_size_limit(limit)) for limit in limits)


@pytest.mark.parametrize("name", WRITES)
def test_files_of_a_limited_size(name, seed, tmp_path):
    assert outcomes(name, seed, tmp_path, every=False)["refused"]


@pytest.mark.long
@pytest.mark.parametrize("name", WRITES)
def test_files_of_every_limited_size(name, seed, tmp_path, record_property):
    found = outcomes(name, seed, tmp_path, every=True)
    record_property("outcomes", dict(found))
    print(f"{name:16} refused {found['refused']:4}  complete {found['complete']:4}")  # noqa: T201 (shown with -s)
    assert found["refused"]
