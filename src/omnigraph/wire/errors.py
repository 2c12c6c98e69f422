"""The error object: the JSON form of every `OmniGraphError`, and the error of a JSON form.

    {error, code, reason, hint?, diagnostics?, …particulars}

`code` is a closed set; `reason` is the code of the error class or of the situation. The particulars are the structured
fields of some classes. The members after `policy_problems` are for clients that raise the same error again; the command
line does not print them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, cast, get_args

import msgspec
from msgspec import UNSET, UnsetType, field

from omnigraph.errors import (
    ChangeDiffRefused,
    ChangeFeedGap,
    CompileError,
    Conflict,
    Damaged,
    Denied,
    Diagnostic,
    DiagnosticKind,
    EmbeddingError,
    EmbeddingMismatch,
    ExpectedVersionMismatch,
    Hint,
    InputError,
    KeyConflict,
    LimitReached,
    MergeConflict,
    ModelMismatch,
    NotFound,
    OmniGraphError,
    OutcomeUnknown,
    Overloaded,
    PageGone,
    ParseError,
    PolicyInvalid,
    PreconditionFailed,
    ProposalBlocked,
    QueryTimeout,
    RangeNotSatisfiable,
    RecordError,
    RemoteError,
    Resource,
    SchemaError,
    Surface,
    TypeCheckError,
    Unauthorized,
    hint_for,
)
from omnigraph.wire.document import Document
from omnigraph.wire.json_values import json_value
from omnigraph.wire.typed_values import typed_value, untyped_value

ErrorCode = Literal[
    "unauthorized",
    "forbidden",
    "bad_request",
    "not_found",
    "conflict",
    "internal",
    "method_not_allowed",
    "too_many_requests",
]
ConflictKind = Literal[
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
    "schema_conflict",
    "query_conflict",
    "alias_conflict",
]
ERROR_CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
"""The closed set of `code`: a new meaning gets a new member, not a new code."""

_CODES: dict[type[OmniGraphError], ErrorCode] = {
    InputError: "bad_request",
    NotFound: "not_found",
    Conflict: "conflict",
    Unauthorized: "unauthorized",
    Denied: "forbidden",
    Overloaded: "too_many_requests",
    OutcomeUnknown: "internal",
    Damaged: "internal",
    OmniGraphError: "internal",
}
"""Error class → `code`; a subclass inherits the code of its nearest ancestor."""


class Hints(Document):
    """The variants of a hint for the command line and the shell."""

    cli: str
    shell: str


class SpanDocument(Document):
    """Byte offsets of a position in a text."""

    start: int
    end: int


class DiagnosticDocument(Document, kw_only=True):
    """One error in a source text."""

    kind: DiagnosticKind
    code: str
    message: str
    line: int
    column: int
    span: SpanDocument
    subject: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    hints: Hints | UnsetType = UNSET
    source_name: str | UnsetType = UNSET
    excerpt: str | UnsetType = UNSET


class ConflictRowDocument(Document):
    """A row of a violation, whose resolution can end it: in the merged graph and on both sides, null if absent."""

    id: str
    table_key: str
    row_id: str
    row: dict[str, Any] | None
    ours: dict[str, Any] | None
    theirs: dict[str, Any] | None


class ConflictDocument(Document, kw_only=True):
    """One conflict of a merge; it has the fields of the conflict of an embedded graph, with JSON values."""

    id: str
    table_key: str
    row_id: str | None
    kind: ConflictKind
    message: str
    properties: tuple[str, ...]
    base: dict[str, Any] | None
    ours: dict[str, Any] | None
    theirs: dict[str, Any] | None
    resolutions: tuple[str, ...] | UnsetType = UNSET
    rows: tuple[ConflictRowDocument, ...] | UnsetType = UNSET
    """The rows of a violation that `resolve` can name."""


class ManifestConflict(Document):
    """Fields of `ExpectedVersionMismatch`."""

    table_key: str
    expected: int
    actual: int


class PreconditionFailure(Document, kw_only=True):
    """Fields of `PreconditionFailed`."""

    expected: str
    actual: str | None
    branch: str | UnsetType = UNSET


class FeedGap(Document):
    """Fields of `ChangeFeedGap`."""

    cursor: str | None
    first_unreadable_commit_id: str


class KeyConflictRow(Document):
    """Fields of `KeyConflict`."""

    table_key: str
    row_id: str


class RecordDetail(Document):
    """Fields of `RecordError`."""

    reason: str
    source: str | None
    line: int | None
    type_name: str | None
    property_name: str | None
    rule: str
    record: Any
    column: str | None = None


class EmbeddingModels(Document):
    """Fields of `ModelMismatch` and `EmbeddingMismatch`."""

    recorded: str
    resolved: str


class EmbeddingFailure(Document):
    """Fields of `EmbeddingError`."""

    text_index: int | None


class Denial(Document):
    """Fields of `Denied`."""

    reasons: tuple[str, ...]
    rules: tuple[str, ...] = ()


class ProposalBlock(Document):
    """Fields of `ProposalBlocked`."""

    reasons: tuple[str, ...]


class Overload(Document):
    """Fields of `Overloaded`."""

    scope: Literal["actor", "server"]
    retry_after_s: int
    limit: str | None
    value: int | None
    actual: int | None


class GonePage(Document):
    """Fields of `PageGone`."""

    commit_id: str


class ResourceLimit(Document, kw_only=True):
    """Fields of `LimitReached` and `QueryTimeout`."""

    resource: Resource
    limit: int | float
    actual: int | float | UnsetType = UNSET


class UnknownOutcome(Document):
    """Fields of `OutcomeUnknown`."""

    commit_id: str | None


class RemoteAnswer(Document):
    """Fields of `RemoteError`."""

    status: int | None
    text: str | None


class DiffRefusal(Document):
    """Fields of `ChangeDiffRefused`."""

    reason: Literal["parentless_commit", "schema_boundary"]
    graph_commit_id: str


class BlobRange(Document):
    """Fields of `RangeNotSatisfiable`."""

    start: int
    end: int | None
    length: int


class PolicyProblemDocument(Document, kw_only=True):
    """One problem of a policy file; it has the fields of the problem of `PolicyInvalid`."""

    path: str
    message: str
    rule: str | UnsetType = UNSET
    line: int | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class ErrorDocument(Document, kw_only=True):
    """The error object."""

    error: str
    code: ErrorCode
    reason: str
    hint: str | UnsetType = UNSET
    diagnostics: tuple[DiagnosticDocument, ...] | UnsetType = UNSET
    merge_conflicts: tuple[ConflictDocument, ...] | UnsetType = UNSET
    manifest_conflict: ManifestConflict | UnsetType = UNSET
    precondition_failure: PreconditionFailure | UnsetType = UNSET
    change_feed_gap: FeedGap | UnsetType = UNSET
    key_conflict: KeyConflictRow | UnsetType = UNSET
    policy_problems: tuple[PolicyProblemDocument, ...] | UnsetType = UNSET
    record_error: RecordDetail | UnsetType = UNSET
    embedding_models: EmbeddingModels | UnsetType = UNSET
    embedding_failure: EmbeddingFailure | UnsetType = UNSET
    denial: Denial | UnsetType = UNSET
    proposal_block: ProposalBlock | UnsetType = UNSET
    overload: Overload | UnsetType = UNSET
    page_gone: GonePage | UnsetType = UNSET
    resource_limit: ResourceLimit | UnsetType = UNSET
    outcome_unknown: UnknownOutcome | UnsetType = UNSET
    remote_answer: RemoteAnswer | UnsetType = UNSET
    change_diff_refusal: DiffRefusal | UnsetType = UNSET
    blob_range: BlobRange | UnsetType = UNSET
    class_: str | UnsetType = field(name="class", default=UNSET)
    hints: Hints | UnsetType = UNSET
    idempotency_key: str | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


_PARTICULARS: dict[type[OmniGraphError], tuple[str, type[Document]]] = {
    ExpectedVersionMismatch: ("manifest_conflict", ManifestConflict),
    PreconditionFailed: ("precondition_failure", PreconditionFailure),
    ChangeFeedGap: ("change_feed_gap", FeedGap),
    KeyConflict: ("key_conflict", KeyConflictRow),
    RecordError: ("record_error", RecordDetail),
    ModelMismatch: ("embedding_models", EmbeddingModels),
    EmbeddingMismatch: ("embedding_models", EmbeddingModels),
    EmbeddingError: ("embedding_failure", EmbeddingFailure),
    Denied: ("denial", Denial),
    ProposalBlocked: ("proposal_block", ProposalBlock),
    Overloaded: ("overload", Overload),
    PageGone: ("page_gone", GonePage),
    LimitReached: ("resource_limit", ResourceLimit),
    QueryTimeout: ("resource_limit", ResourceLimit),
    OutcomeUnknown: ("outcome_unknown", UnknownOutcome),
    RemoteError: ("remote_answer", RemoteAnswer),
    ChangeDiffRefused: ("change_diff_refusal", DiffRefusal),
    RangeNotSatisfiable: ("blob_range", BlobRange),
}
"""Error class → member of the error object and its type, whose fields are attributes of the error."""

_PRINTED = {
    ExpectedVersionMismatch: ("table_key", "expected", "actual"),
    PreconditionFailed: ("expected", "actual"),
    ChangeFeedGap: ("cursor", "first_unreadable_commit_id"),
    KeyConflict: ("table_key", "row_id"),
}
"""Error class → the fields that the command line prints."""

_COMPILE_ERRORS: dict[str, type[CompileError]] = {"parse": ParseError, "catalog": SchemaError, "type": TypeCheckError}
_CODE_CLASSES: dict[str, type[OmniGraphError]] = {
    "bad_request": InputError,
    "not_found": NotFound,
    "conflict": Conflict,
    "unauthorized": Unauthorized,
    "forbidden": Denied,
    "too_many_requests": Overloaded,
}

_ABSENT: dict[str, Any] = {"reasons": (), "rules": (), "scope": "server", "retry_after_s": 1}
"""Values of fields that an error object lacks, if not None."""


def error_code(error: OmniGraphError) -> ErrorCode:
    """Return the `code` of the error object."""
    return next(_CODES[cls] for cls in type(error).__mro__ if cls in _CODES)


def _public_class(error: OmniGraphError) -> type[OmniGraphError]:
    """Return the class of an error that clients know: its own, or the next one that `omnigraph.errors` defines."""
    return next(cls for cls in type(error).__mro__ if cls.__module__ == OmniGraphError.__module__)


def error_document(error: OmniGraphError, *, typed: bool = False) -> ErrorDocument:
    """Return the error object with every field of the error; `decode_error` is its inverse.

    With `typed`, the values of rows keep their types.
    """
    value = typed_value if typed else json_value
    members = _common_members(error, None)
    cls = _public_class(error)
    members["class"] = cls.__name__
    if isinstance(error.hint, Hint):
        members["hints"] = _hints(error.hint)
    if error.idempotency_key is not None:
        members["idempotency_key"] = error.idempotency_key
    if isinstance(error, CompileError):
        members["diagnostics"] = [_full_diagnostic(diagnostic) for diagnostic in error.diagnostics]
    if isinstance(error, MergeConflict):
        members["merge_conflicts"] = [
            {**_conflict(conflict, typed=typed), "resolutions": conflict.resolutions} for conflict in error.conflicts
        ]
    if cls in _PARTICULARS:
        member, kind = _PARTICULARS[cls]
        members[member] = _particulars(error, kind, value)
    return ErrorDocument.of(members)


def _conflict(conflict: Any, *, typed: bool) -> dict[str, Any]:
    members: dict[str, Any] = conflict.to_json(typed_value) if typed else json_value(conflict.to_json())
    return members


def _particulars(error: OmniGraphError, kind: type[Document], value: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the fields of a particular; an optional one that is None is absent."""
    fields = [(each.name, getattr(error, each.name), each.required) for each in msgspec.structs.fields(kind)]
    return {name: value(given) for name, given, required in fields if required or given is not None}


def printed_error(error: OmniGraphError, surface: Surface) -> ErrorDocument:
    """Return the error object that an interface prints, with its variant of each hint."""
    members = _common_members(error, surface)
    if isinstance(error, CompileError):
        members["diagnostics"] = [diagnostic.to_dict(surface) for diagnostic in error.diagnostics]
    if isinstance(error, MergeConflict):
        members["merge_conflicts"] = [conflict.to_json() for conflict in error.conflicts]
    for cls, names in _PRINTED.items():
        if isinstance(error, cls):
            members[_PARTICULARS[cls][0]] = {name: getattr(error, name) for name in names}
    return ErrorDocument.of(members)


def _common_members(error: OmniGraphError, surface: Surface | None) -> dict[str, Any]:
    members: dict[str, Any] = {"error": error.message, "code": error_code(error), "reason": error.code}
    hint = hint_for(error.hint, surface)
    if hint:
        members["hint"] = hint
    if isinstance(error, PolicyInvalid):
        members["policy_problems"] = [problem.to_json() for problem in error.problems]
    return members


def _hints(hint: Hint) -> dict[str, str]:
    return {"cli": hint.cli, "shell": hint.shell}


def _full_diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    members = {
        **diagnostic.to_dict(),
        "source_name": diagnostic.source_name,
        "excerpt": diagnostic.excerpt,
    }
    return {**members, "hints": _hints(diagnostic.hint)} if isinstance(diagnostic.hint, Hint) else members


def decode_error(document: ErrorDocument, *, typed: bool = False) -> OmniGraphError:
    """Return the error of an error object; with `typed`, the values of its rows keep their types.

    The class is that of the encoded error, else the nearest one that is known: by `class`, by `reason`, by the kind of
    the first diagnostic, or by `code`. The conflicts of a `MergeConflict` are `ConflictDocument`s, the
    problems of a `PolicyInvalid` `PolicyProblemDocument`s.
    """
    cls = _class_of(document)
    if issubclass(cls, CompileError) and not _given(document.diagnostics, ()):
        # The text of a compile error consists of its diagnostics.
        cls = InputError
    error = cls.__new__(cls)
    hint = _hint(document.hint, document.hints)
    OmniGraphError.__init__(error, document.error, code=document.reason, hint=hint)
    if issubclass(cls, CompileError):
        cast(CompileError, error).diagnostics = tuple(map(_diagnostic, _given(document.diagnostics, ())))
    if issubclass(cls, MergeConflict):
        conflicts = _given(document.merge_conflicts, ())
        cast(MergeConflict, error).conflicts = tuple(map(untyped_conflict, conflicts)) if typed else conflicts
    if issubclass(cls, PolicyInvalid):
        cast(PolicyInvalid, error).problems = _given(document.policy_problems, ())
    if cls in _PARTICULARS:
        member, kind = _PARTICULARS[cls]
        given = getattr(document, member)
        for name in kind.__struct_fields__:
            value = _given(getattr(given, name, UNSET), _ABSENT.get(name))
            setattr(error, name, untyped_value(value) if typed else value)
    if document.idempotency_key is not UNSET:
        error.idempotency_key = document.idempotency_key
    return error


def untyped_conflict(conflict: ConflictDocument) -> ConflictDocument:
    """Return a conflict with typed rows as one with the values of the rows."""
    images: dict[str, Any] = {name: untyped_value(getattr(conflict, name)) for name in ("base", "ours", "theirs")}
    if conflict.rows is not UNSET:
        images["rows"] = tuple(_untyped_row(row) for row in conflict.rows)
    return msgspec.structs.replace(conflict, **images)


def _untyped_row(row: ConflictRowDocument) -> ConflictRowDocument:
    images = {name: untyped_value(getattr(row, name)) for name in ("row", "ours", "theirs")}
    return msgspec.structs.replace(row, **images)


def _class_of(document: ErrorDocument) -> type[OmniGraphError]:
    classes = _subclasses(OmniGraphError)
    by_name = {cls.__name__: cls for cls in classes}
    if document.class_ is not UNSET and document.class_ in by_name:
        return by_name[document.class_]
    by_reason = {cls.default_code: cls for cls in classes}
    if document.reason in by_reason:
        return by_reason[document.reason]
    if document.diagnostics is not UNSET and document.diagnostics:
        return _COMPILE_ERRORS[document.diagnostics[0].kind]
    return _CODE_CLASSES.get(document.code, OmniGraphError)


def _subclasses(cls: type[OmniGraphError]) -> list[type[OmniGraphError]]:
    found = [cls, *(inner for child in cls.__subclasses__() for inner in _subclasses(child))]
    return [each for each in found if each.__module__ == OmniGraphError.__module__]


def _hint(hint: str | UnsetType, variants: Hints | UnsetType) -> str | None:
    if hint is UNSET:
        return None
    return hint if variants is UNSET else Hint(hint, cli=variants.cli, in_shell=variants.shell)


def _diagnostic(document: DiagnosticDocument) -> Diagnostic:
    return Diagnostic(
        document.kind,
        document.code,
        document.message,
        _given(document.source_name, ""),
        document.line,
        document.column,
        document.span.start,
        document.span.end,
        _given(document.excerpt, ""),
        _hint(document.hint, document.hints),
        _given(document.subject, None),
    )


_Given = TypeVar("_Given")
_Default = TypeVar("_Default")


def _given(value: _Given | UnsetType, default: _Default) -> _Given | _Default:
    return default if value is UNSET else value
