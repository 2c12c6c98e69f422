from __future__ import annotations

import ast
import inspect
import pickle
import re
from collections.abc import Iterator

import pytest

from omnigraph import errors
from omnigraph.errors import CompileError, Diagnostic, OmniGraphError, ParseError, SchemaError, TypeCheckError


def tree(root: type[OmniGraphError]) -> Iterator[type[OmniGraphError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from tree(child)


CLASSES = list(tree(OmniGraphError))


def test_every_error_is_in_the_class_tree() -> None:
    defined = {
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, BaseException) and value.__module__ == errors.__name__
    }
    assert set(CLASSES) == defined


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_its_own_code(cls: type[OmniGraphError]) -> None:
    assert "default_code" in vars(cls)
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", cls.default_code)


def test_no_two_errors_share_a_code() -> None:
    codes = [cls.default_code for cls in CLASSES]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_is_in_the_module_docstring(cls: type[OmniGraphError]) -> None:
    assert re.search(rf"\b{cls.__name__}\b", errors.__doc__ or "")
    assert cls.__doc__


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_errors_do_not_depend_on_an_interface(cls: type[OmniGraphError]) -> None:
    # A `RemoteError` describes the answer of a server.
    words = "exit" if cls is errors.RemoteError else "http|status|exit"
    assert not re.search(words, inspect.getsource(cls), re.IGNORECASE)


def test_module_imports_no_other_module_of_the_package() -> None:
    imported = {
        name.name if isinstance(node, ast.Import) else node.module
        for node in ast.walk(ast.parse(inspect.getsource(errors)))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    }
    assert imported <= {"__future__", "collections.abc", "dataclasses", "pathlib", "traceback", "typing"}


def test_message_code_and_hint() -> None:
    plain = OmniGraphError("it failed")
    assert (plain.message, plain.code, plain.hint, str(plain)) == ("it failed", "error", None, "it failed")
    full = errors.BranchNotFound("no branch 'x'", code="other", hint="create it")
    assert (full.message, full.code, full.hint) == ("no branch 'x'", "other", "create it")


def diagnostic(**changes: object) -> Diagnostic:
    fields: dict[str, object] = {
        "kind": "parse",
        "code": "parse_error",
        "message": "expected '{', found '}'",
        "source_name": "team.pg",
        "line": 3,
        "column": 8,
        "start": 30,
        "end": 31,
        "excerpt": "   3 | node A }\n     |        ^",
        **changes,
    }
    return Diagnostic(**fields)  # type: ignore[arg-type]


def test_compile_error_shows_caret_and_hint() -> None:
    error = ParseError([diagnostic(hint="a body opens with a brace", subject="node 'A'")])
    assert str(error) == (
        "parse error: expected '{', found '}'\n"
        "  --> team.pg:3:8, in node 'A'\n"
        "   3 | node A }\n"
        "     |        ^\n"
        "hint: a body opens with a brace"
    )
    assert error.message == "parse error: expected '{', found '}'"
    assert error.hint == "a body opens with a brace"
    assert error.code == "parse_error"
    assert error.span == (30, 31)


def test_compile_error_shows_every_diagnostic_and_has_the_code_of_the_first() -> None:
    first = diagnostic(kind="catalog", code="S20", message="declared twice")
    error = SchemaError([first, diagnostic(line=9)])
    assert error.code == "S20"
    assert error.message == "catalog error: S20: declared twice"
    assert str(error).split("\n\n") == [first.render(), diagnostic(line=9).render()]
    assert error.diagnostics == (first, diagnostic(line=9))


HEADLINES = {
    ("parse", "parse_error"): "parse error: no",
    ("parse", "S3"): "parse error: S3: no",
    ("catalog", "catalog_error"): "catalog error: no",
    ("type", "type_error"): "type error: no",
    ("type", "T7"): "type error: T7: no",
}


@pytest.mark.parametrize(("what", "headline"), HEADLINES.items(), ids=HEADLINES.values())
def test_headline(what: tuple[str, str], headline: str) -> None:
    assert diagnostic(kind=what[0], code=what[1], message="no").headline == headline


def test_compile_error_requires_a_diagnostic() -> None:
    with pytest.raises(AssertionError):
        TypeCheckError([])


@pytest.mark.parametrize("cls", [ParseError, SchemaError, TypeCheckError])
def test_compile_errors_are_input_errors(cls: type[CompileError]) -> None:
    assert issubclass(cls, errors.InputError)


def test_attributes_of_errors() -> None:
    assert errors.MergeConflict("no", ["a", "b"]).conflicts == ("a", "b")
    assert errors.Denied("no", ["a"], hint="ask").reasons == ("a",)


def test_diagnostics_can_be_pickled() -> None:
    one = diagnostic()
    assert pickle.loads(pickle.dumps(one)) == one
