"""Maintenance of several tables at once: order, bound, failure, cancellation."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.checkpoints import checkpoint
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, InputError
from omnigraph.operations.stoppable import stoppable
from omnigraph.versioning.upkeep.parallel import each

TYPES = [f"T{number}" for number in range(6)]
SCHEMA = "\n".join(f"node {name} {{\n  name: String @key\n  size: I64 @index\n}}" for name in TYPES)


def test_results_are_in_order_and_calls_are_bounded() -> None:
    lock, running, most = threading.Lock(), 0, 0
    both = threading.Barrier(3)

    def work(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        both.wait(timeout=30)
        with lock:
            running -= 1
        return number * number

    assert each(work, range(12), 3) == [number * number for number in range(12)]
    assert most == 3


@pytest.mark.parametrize("at_once", [1, 4])
def test_no_call_begins_after_a_failure(at_once: int) -> None:
    called: list[int] = []

    def work(number: int) -> None:
        called.append(number)
        if number == 0:
            raise ValueError("broken")
        threading.Event().wait(0.01)

    with pytest.raises(ValueError, match="broken"):
        each(work, range(1000), at_once)
    assert len(called) < 1000


def test_calls_stop_with_the_operation_of_the_caller() -> None:
    cancel = Cancellation()

    def work(number: int) -> None:
        if number == 1:
            cancel.cancel()
        checkpoint()

    with stoppable("test", cancel, None), pytest.raises(Cancelled):
        each(work, range(8), 4)


def maintained(folder: Path, at_once: str) -> tuple[list[object], dict[str, list[object]], list[object]]:
    graph = og.init(folder, SCHEMA, sync=False, environ={"OMNIGRAPH_MAINTENANCE_CONCURRENCY": at_once})
    for batch in range(3):
        rows = [{"type": name, "data": {"name": f"{batch}", "size": batch}} for name in TYPES]
        graph.load(rows, mode="append")
    tables = [stats.to_json() for stats in (*graph.ensure_indices(), *graph.optimize())]
    removed = [stats.to_json() for stats in graph.cleanup(keep=1, confirm=True)]
    return tables, {name: graph.to_arrow(name).sort_by("name").to_pylist() for name in TYPES}, removed


def test_the_result_does_not_depend_on_the_number_of_threads(tmp_path: Path) -> None:
    one, many = maintained(tmp_path / "one", "1"), maintained(tmp_path / "many", "8")
    assert [table["committed"] for table in one[0]] == [True] * 12  # type: ignore[index]
    assert many[0] == one[0]
    assert [row["name"] for row in one[1]["T3"]] == ["0", "1", "2"]  # type: ignore[index]
    assert [table["old_versions_removed"] for table in many[2]] == [table["old_versions_removed"] for table in one[2]]  # type: ignore[index]
    assert og.open(tmp_path / "many").verify(deep=True) == []


@pytest.mark.parametrize("value", ["0", "-1", "many", "1.5", "1025", "9" * 30, "²"])
def test_a_bad_number_of_tables_is_refused(tmp_path: Path, value: str) -> None:
    og.init(tmp_path / "g", SCHEMA, sync=False)
    with pytest.raises(InputError, match="OMNIGRAPH_MAINTENANCE_CONCURRENCY") as caught:
        og.open(tmp_path / "g", environ={"OMNIGRAPH_MAINTENANCE_CONCURRENCY": value})
    assert caught.value.code == "bad_setting"
