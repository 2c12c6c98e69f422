"""The error object: a row for every class, and encode-then-decode."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import msgspec
import pytest

from omnigraph import errors
from omnigraph.errors import Diagnostic, Hint, OmniGraphError
from omnigraph.policy.yaml_nodes import PolicyProblem
from omnigraph.versioning.compare.three_way import ConflictDetail
from omnigraph.wire.errors import (
    ERROR_CODES,
    ConflictDocument,
    ErrorDocument,
    decode_error,
    error_code,
    error_document,
    printed_error,
)


def tree(root: type[OmniGraphError]) -> Iterator[type[OmniGraphError]]:
    yield root
    for child in root.__subclasses__():
        yield from tree(child)


CLASSES = [cls for cls in tree(OmniGraphError) if cls.__module__ == errors.__name__]
HINT = Hint("for Python", cli="for the command line", in_shell="for the shell")
DIAGNOSTICS = (
    Diagnostic("type", "T7", "no such property", "q.gq", 2, 3, 14, 17, "  $p.nme\n     ^^^", HINT, "query 'q'"),
    Diagnostic("type", "T8", "no such type", "q.gq", 3, 1, 20, 21, "x\n^"),
)


def record_error() -> OmniGraphError:
    error = errors.RecordError(
        "wrong", source="a.jsonl", line=3, type_name="Person", property_name="age", rule="type", hint="fix it"
    )
    error.record = {"type": "Person", "data": {"age": [1, None, 2.5]}}
    return error


def storage_error() -> OmniGraphError:
    error = errors.StorageError("no answer", code="unreachable", hint=HINT)
    error.idempotency_key = "key-1"
    return error


SAMPLES: dict[type[OmniGraphError], OmniGraphError] = {
    cls: cls("it failed", code="some_reason", hint=HINT)
    for cls in CLASSES
    if cls.__init__ is OmniGraphError.__init__ or cls is errors.EmbeddingError
} | {
    errors.CompileError: errors.CompileError(DIAGNOSTICS),
    errors.ParseError: errors.ParseError(DIAGNOSTICS[1:]),
    errors.SchemaError: errors.SchemaError(DIAGNOSTICS),
    errors.TypeCheckError: errors.TypeCheckError(DIAGNOSTICS),
    errors.RecordError: record_error(),
    errors.ModelMismatch: errors.ModelMismatch("the schema", recorded="a", resolved="b"),
    errors.EmbeddingMismatch: errors.EmbeddingMismatch("Person.v", recorded="a", resolved="b"),
    errors.ChangeCursorRejected: errors.ChangeCursorRejected("it is damaged"),
    errors.PageCursorRejected: errors.PageCursorRejected("it is damaged"),
    errors.ChangeFeedGap: errors.ChangeFeedGap("01ARZ3", "cursor"),
    errors.PageGone: errors.PageGone("01ARZ3"),
    errors.LimitReached: errors.LimitReached("too many rows", resource="rows", limit=5, actual=9, hint="narrow it"),
    errors.QueryTimeout: errors.QueryTimeout("too slow", resource="time", limit=2.5),
    errors.ChangeDiffRefused: errors.ChangeDiffRefused(
        "it changed the schema", reason="schema_boundary", graph_commit_id="01ARZ3", hint="compare the points"
    ),
    errors.RangeNotSatisfiable: errors.RangeNotSatisfiable(5, 9, 3),
    errors.RemoteError: errors.RemoteError("no answer of ours", status=502, text="Bad Gateway", hint="check the proxy"),
    errors.OutcomeUnknown: errors.OutcomeUnknown("lost", commit_id="01ARZ3", hint="read the branch"),
    errors.ExpectedVersionMismatch: errors.ExpectedVersionMismatch("node:Person", expected=3, actual=4),
    errors.PreconditionFailed: errors.PreconditionFailed("main", expected="01A", actual=None),
    errors.KeyConflict: errors.KeyConflict("node:Person", "Ana", "Ana exists", hint="use upsert"),
    errors.ProposalBlocked: errors.ProposalBlocked("blocked", ["1 approval needed"], hint="review it"),
    errors.Denied: errors.Denied("denied", ["rule 1", "rule 2"], hint="ask"),
    errors.Overloaded: errors.Overloaded(
        "too many", scope="actor", retry_after_s=60, limit="writes_per_actor", value=16, actual=16
    ),
    errors.EmbeddingError: errors.EmbeddingError("no vector", code="quota", text_index=4),
    errors.StorageError: storage_error(),
    errors.MergeConflict: errors.MergeConflict("two changes", (), hint=HINT),
    errors.PolicyInvalid: errors.PolicyInvalid("not valid", (), hint="correct it"),
}


def sent(error: OmniGraphError, *, typed: bool = False) -> OmniGraphError:
    """The error after it was written as JSON and read again."""
    text = msgspec.json.encode(error_document(error, typed=typed))
    return decode_error(msgspec.json.decode(text, type=ErrorDocument), typed=typed)


def hints(hint: str | None) -> Any:
    return (str(hint), hint.cli, hint.shell) if isinstance(hint, Hint) else hint


def test_every_error_has_a_sample() -> None:
    assert set(SAMPLES) == set(CLASSES)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_has_a_code_of_the_closed_set(cls: type[OmniGraphError]) -> None:
    assert error_code(SAMPLES[cls]) in ERROR_CODES
    document = error_document(SAMPLES[cls])
    assert (document.code, document.reason) == (error_code(SAMPLES[cls]), SAMPLES[cls].code)


@pytest.mark.parametrize("typed", [False, True], ids=["plain", "typed"])
@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_decoding_restores_class_and_fields(cls: type[OmniGraphError], *, typed: bool) -> None:
    error = SAMPLES[cls]
    found = sent(error, typed=typed)
    assert type(found) is cls
    assert vars(found) == vars(error)
    assert (found.args, str(found), hints(found.hint)) == (error.args, str(error), hints(error.hint))
    if isinstance(error, errors.CompileError):
        assert isinstance(found, errors.CompileError)
        assert found.render("cli") == error.render("cli")


def test_a_subclass_outside_the_error_module_is_sent_as_its_public_class() -> None:
    class Narrow(errors.LimitReached):
        pass

    document = error_document(Narrow("too many", resource="rows", limit=10, actual=11))
    assert document.class_ == "LimitReached"
    restored = decode_error(document)
    assert isinstance(restored, errors.LimitReached)
    assert (restored.resource, restored.limit, restored.actual) == ("rows", 10, 11)


def test_conflicts_of_a_merge_keep_their_fields() -> None:
    row = {"id": "Ana", "born": date(2000, 1, 2), "big": 2**60, "raw": b"x"}
    conflicts = [
        ConflictDetail("node:Person", "Ana", "divergent_update", "both changed it", row, row, row, ("born",)),
        ConflictDetail("schema", None, "schema_conflict", "two schemas"),
    ]
    found = sent(errors.MergeConflict("two changes", conflicts))
    assert isinstance(found, errors.MergeConflict)
    for conflict, decoded in zip(conflicts, found.conflicts, strict=True):
        assert isinstance(decoded, ConflictDocument)
        expected = {**conflict.to_json(), "resolutions": conflict.resolutions}
        assert msgspec.json.encode(decoded) == msgspec.json.encode(expected)
        for name in ("id", "table_key", "row_id", "kind", "message", "properties", "resolutions"):
            assert getattr(decoded, name) == getattr(conflict, name)


def test_rows_of_typed_errors_keep_their_types() -> None:
    row = {"id": "Ana", "born": date(2000, 1, 2), "big": 2**60, "raw": b"x"}
    conflict = ConflictDetail("node:Person", "Ana", "divergent_update", "both changed it", row, None, row)
    found = sent(errors.MergeConflict("two changes", [conflict]), typed=True)
    assert isinstance(found, errors.MergeConflict)
    assert [(each.base, each.ours, each.theirs) for each in found.conflicts] == [(row, None, row)]
    wrong = errors.RecordError("not valid")
    wrong.record = row
    record = sent(wrong, typed=True)
    assert isinstance(record, errors.RecordError)
    assert record.record == row


def test_problems_of_a_policy_keep_their_fields() -> None:
    problems = [
        PolicyProblem("rules[0].allow.actions[1]", "unknown action 'reed'", 7, "r1", "did you mean 'read'?"),
        PolicyProblem("version", "is missing"),
    ]
    found = sent(errors.PolicyInvalid("not valid", problems))
    assert isinstance(found, errors.PolicyInvalid)
    assert [msgspec.to_builtins(problem) for problem in found.problems] == [problem.to_json() for problem in problems]


@pytest.mark.parametrize(
    ("members", "cls"),
    [
        ({"code": "not_found", "reason": "branch_not_found"}, errors.BranchNotFound),
        ({"code": "not_found", "reason": "of_a_later_release"}, errors.NotFound),
        ({"code": "bad_request", "reason": "unknown", "class": "OfALaterRelease"}, errors.InputError),
        ({"code": "too_many_requests", "reason": "slots"}, errors.Overloaded),
        ({"code": "unauthorized", "reason": "missing_token"}, errors.Unauthorized),
        ({"code": "internal", "reason": "of_a_later_release"}, OmniGraphError),
        ({"code": "conflict", "reason": "precondition_failed"}, errors.PreconditionFailed),
        ({"code": "bad_request", "reason": "parse_error"}, errors.InputError),
        ({"code": "forbidden", "reason": "denied"}, errors.Denied),
    ],
)
def test_unknown_class_is_decoded_as_the_nearest(members: dict[str, str], cls: type[OmniGraphError]) -> None:
    error = decode_error(ErrorDocument.of({"error": "it failed", **members}))
    assert type(error) is cls
    assert (error.message, error.code, str(error)) == ("it failed", members["reason"], "it failed")
    assert getattr(error, "reasons", ()) == ()


def test_compile_error_without_class_is_found_by_its_diagnostics() -> None:
    document = printed_error(errors.SchemaError([Diagnostic("catalog", "S1", "m", "s", 1, 1, 0, 1, "")]), "cli")
    assert type(decode_error(document)) is errors.SchemaError


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_printed_error_has_the_hint_of_the_interface(cls: type[OmniGraphError]) -> None:
    error = SAMPLES[cls]
    printed = printed_error(error, "cli").to_json()
    assert printed.get("hint") == (error.hint.cli if isinstance(error.hint, Hint) else error.hint) or not error.hint
    assert not {"class", "hints", "record_error", "denial", "idempotency_key"} & set(printed)
