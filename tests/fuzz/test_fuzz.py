"""No text may crash a compiler, hang it, or change its meaning in the formatter.

A text ends in a result or in an `OmniGraphError`. The work is linear in the length of the text: four times the text
takes at most eight times the function calls. Calls are counted, so the result does not depend on the machine. The long
form (`pytest --long tests/fuzz`) runs 200,000 texts per language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from cProfile import Profile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import CompileError, OmniGraphError
from omnigraph.lang.spans import Source
from omnigraph.lang.tokens import lex
from omnigraph.query.check.typecheck import check_query
from omnigraph.query.lint import lint
from omnigraph.query.plan.explain import explain
from omnigraph.query.plan.lower import lower
from omnigraph.query.syntax.ast import QueryFile
from omnigraph.query.syntax.format import format_queries, print_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema
from omnigraph.schema.format import format_schema, print_schema
from omnigraph.schema.parser import parse_schema
from support import everything
from support.hostile import hostile_queries, hostile_schemas
from support.mutate import mutant
from support.trees import QUERY_FILES, SCHEMA_FILES

EXAMPLES = Path(__file__).parent.parent / "cases" / "examples"
SHORT, LONG = 3_000, 200_000
HOSTILE_SHORT, HOSTILE_LONG = 12_000, 100_000
TIMES_LONGER, TIMES_THE_CALLS = 4, 8
"""(Growth of the text, allowed growth of the function calls.)"""
CALLS_MIN = 2_000
"""Allowance for calls that do not depend on the length of the text."""

Step = Callable[[str], Any]


def trees(strategy: st.SearchStrategy[Any], show: Callable[[Any], str], count: int) -> list[str]:
    """The texts of `count` random trees, the same in every run."""
    texts: list[str] = []

    @settings(derandomize=True, database=None, deadline=None, max_examples=count)
    @given(strategy)
    def collect(tree: Any) -> None:
        texts.append(show(tree))

    collect()
    return texts


# -- steps ---------------------------------------------------------------------------------------------


def build_tables(text: str) -> None:
    for type_ in compile_schema(text).tables():
        table_schema(type_)


def plan_queries(catalog: Catalog) -> Step:
    def plan(text: str) -> None:
        source = Source(text, "q.gq")
        for query in parse_queries(text).queries:
            try:
                explain(lower(check_query(catalog, query, source)))
            except CompileError as error:
                str(error)

    return plan


def lint_queries(catalog: Catalog) -> Step:
    return lambda text: lint(catalog, text, query_path="q.gq", schema_source={"kind": "file"}).to_dict()


SCHEMA_STEPS: Sequence[Step] = (build_tables, format_schema)


def query_steps(catalog: Catalog) -> Sequence[Step]:
    return plan_queries(catalog), lint_queries(catalog), format_queries


# -- properties ----------------------------------------------------------------------------------------


def run(step: Step, text: str) -> None:
    """Run one step, which must end in a result or an `OmniGraphError`."""
    try:
        step(text)
    except OmniGraphError as error:
        check_error(error, text)


def count_calls(step: Step, text: str) -> int:
    """Count the Python and C function calls of one step."""
    profile = Profile()
    profile.runcall(run, step, text)
    return sum(entry.callcount for entry in profile.getstats())


def check_error(error: OmniGraphError, text: str) -> None:
    """Every diagnostic points into the text and is printable."""
    assert isinstance(error, CompileError)
    size = len(text.encode("utf-8", "surrogatepass"))
    lines = text.count("\n") + 1
    for diagnostic in error.diagnostics:
        assert 0 <= diagnostic.start < diagnostic.end <= size + 1
        assert 1 <= diagnostic.line <= lines
        assert diagnostic.column >= 1
        shown = diagnostic.render()
        assert shown.count("\n") == (4 if diagnostic.hint else 3)
        assert len(shown) < 3_000
        assert shown.replace("\n", "").isprintable()


def check_schema_format(text: str) -> None:
    """If the text parses, its formatted form has the same meaning and comments, and formatting it again changes
    nothing.
    """
    try:
        tree = parse_schema(text)
    except CompileError:
        return
    formatted = format_schema(text)
    assert parse_schema(formatted) == tree
    assert comments(formatted) == comments(text)
    assert format_schema(formatted) == formatted


def check_query_format(text: str) -> None:
    try:
        tree = parse_queries(text)
    except CompileError:
        return
    formatted = format_queries(text)
    assert parse_queries(formatted) == tree
    assert comments(formatted) == comments(text)
    assert format_queries(formatted) == formatted


def comments(text: str) -> Counter[str]:
    return Counter(comment.text.rstrip() for comment in lex(text).comments)


def try_all(inputs: Iterator[tuple[str, str, Sequence[Step], Step]]) -> None:
    """Run every (name, text, steps, check)."""
    for name, text, steps, check in inputs:
        try:
            for step in steps:
                run(step, text)
            check(text)
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}\n{text[:3000]!r}")


def try_growth(language: str, size: int) -> None:
    """Run the hostile texts in two lengths and compare the number of calls."""
    short, long = (hostile_inputs(language, length) for length in (size // TIMES_LONGER, size))
    for (name, text, steps, _), (_, longer, _, _) in zip(short, long, strict=True):
        for at, step in enumerate(steps):
            before, after = count_calls(step, text), count_calls(step, longer)
            limit = TIMES_THE_CALLS * (before + CALLS_MIN)
            told = f"{before:,} calls for {len(text):,} letters, {after:,} for {len(longer):,}"
            assert after <= limit, f"{name}, step {at}: {told}"


# -- the suites ----------------------------------------------------------------------------------------


def schema_inputs(count: int, seed: str) -> Iterator[tuple[str, str, Sequence[Step], Step]]:
    written = [path.read_text() for path in sorted(EXAMPLES.glob("*.pg"))] + [everything.SCHEMA] * 3
    corpora = (written, written, trees(SCHEMA_FILES, print_schema, 60))
    for number in range(count):
        name = f"{seed}:{number}"
        yield name, mutant(corpora[number % len(corpora)], name), SCHEMA_STEPS, check_schema_format


def query_inputs(count: int, seed: str) -> Iterator[tuple[str, str, Sequence[Step], Step]]:
    written = [(path.with_suffix(".pg").read_text(), path.read_text()) for path in sorted(EXAMPLES.glob("*.gq"))]
    written += [(everything.SCHEMA, everything.QUERIES)] * 2
    corpora = []
    for schema, queries in written:
        # Mostly single queries, so that a defect in one does not hide the others.
        single = [print_queries(QueryFile((query,))) for query in parse_queries(queries).queries]
        corpora.append(([queries, *single * 2], query_steps(compile_schema(schema))))
    corpora.append((trees(QUERY_FILES, print_queries, 60), corpora[-1][1]))
    for number in range(count):
        name = f"{seed}:{number}"
        texts, steps = corpora[number % len(corpora)]
        yield name, mutant(texts, name), steps, check_query_format


def test_seed_texts_compile() -> None:
    catalog = compile_schema(everything.SCHEMA)
    report = lint(catalog, everything.QUERIES, query_path="q.gq", schema_source={"kind": "file"})
    assert report.ok, report.to_dict()


def test_schema_mutants() -> None:
    try_all(schema_inputs(SHORT, "short"))


def test_query_mutants() -> None:
    try_all(query_inputs(SHORT, "short"))


def hostile_inputs(language: str, size: int) -> Iterator[tuple[str, str, Sequence[Step], Step]]:
    texts = (hostile_schemas if language == "schema" else hostile_queries)(size)
    steps = SCHEMA_STEPS if language == "schema" else query_steps(compile_schema((EXAMPLES / "library.pg").read_text()))
    for name, text in texts.items():
        yield name, text, steps, lambda _: None


@pytest.mark.parametrize("language", ["schema", "query"])
def test_hostile_texts(language: str) -> None:
    try_growth(language, HOSTILE_SHORT)


@pytest.mark.long
@pytest.mark.parametrize("language", ["schema", "query"])
def test_long_hostile_texts(language: str) -> None:
    try_growth(language, HOSTILE_LONG)


@pytest.mark.long
@pytest.mark.parametrize("language", ["schema", "query"])
def test_long_mutants(language: str) -> None:
    try_all((schema_inputs if language == "schema" else query_inputs)(LONG, "long"))
