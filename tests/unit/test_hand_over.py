from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from omnigraph.errors import Hint, LimitReached
from omnigraph.graph_queries import executor_of
from omnigraph.hand_over import engine_line, find_spark
from omnigraph.spark import session
from omnigraph.spark.session import SessionOptions

SCHEMA = "node N { name: String @key  x: I32 }  edge To: N -> N"
PAIRS = "query q() { match { $a: N  $b: N } return { $a.name, $b.name } order { $a.name, $b.name } }"


@pytest.fixture(autouse=True)
def no_active_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide a session that other tests of this process started."""
    monkeypatch.setattr(session, "find_active", lambda: None)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A graph with the smallest memory budget, and more pairs of nodes than fit it."""
    place = tmp_path_factory.mktemp("large") / "graph.omni"
    graph = og.init(place, SCHEMA, sync=False, environ={})
    nodes = [{"type": "N", "data": {"name": f"n{at}", "x": at % 7}} for at in range(1_200)]
    edges = [{"edge": "To", "from": f"n{at}", "to": f"n{at + 1}"} for at in range(1_199)]
    graph.load([*nodes, *edges], mode="append")
    return og.open(place, memory="64MiB", sync=False, environ={})


@pytest.mark.parametrize(
    ("setting", "options"),
    [
        ("local", SessionOptions()),
        (" spark://host:7077 ", SessionOptions(master="spark://host:7077")),
        ("sc://host:15002", SessionOptions(remote="sc://host:15002")),
        ("", None),
    ],
)
def test_setting_configures_spark(setting: str, options: SessionOptions | None) -> None:
    assert find_spark({"OMNIGRAPH_SPARK": setting}) == options


@pytest.mark.parametrize(
    ("estimated", "limit", "environ", "line"),
    [
        (2.0**31, 2**31, {}, ""),
        (3.1 * 2**30, 2**31, {}, "  engine  memory: estimated 3.1 GiB of 2.0 GiB, and Spark is not configured\n"),
        (3.1 * 2**30, 2**31, {"OMNIGRAPH_SPARK": "local"}, "  engine  spark: estimated 3.1 GiB of 2.0 GiB\n"),
        (5_000.0, 800, {"OMNIGRAPH_SPARK": "local"}, "  engine  spark: estimated 4.9 KiB of 800 bytes\n"),
        (2.0**70, 1, {"OMNIGRAPH_SPARK": "local"}, "  engine  spark: estimated 1,048,576.0 PiB of 1 bytes\n"),
    ],
)
def test_plan_names_the_engine_if_the_match_exceeds_the_budget(
    estimated: float, limit: int, environ: dict[str, str], line: str
) -> None:
    assert engine_line(estimated, limit, environ) == line


@pytest.mark.parametrize(
    ("engine", "spark", "executor"),
    [("auto", None, "auto"), ("memory", None, "memory"), ("spark", None, "spark"), ("auto", SessionOptions(), "spark")],
)
def test_executor_of_a_query(engine: str, spark: Any, executor: str) -> None:
    assert executor_of(engine, spark) == executor


def test_error_without_spark_names_the_setting(graph: Any) -> None:
    assert "  engine  memory: estimated 43.9 MiB of 32.0 MiB, and Spark is not configured" in str(graph.explain(PAIRS))
    with pytest.raises(LimitReached) as caught:
        graph.query(PAIRS)
    assert isinstance(caught.value.hint, Hint)
    assert "engine='spark' (OMNIGRAPH_SPARK=local" in caught.value.hint
    assert caught.value.hint.cli.endswith("or run it with --engine spark")
    with pytest.raises(LimitReached) as caught:
        graph.query(PAIRS, engine="memory")
    assert "spark" not in (caught.value.hint or "")


@pytest.mark.parametrize(
    "text",
    [
        "match { $a: N } return { $a.name }",
        "match { $a: N  $b: N } return { count($a) as n }",
        "match { $a: N  $b: N } return { $a.name } limit 3",
        "match { $a: N  $b: N } return { $a.name } order { $a.x } limit 3",
        "match { $a: N  $a to $b  not { $b to $c  $c.x > 3 } } return { $a.name, $b.name }",
    ],
)
def test_match_that_fits_runs_in_process(graph: Any, text: str) -> None:
    query = f"query q() {{ {text} }}"
    assert "engine" not in str(graph.explain(query))
    assert len(graph.query(query)) > 0


def test_block_and_hop_count_as_their_largest_rows(graph: Any) -> None:
    text = "query q() { match { $a: N  optional { $b: N  $b.x < $a.x } } return { $a.name, $b.name } }"
    assert "engine  memory: estimated" in str(graph.explain(text))


def test_estimate_that_is_too_high_runs_in_process(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph.omni", SCHEMA, sync=False, environ={})
    nodes = [{"type": "N", "data": {"name": f"n{at}", "x": 1}} for at in range(50)]
    graph.load([*nodes, {"edge": "To", "from": "n0", "to": "n1"}], mode="append")
    text = "query q() { match { $a: N { x: 1 }  $a to $b } return { $a.name, $b.name } }"
    needed = graph.query(text, limits=Limits(bytes_max=2_000))
    assert needed.to_rows() == [{"a.name": "n0", "b.name": "n1"}]


@pytest.mark.parametrize("limits", [Limits(rows_max=1_000), Limits(bytes_max=1_000)])
def test_limit_of_the_caller_is_not_handed_over(graph: Any, monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    monkeypatch.setattr(session, "find_active", lambda: pytest.fail("no session is wanted"))
    with pytest.raises(LimitReached, match="the limit is") as caught:
        graph.query("query q() { match { $a: N  $b: N } return { $a.x, $b.x } }", limits=limits)
    assert "spark" not in (caught.value.hint or "")
