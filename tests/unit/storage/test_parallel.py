"""Calls in parallel."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.storage.parallel import each_request, each_table, request


def test_results_are_in_the_order_of_the_items():
    assert each_table(lambda item: item * 2, range(40)) == [item * 2 for item in range(40)]
    assert each_request(str, []) == []
    assert each_request(str, [1]) == ["1"]


def test_calls_overlap():
    together = threading.Barrier(3, timeout=30)
    assert each_table(lambda _: together.wait() >= 0, range(3)) == [True] * 3


@pytest.mark.parametrize("failing", [0, 2])
def test_all_calls_end_before_an_error_is_raised(failing):
    ended = []

    def work(item: int) -> None:
        if item == failing:
            raise LookupError(item)
        ended.append(item)

    with pytest.raises(LookupError):
        each_table(work, range(4))
    assert sorted(ended) == [item for item in range(4) if item != failing]


def test_a_request_runs_in_the_background():
    begin = threading.Event()
    future = request(lambda: begin.wait(30))
    assert not future.done()
    begin.set()
    assert future.result(30)


def test_a_handler_of_the_end_of_the_interpreter_can_write(tmp_path: Path):
    script = """
import atexit, sys
import omnigraph as og
graph = og.init(sys.argv[1], "node A { name: String @key }\\nnode B { name: String @key }", sync=False)
text = 'query q($n: String) { insert A { name: $n } insert B { name: $n } }'
graph.mutate(text, {"n": "first"})
atexit.register(lambda: graph.mutate(text, {"n": "last"}))
"""
    place = str(tmp_path / "g")
    done = subprocess.run(
        [sys.executable, "-c", script, place], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert og.open(place).to_arrow("B")["name"].to_pylist() == ["first", "last"]
