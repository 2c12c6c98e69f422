"""Query results on Spark equal those of the in-process engine."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
import test_language as language
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.result.result import Result
from omnigraph.errors import Cancelled, CompileError, InputError, LimitReached, QueryTimeout
from omnigraph.machine_memory import MemoryBudget
from omnigraph.query.scalars import SCALARS
from omnigraph.query.syntax.parser import parse_queries
from property.test_read_oracle import disagreement
from support.oracle.groups import Overflow
from support.oracle.paths import NegativeWeight, Unsure
from support.oracle.reading import answer
from support.random_reads.generator import ReadGenerator
from support.random_reads.graphs import new_subject
from test_examples_read import EXAMPLES, GRAPHS, READS, build, same

SEED = 20_260_101


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("examples")
    return {name: build(root, name) for name in GRAPHS}


@pytest.mark.parametrize(("name", "query", "case"), READS.values(), ids=READS)
def test_example_queries(spark: Any, graphs: dict[str, Any], name: str, query: str, case: dict[str, Any]) -> None:
    graph, source = graphs[name], EXAMPLES / f"{name}.gq"
    result = graph.query(source, query, case["params"], engine="spark", spark=spark)
    assert same(result.to_rows(), case["rows"], ordered=case["ordered"])
    local = graph.query(source, query, case["params"])
    assert result.to_arrow().schema.types == local.to_arrow().schema.types
    assert (result.columns, result.commit_id) == (local.columns, local.commit_id)


LONG = {
    "a walk of many steps": """query q() {
        match { $a: Stop { name: "s3" }  $a next{1,STEPS} $b }
        return { $b.name } order { $b.name }
    }""",
    "a walk whose steps branch": """query q() {
        match { $a: Stop { line: "red" }  $a next|skips{2,STEPS} $b  $b.line = $a.line }
        return { $a.name, count($b) as n } order { $a.name } limit 5
    }""",
    "texts that repeat": """query q() {
        match { $a: Stop }
        return { $a.line = "red" as red, count($a) as n } order { red }
    }""",
}


def check_walk(spark: Any, graph: Any, text: str, steps: int) -> None:
    text = text.replace("STEPS", str(steps))
    result = graph.query(text, engine="spark", spark=spark)
    assert result.to_rows() == graph.query(text).to_rows()
    assert len(result)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_many_rows_and_several_hops(spark: Any, line: Any, text: str) -> None:
    check_walk(spark, line, text, 4)


@pytest.mark.long
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_many_rows_and_many_hops(spark: Any, line: Any, text: str) -> None:
    check_walk(spark, line, text, 9)


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Any:
    schema = "node Stop { name: String @key  line: String }\nedge Next: Stop -> Stop\nedge Skips: Stop -> Stop"
    graph = og.init(tmp_path_factory.mktemp("line") / "graph.omni", schema, sync=False, environ={})
    lines = ("red", *["blue"] * 400)
    stops = [{"type": "Stop", "data": {"name": f"s{n}", "line": lines[n % 401]}} for n in range(2_000)]
    edges = [{"edge": "Next", "from": f"s{n}", "to": f"s{n + 1}"} for n in range(1_999)]
    edges += [{"edge": "Skips", "from": f"s{n}", "to": f"s{n + 401}"} for n in range(1_599)]
    graph.load([*stops, *edges], mode="append")
    return graph


PAGED = {
    "groups": """query q() {
        match { $a: Stop { line: "red" }  $a next|skips $b }
        return { $a.name, count($b) as n } order { n, $a.name } skip 1 limit 4
    }""",
    "fusion": """query q() {
        match { $a: Stop  $a.name starts_with "s19" }
        return { $a.name } order { rrf(bm25($a.name, "s19 s190"), bm25($a.line, "red blue")) } limit 3
    }""",
}


@pytest.mark.parametrize("text", PAGED.values(), ids=PAGED)
def test_pages_continue_on_either_engine(spark: Any, line: Any, text: str) -> None:
    whole = line.query(text).to_rows()
    after: str | None = None
    rows: list[dict[str, Any]] = []
    for _ in range(len(whole)):
        local = line.query(text, page=2, after=after)
        found = line.query(text, page=2, after=after, engine="spark", spark=spark)
        assert found.to_rows() == local.to_rows()
        assert (found.next is None) == (local.next is None)
        rows += found.to_rows()
        after = found.next if len(rows) % 4 else local.next
        if after is None:
            break
    assert rows == whole
    assert len(rows) > 2


def test_unknown_engine_is_rejected(graphs: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="there is no engine 'flink'"):
        graphs["library"].query("query q() { match { $b: Book } return { $b.isbn } }", engine="flink")


def check(root: Path, spark: Any, seed: int, questions: int, shape: str = "") -> None:
    """Run random queries on one graph, generated as for the in-process engine; with `shape`, only those that match."""
    random = Random(seed)
    subject = new_subject(root, random)
    asked = 0
    for _ in range(1_000 * questions):
        state = random.random()
        point = subject.somewhere()
        question = ReadGenerator(Random(state), point.world.catalog, subject.values).query()
        if not re.match(shape, question.text):
            continue
        subject.clock.at = 1_750_000_000_123_456
        result: Result | None = None
        code: str | None = None
        try:
            result = subject.graph.query(
                question.text, params=question.params, engine="spark", spark=spark, **point.where
            )
        except CompileError:
            continue
        except InputError as error:
            if error.code not in ("negative_weight", "overflow"):
                raise
            code = error.code
        finally:
            subject.clock.at = None
        tree = parse_queries(question.text).queries[0]
        wrong: str | None
        try:
            expected = answer(tree, point.world, question.params, 1_750_000_000_123)
            wrong = disagreement(result, expected) if result is not None else f"there is no {code}"
        except NegativeWeight:
            wrong = None if code == "negative_weight" else "a weight is negative"
        except Overflow:
            # A limit without an order selects arbitrary groups.
            wrong = None if result is None or tree.body.limit is not None else "a sum overflows"
        except Unsure:
            wrong = None
        assert wrong is None, f"seed {seed}, question {state}: {wrong}\n{subject.graph.schema}\n{question}"
        asked += 1
        if asked == questions:
            return
    raise AssertionError("too few questions were sound")


def test_random_reads_agree_with_the_oracle(spark: Any, tmp_path: Path) -> None:
    check(tmp_path / "graph", spark, SEED, 3)


_ONE_HOP = r"(?s)(?!.*(path|shortest|\{\d)).*"
"""Only queries without searches, so that the rest of the query takes few Spark jobs."""
SHAPES = {
    "several types": r"(?s).*: [A-Z]\w*\|",
    "any edge": r"(?s).* <?->",
    "all paths": r"(?s).*: path ",
    "shortest path": r"(?s).*: shortest (?!.*\} by )",
    "all shortest paths": r"(?s).*: all shortest (?!.*\} by )",
    "lightest path": r"(?s).*\} by ",
    "vectors": _ONE_HOP + r"order \{ nearest",
    "texts": _ONE_HOP + r"order \{ bm25",
    "fusion": _ONE_HOP + r"order \{ rrf",
    "stages": _ONE_HOP + r"\n  with .*\n  match ",
}


@pytest.mark.parametrize(("number", "shape"), list(enumerate(SHAPES.values())), ids=SHAPES)
def test_random_reads_of_each_shape(spark: Any, tmp_path: Path, number: int, shape: str) -> None:
    check(tmp_path / "graph", spark, SEED + 100 + number, 1, shape)


@pytest.mark.long
@pytest.mark.parametrize(("number", "shape"), list(enumerate(SHAPES.values())), ids=SHAPES)
def test_random_reads_of_each_shape_at_length(spark: Any, tmp_path: Path, number: int, shape: str) -> None:
    check(tmp_path / "graph", spark, SEED + 200 + number, 20, shape)


STAGES = [case for case in language.CASES if case.file == "stages" and case.error is None]


@pytest.mark.parametrize("case", STAGES[:4], ids=str)
def test_stages(spark: Any, worked: dict[str, Any], case: Any) -> None:
    rows = worked[case.graph].query(case.query, params=case.params, engine="spark", spark=spark).to_rows()
    assert rows == case.rows


def test_a_ranking_orders_a_stage(spark: Any, worked: dict[str, Any]) -> None:
    text = """query q($like: Vector(3)) {
        match { $b: Book }
        with { $b, nearest($b.vec, $like) as $distance }
        order { nearest($b.vec, $like) }
        limit 2
        match { $a wrote $b }
        return { $b.isbn, $a.name, $distance < 2.0 as near }
        order { $distance, $a.name }
    }"""
    params = {"like": [1.0, 0.5, 0.0]}
    local = worked["library"].query(text, params=params)
    assert len(local) > 1
    assert worked["library"].query(text, params=params, engine="spark", spark=spark).to_rows() == local.to_rows()


@pytest.mark.long
@pytest.mark.parametrize("number", range(20))
def test_random_reads_agree_with_the_oracle_at_length(spark: Any, tmp_path: Path, number: int) -> None:
    check(tmp_path / "graph", spark, SEED + 1_000 + number, 40)


def test_integer_sums_are_exact(spark: Any, tmp_path: Path) -> None:
    schema = "node N { name: String @key  i: I32?  big: I64?  wide: U64?  day: Date?  at: DateTime?  yes: Bool? }"
    graph = og.init(tmp_path / "graph", schema, sync=False, environ={})
    large = 2**63 - 1
    day = {"day": "2020-02-29", "at": "2020-02-29T01:02:03.004Z", "yes": False}
    rows: list[dict[str, Any]] = [
        {"name": "a", "i": 1, "big": large, "wide": 2**63, **day},
        {"name": "b", "i": 1, "big": 1, "wide": 2**63 - 1, "yes": True},
        {"name": "c", "i": 1, "big": -1, "wide": 0},
        {"name": "d", "i": 2, "wide": 2**63 - 1},
        {"name": "e", "i": 3, "big": large, "wide": 2**64 - 1},
        {"name": "f", "i": 3, "big": 5, "wide": 1},
    ]
    graph.load([{"type": "N", "data": row} for row in rows], mode="overwrite")
    text = """query q($least: I32, $most: I32) {
        match { $n: N  $n.i >= $least  $n.i <= $most }
        return { $n.i, sum($n.big) as big, sum($n.wide) as wide, sum(distinct $n.i) as i, sum($n.i) as all,
                 min($n.day) as day, max($n.at) as at, max($n.yes) as yes }
        order { $n.i }
    }"""
    local = graph.query(text, params={"least": 1, "most": 2})
    found = graph.query(text, params={"least": 1, "most": 2}, engine="spark", spark=spark)
    assert found.to_arrow() == local.to_arrow()
    assert local.to_arrow().column("big").to_pylist() == [large, None]
    for engine in ({}, {"engine": "spark", "spark": spark}):
        with pytest.raises(InputError, match="'sum' overflows: the total is outside the") as caught:
            graph.query(text, params={"least": 1, "most": 3}, **engine)
        assert caught.value.code == "overflow"


def test_medians_equal_those_of_the_engine(spark: Any, tmp_path: Path) -> None:
    schema = "node N { name: String @key  g: I32  i: I32?  u: U32?  big: I64?  wide: U64?  half: F32?  x: F64? }"
    graph = og.init(tmp_path / "graph", schema, sync=False, environ={})
    random = Random(11)
    rows: list[dict[str, Any]] = [
        {"name": "a", "g": 0, "big": 2**53 + 1, "wide": 2**64 - 1, "x": -0.0},
        {"name": "b", "g": 0, "big": 2**53 + 2, "wide": 2**64 - 2, "half": 5e-40},
        {"name": "c", "g": 1, "big": -(2**63), "x": 5e-324},
        {"name": "d", "g": 1, "big": 2**63 - 1, "x": 5e-324, "half": 1.5},
        {"name": "e", "g": 2},
    ]
    for number in range(60):
        draw: dict[str, Any] = {
            "i": random.randint(-(2**31), 2**31 - 1),
            "u": random.randrange(2**32),
            "big": random.randint(-(2**63), 2**63 - 1),
            "wide": random.randrange(2**64),
            "half": random.randrange(64) / 8,
            "x": random.uniform(-1, 1) * 10.0 ** random.randint(-9, 9),
        }
        rows.append(
            {"name": f"n{number}", "g": 3 + number % 4, **{k: v for k, v in draw.items() if random.random() < 0.7}}
        )
    graph.load([{"type": "N", "data": row} for row in rows], mode="overwrite")
    names = ("i", "u", "big", "wide", "half", "x")
    items = ", ".join(f"median($n.{name}) as {name}, median(distinct $n.{name}) as d_{name}" for name in names)
    for keys, order in (("$n.g, ", "order { $n.g }"), ("", "")):
        text = f"query q() {{ match {{ $n: N }} return {{ {keys}{items} }} {order} }}"
        local = graph.query(text)
        assert graph.query(text, engine="spark", spark=spark).to_arrow() == local.to_arrow()


def test_conditions_of_aggregates(spark: Any, tmp_path: Path) -> None:
    schema = "node N { name: String @key  g: I32  i: I32?  x: F64? }  edge To: N -> N"
    graph = og.init(tmp_path / "graph", schema, sync=False, environ={})
    rows = [{"name": f"n{at}", "g": at % 3, "i": at if at % 5 else None, "x": at / 4} for at in range(24)]
    edges = [{"edge": "To", "from": f"n{at}", "to": f"n{at * 7 % 24}"} for at in range(24)]
    graph.load([*({"type": "N", "data": row} for row in rows), *edges], mode="overwrite")
    text = """
    query q($least: I64) {
        match { $n: N  optional { $n to $m  $m.x > 2 } }
        return {
            $n.g as g, count($m where $n.i > $least) as a, count(distinct $m where $m.i is null) as b,
            sum($n.i where $n.i > $least) as c, avg($m.x where $m is not null and $n.x > 1) as d,
            min($n.name where $n.i > $least) as e, median($n.i where $m is null) as f,
            collect($n.name where $m is null) as h, count($n where false) as k,
            collect(distinct { x: $m.x } where $m.i > $least) as l
        }
        having { count($n where false) = 0 }
        order { g }
    }"""
    local = graph.query(text, params={"least": 9})
    assert graph.query(text, params={"least": 9}, engine="spark", spark=spark).to_arrow() == local.to_arrow()


def test_scalar_functions(spark: Any, tmp_path: Path) -> None:
    schema = """node N { name: String @key  i: I32?  wide: U64?  x: F64?  half: F32?  yes: Bool?  day: Date?
                         at: DateTime?  tags: [String]?  marks: [U64]? }"""
    graph = og.init(tmp_path / "graph", schema, sync=False, environ={})
    rows: list[dict[str, Any]] = [
        {"name": " a,é ", "i": -3, "wide": 2**64 - 1, "x": 2.675, "half": 0.1, "yes": True, "day": "2020-02-29",
         "at": "2020-02-29T23:59:59.999Z", "tags": ["x", "y"], "marks": [2**64 - 1]},
        {"name": "b", "i": 0, "wide": 0, "x": -0.5, "half": 1.5, "yes": False, "day": "0001-01-01",
         "at": "9999-12-31T00:00:00Z", "tags": [], "marks": []},
        {"name": "c"},
    ]  # fmt: skip
    graph.load([{"type": "N", "data": row} for row in rows], mode="overwrite")
    arguments = {
        "a String": "$n.name", "an integer": "$n.i", "a number": "$n.x", "a list": "$n.tags", "a DateTime": "$n.at",
        "a String or a list": "$n.tags", "a Date or a DateTime": "$n.day", "a unit of time": "months",
        "a value": "$n.i",
        "a String, a number, a Bool, a Date or a DateTime": "$n.half", "a number or a String": "$n.wide",
        "a Date, a DateTime or a String": "$n.at",
    }  # fmt: skip
    calls = [
        f"{name}({', '.join(arguments[scalar.kind(place).words] for place in range(max(scalar.fewest, 1)))}) as c{at}"
        for at, (name, scalar) in enumerate(SCALARS.items())
    ]
    calls += ["last($n.marks) as m", "case $n.yes when true then $n.marks else [] end as l", "abs($n.wide) as w"]
    every = f"query q() {{ match {{ $n: N }} return {{ $n.name, {', '.join(calls)} }} order {{ $n.name }} }}"
    grouped = """query q() {
        match { $n: N  case when $n.i < 0 then year($n.day) > 2000 else trim($n.name) != "zz" end }
        return { length(split($n.name, ",")) as parts, count($n) as n, max(date_add($n.day, 1, year)) as due }
        having { round(n / 2.0) >= 1 }
        order { case when parts > 1 then 0 else 1 end }
    }"""
    for text in (every, grouped):
        local = graph.query(text).to_arrow()
        assert graph.query(text, engine="spark", spark=spark).to_arrow() == local
        assert local.num_rows > 1


LANGUAGE = [case for case in language.CASES if not language.writes(case) and case.error is None]


@pytest.mark.long
@pytest.mark.parametrize("case", LANGUAGE, ids=str)
def test_language_cases(spark: Any, worked: dict[str, Any], case: Any) -> None:
    rows = worked[case.graph].query(case.query, params=case.params, engine="spark", spark=spark).to_rows()
    found = language.Case(case.file, case.name, case.graph, case.query, case.params, ordered=case.ordered, rows=rows)
    assert language.in_order(found) == language.in_order(case)


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root = tmp_path_factory.mktemp("language")
    return {name: language.build(root, name) for name in sorted({case.graph for case in language.CASES})}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A graph with the smallest memory budget, and more pairs of nodes than fit it."""
    place = tmp_path_factory.mktemp("large") / "graph.omni"
    graph = og.init(place, "node N { name: String @key  x: I32 }", sync=False, environ={})
    graph.load([{"type": "N", "data": {"name": f"n{at}", "x": at % 7}} for at in range(1_200)], mode="append")
    return og.open(place, memory="64MiB", sync=False, environ={})


PAIRS = "query q() { match { $a: N  $b: N } return { $a.x, count($a where $a.x > $b.x) as n } order { $a.x } }"


def test_match_that_exceeds_the_memory_is_handed_over(spark: Any, large: Any) -> None:
    assert spark.range(3).count() == 3, "the session is active"
    assert re.search(r"\n  engine  spark: estimated \d+\.\d MiB of 32\.0 MiB\n$", str(large.explain(PAIRS)))
    rows = large.query(PAIRS, params={}).to_rows()
    below = {x: sum(1 for at in range(1_200) if at % 7 < x) for x in range(7)}
    each = {x: sum(1 for at in range(1_200) if at % 7 == x) for x in range(7)}
    assert rows == [{"a.x": x, "n": each[x] * below[x]} for x in range(7)]
    with pytest.raises(LimitReached):
        large.query(PAIRS, engine="memory")


def test_match_without_an_estimate_is_handed_over_when_it_exceeds_the_memory(
    spark: Any, line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spark.range(3).count() == 3, "the session is active"
    text = "query q() { match { $a: Stop  $a next $b } return { $a.name } limit 5 }"
    assert "engine" not in str(line.explain(text))
    assert len(line.query(text)) == 5, "the adjacency is built"
    monkeypatch.setattr(line._context.cache, "memory", MemoryBudget(128))
    assert len(line.query(text)) == 5
    with pytest.raises(LimitReached):
        line.query(text, engine="memory")
    with pytest.raises(LimitReached):
        line.query(text, limits=Limits(bytes_max=32))


def test_query_times_out(spark: Any, graphs: dict[str, Any]) -> None:
    cancel = og.Cancellation()
    cancel.cancel()
    text = "query q() { match { $b: Book } return { $b.isbn } }"
    for options, error in (({"timeout": 0.001}, QueryTimeout), ({"cancel": cancel}, Cancelled)):
        with pytest.raises(error):
            graphs["library"].query(text, engine="spark", spark=spark, **options)
    assert spark.range(3).count() == 3
