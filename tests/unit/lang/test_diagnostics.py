from __future__ import annotations

import pytest

from omnigraph.errors import CompileError, ParseError, SchemaError, TypeCheckError
from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Source, Span

TEXT = "one two\nthrée fôur five\n"


def reporter() -> Reporter:
    return Reporter(Source(TEXT, "file.pg"))


def raised_by(found: Reporter) -> CompileError:
    with pytest.raises(CompileError) as raised:
        found.raise_if_any()
    return raised.value


def test_nothing_to_raise() -> None:
    reporter().raise_if_any()


def test_a_fault_becomes_a_diagnostic() -> None:
    found = reporter()
    found.add(Fault("wrong", Span(14, 18), code="S9", hint="do this"), subject="node 'A'")
    (diagnostic,) = raised_by(found).diagnostics
    assert diagnostic.to_dict() == {
        "kind": "parse",
        "code": "S9",
        "message": "wrong",
        "line": 2,
        "column": 7,
        "span": {"start": 15, "end": 20},
        "subject": "node 'A'",
        "hint": "do this",
    }
    assert diagnostic.source_name == "file.pg"
    assert TEXT.encode()[diagnostic.start : diagnostic.end].decode() == "fôur"
    assert diagnostic.render() == (
        "parse error: S9: wrong\n"
        "  --> file.pg:2:7, in node 'A'\n"
        "   2 | thrée fôur five\n"
        "     |       ^^^^\n"
        "hint: do this"
    )


def test_absent_fields_are_omitted() -> None:
    found = reporter()
    found.add(Fault("wrong", Span(0, 3), kind="catalog"))
    (diagnostic,) = raised_by(found).diagnostics
    assert diagnostic.to_dict() == {
        "kind": "catalog",
        "code": "catalog_error",
        "message": "wrong",
        "line": 1,
        "column": 1,
        "span": {"start": 0, "end": 3},
    }
    assert diagnostic.render() == "catalog error: wrong\n  --> file.pg:1:1\n   1 | one two\n     | ^^^"


@pytest.mark.parametrize("offset", [0, 7, len(TEXT)])
def test_an_empty_span_is_one_byte_wide(offset: int) -> None:
    found = reporter()
    found.add(Fault("wrong", Span(offset, offset)))
    (diagnostic,) = raised_by(found).diagnostics
    assert diagnostic.end == diagnostic.start + 1


@pytest.mark.parametrize(
    ("kind", "expected"), [("parse", ParseError), ("catalog", SchemaError), ("type", TypeCheckError)]
)
def test_the_kind_determines_the_error_class(kind: str, expected: type[CompileError]) -> None:
    found = reporter()
    found.add(Fault("wrong", Span(0, 3), kind=kind))
    error = raised_by(found)
    assert type(error) is expected
    assert error.code == expected.default_code == f"{kind}_error"
    assert error.message == f"{kind} error: wrong"


def test_errors_are_in_text_order_and_the_first_determines_the_class() -> None:
    found = reporter()
    found.add(Fault("third", Span(14, 18), kind="type"))
    found.add(Fault("first", Span(0, 3), kind="catalog", code="S20", hint="look"))
    found.add(Fault("second", Span(4, 7), kind="parse"))
    error = raised_by(found)
    assert type(error) is SchemaError
    assert [diagnostic.message for diagnostic in error.diagnostics] == ["first", "second", "third"]
    assert (error.code, error.hint, error.span) == ("S20", "look", (0, 3))


def test_a_repeated_message_at_one_position_counts_once() -> None:
    found = reporter()
    for message, span in (("a", Span(0, 3)), ("a", Span(0, 3)), ("b", Span(0, 3)), ("a", Span(4, 7))):
        found.add(Fault(message, span))
    assert len(raised_by(found).diagnostics) == 3


def test_the_hundredth_error_is_the_last() -> None:
    found = Reporter(Source("x" * 200, "file"))
    for place in range(99):
        found.add(Fault("wrong", Span(place, place + 1)))
    with pytest.raises(ParseError) as raised:
        found.add(Fault("wrong", Span(99, 100)))
    assert len(raised.value.diagnostics) == 100


def test_source_text_in_messages_is_escaped() -> None:
    found = reporter()
    found.add(Fault("'\x1b[2J\n'", Span(0, 3), hint="not \x00"), subject="node '\x07'")
    (diagnostic,) = raised_by(found).diagnostics
    assert diagnostic.message == "'\\u001b[2J\\u000a'"
    assert diagnostic.hint == "not \\u0000"
    assert diagnostic.subject == "node '\\u0007'"


def test_a_long_message_is_truncated() -> None:
    found = reporter()
    found.add(Fault("x" * 400, Span(0, 3)))
    found.add(Fault("x" * 401, Span(4, 7), hint="y" * 100_000))
    whole, cut = raised_by(found).diagnostics
    assert whole.message == "x" * 400
    assert cut.message == "x" * 399 + "…"
    assert cut.hint == "y" * 399 + "…"
