"""Each call of a write that changes a file fails once: the write is refused or complete, and nothing is damaged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.failing_calls import Failure, build, compiler, run_case
from support.failing_disk import WRITES, new_graph

pytestmark = pytest.mark.skipif(compiler() is None, reason="no C compiler is installed")


@pytest.fixture(scope="module")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("seed")
    new_graph(folder / "graph")
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("library"))


def check(failures: Sequence[Failure]) -> None:
    assert not [failure for failure in failures if failure.outcome == "damaged"]
    # The entry of a commit is in its folder before it is flushed: this failure alone leaves the outcome open.
    assert all(failure.path.endswith("/__log") for failure in failures if failure.outcome == "unknown")
    unflushed = [failure for failure in failures if failure.kind == "fsync" and failure.outcome == "complete"]
    others = [failure.path for failure in unflushed if "/.writing-" not in failure.path]
    assert all(path.endswith("/graph") for path in others), "only files that are written again, and the schema copy"


@pytest.mark.parametrize("name", ["insert", "delete"])
def test_each_kind_of_call_and_last_write(name, seed, library, tmp_path):
    failures = run_case(name, seed, tmp_path, library, "kinds")
    check(failures)
    assert {failure.kind for failure in failures} >= {"create", "write", "fsync", "rename", "link", "unlink"}


@pytest.mark.long
@pytest.mark.parametrize("name", WRITES)
def test_every_call(name, seed, library, tmp_path, record_property):
    failures = run_case(name, seed, tmp_path, library, "every")
    found = Counter(failure.outcome for failure in failures)
    record_property("outcomes", dict(found))
    counts = [f"{outcome} {found[outcome]:4}" for outcome in ("refused", "unknown", "complete", "damaged")]
    print(f"{name:16}", *counts, sep="  ")  # noqa: T201 (shown with -s)
    check(failures)
    assert found["refused"]
