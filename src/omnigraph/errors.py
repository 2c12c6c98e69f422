"""Every error a user of OmniGraph can meet.

    OmniGraphError          .message, .code for machines, .hint for people
    ├─ InputError           the request is at fault; repeating it unchanged will fail again
    │  ├─ CompileError      schema or query text; carries diagnostics with their place in the text
    │  │  ├─ ParseError     the text is not well formed                        "parse error: …"
    │  │  ├─ SchemaError    declarations contradict one another                "catalog error: …"
    │  │  └─ TypeCheckError a query does not fit the schema                    "type error: …"
    │  ├─ ParameterError    a query parameter is missing or of the wrong type
    │  ├─ ValueFormatError  a value cannot be read as the type it should have
    │  ├─ RecordError       a record of a load is wrong; says which line, type, property and rule
    │  ├─ SchemaChangeError the planner cannot carry out a schema change
    │  ├─ ModelMismatch     the schema names another model than the configured one
    │  ├─ EmbeddingMismatch stored vectors were made by another provider or model than the configured one
    │  ├─ ChangeCursorRejected a token of the change feed that cannot be used here
    │  ├─ PageCursorRejected a cursor of a query's pages that cannot be used here
    │  ├─ LimitReached      a query asked for more rows than it may have; QueryTimeout: for more time
    │  └─ ConstraintViolation
    ├─ NotFound             GraphNotFound, BranchNotFound, TagNotFound, CommitNotFound, TypeNotFound, QueryNotFound,
    │                       ChangeFeedGap, PageGone
    ├─ Conflict             HeadMoved and ExpectedVersionMismatch (safe to retry), PreconditionFailed,
    │                       BranchExists, TagExists, GraphExists, GraphReplaced, KeyConflict, KeyReused,
    │                       MergeConflict (carries every conflict)
    ├─ Denied               policy refused, with its reasons
    ├─ StorageError         the disk or object store failed, or cannot keep the promises a graph needs
    ├─ EmbeddingError       a text could not be embedded: configuration, the provider, or its answer
    ├─ SparkError           Spark or its Java is missing, does not start, or a job of ours failed on it


    ├─ Cancelled            somebody stopped the query
    ├─ MissingPackage       a result was asked for in the form of a package that is not installed
    ├─ OutcomeUnknown       the reply to a publish was lost: read the head before trying again
    ├─ IncompatibleFormat   the graph was written by another release
    └─ Damaged              what is stored contradicts an invariant: never retried, never swallowed

Nothing here knows of HTTP or exit codes: each surface has one table from these classes to its own
vocabulary. A broken invariant of the program itself is an `assert`, never an `InputError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any, ClassVar, Literal

_PACKAGE = str(Path(__file__).parent)

DiagnosticKind = Literal["parse", "catalog", "type"]


class Hint(str):
    """A hint in the words of the Python library, with its wording on the command line and in the shell."""

    cli: str
    shell: str

    def __new__(cls, text: str, *, cli: str, in_shell: str | None = None) -> Hint:
        """The text for Python, the command line and the shell, which by default has that of the command line."""
        hint = super().__new__(cls, printable(text))
        hint.cli = printable(cli)
        hint.shell = printable(in_shell or cli)
        return hint

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, str]]:
        """What a copy in another process is made of."""
        return (str(self),), {"cli": self.cli, "in_shell": self.shell}


def printable(text: str) -> str:
    """The text with unpaired surrogates, which a hostile name can hold and no stream can write, escaped."""
    return text.encode(errors="backslashreplace").decode()


Surface = Literal["cli", "shell"]


def hint_for(hint: str | None, surface: Surface | None) -> str | None:
    """A hint in the words of a surface; None stands for the Python library."""
    return getattr(hint, surface) if surface is not None and isinstance(hint, Hint) else hint


class OmniGraphError(Exception):
    """The root of the tree: one sentence in `message`, a stable `code`, and what to do in `hint`."""

    default_code: ClassVar[str] = "error"
    _text_has_hint: ClassVar[bool] = False
    """Whether `str` includes the hint."""

    def __init__(self, message: str, *, code: str | None = None, hint: str | None = None) -> None:
        message = printable(message)
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self._hint: str | None = None
        self.hint = hint

    @property
    def hint(self) -> str | None:
        """What to do about it. A traceback shows it as a note below the message."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        notes = [note for note in getattr(self, "__notes__", ()) if note != f"hint: {self._hint}"]
        self._hint = hint if hint is None or isinstance(hint, Hint) else printable(hint)
        hint = self._hint
        self.__notes__ = [*notes, f"hint: {hint}"] if hint and not self._text_has_hint else notes

    def _render_traceback_(self) -> list[str]:
        """The traceback in IPython and Jupyter: the line of the caller and the message, no frames of this package."""
        callers = [frame for frame in extract_tb(self.__traceback__) if not frame.filename.startswith(_PACKAGE)]
        lines = [f"line {frame.lineno}: {frame.line}" for frame in callers[-1:] if frame.line]
        return [*lines, f"{type(self).__name__}: {self}", *getattr(self, "__notes__", ())]

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors travel between processes whole, whatever their constructors ask for."""
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(kind: type[OmniGraphError], arguments: tuple[Any, ...], fields: dict[str, Any]) -> OmniGraphError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(fields)
    return error


class InputError(OmniGraphError):
    """The request is at fault; repeating it unchanged will fail again."""

    default_code = "bad_input"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing wrong with a source text, and where.

    `start` and `end` are byte offsets into the UTF-8 text; `line` and `column` count from 1, the
    column in characters. `excerpt` is the source line with the place underlined.
    """

    kind: DiagnosticKind
    code: str
    message: str
    source_name: str
    line: int
    column: int
    start: int
    end: int
    excerpt: str
    hint: str | None = None
    subject: str | None = None

    @property
    def headline(self) -> str:
        """The stable prefix, the code if it is a numbered one, and the message."""
        code = "" if self.code == f"{self.kind}_error" else f"{self.code}: "
        return f"{self.kind} error: {code}{self.message}"

    @property
    def place(self) -> str:
        """Where to look: `file:line:column`, and the declaration or query it is in."""
        where = f"{self.source_name}:{self.line}:{self.column}"
        return f"{where}, in {self.subject}" if self.subject else where

    def render(self, surface: Surface | None = None) -> str:
        """Return the whole story: headline, place, underlined source line, hint in the words of the surface."""
        lines = [self.headline, f"  --> {self.place}", self.excerpt]
        hint = hint_for(self.hint, surface)
        if hint:
            lines.append(f"hint: {hint}")
        return "\n".join(lines)

    def to_dict(self, surface: Surface | None = None) -> dict[str, Any]:
        """Return the JSON form; `hint` and `subject` are left out when there is none."""
        fields: dict[str, Any] = {
            "kind": self.kind,
            "code": self.code,
            "message": self.message,
            "line": self.line,
            "column": self.column,
            "span": {"start": self.start, "end": self.end},
        }
        if self.subject:
            fields["subject"] = self.subject
        if self.hint:
            fields["hint"] = hint_for(self.hint, surface)
        return fields


class CompileError(InputError):
    """Schema or query text that does not compile; `diagnostics` holds all that was found, in text order."""

    _text_has_hint = True
    default_code = "compile_error"

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        assert diagnostics, "a compile error needs at least one diagnostic"
        first = diagnostics[0]
        super().__init__(first.headline, code=first.code, hint=first.hint)
        self.diagnostics = tuple(diagnostics)

    @property
    def span(self) -> tuple[int, int]:
        """Byte offsets of the first problem."""
        return self.diagnostics[0].start, self.diagnostics[0].end

    def __str__(self) -> str:
        return self.render()

    def render(self, surface: Surface | None = None) -> str:
        """Return every diagnostic, with hints in the words of the surface."""
        return "\n\n".join(diagnostic.render(surface) for diagnostic in self.diagnostics)


class ParseError(CompileError):
    """The text is not well formed."""

    default_code = "parse_error"


class SchemaError(CompileError):
    """Declarations of a schema contradict one another."""

    default_code = "catalog_error"


class TypeCheckError(CompileError):
    """A query does not fit the schema."""

    default_code = "type_error"


class ParameterError(InputError):
    """A query parameter is missing, unknown in type, or out of range."""

    default_code = "bad_parameter"


class ValueFormatError(InputError):
    """A value cannot be read as the type it should have."""

    default_code = "bad_value"


class RecordError(InputError):
    """A record of a load is wrong."""

    default_code = "bad_record"

    def __init__(
        self,
        message: str,
        *,
        source: str | None = None,
        line: int | None = None,
        type_name: str | None = None,
        property_name: str | None = None,
        rule: str = "record",
        hint: str | None = None,
    ) -> None:
        place = f"{source}, line {line}" if source and line else f"line {line}" if line else source
        super().__init__(f"{place}: {message}" if place else message, hint=hint)
        self.reason = message
        self.source = source
        self.line = line
        self.type_name = type_name
        self.property_name = property_name
        self.rule = rule
        self.record: Any = None
        """The record as it was given, where it is known."""


class SchemaChangeError(InputError):
    """A schema change that the planner does not support, or a stored schema that does not validate."""

    default_code = "schema_change"


class ModelMismatch(InputError):
    """The schema names another embedding model than the one that is configured."""

    default_code = "model_mismatch"

    def __init__(self, subject: str, *, recorded: str, resolved: str) -> None:
        super().__init__(
            f"{subject} records the embedding model '{recorded}', but the configured one is '{resolved}', and vectors "
            f"of two models cannot be compared: set OMNIGRAPH_EMBED_MODEL to '{recorded}' together with its provider, "
            "or re-embed the stored vectors with the configured model",
        )
        self.recorded = recorded
        self.resolved = resolved


class EmbeddingMismatch(InputError):
    """Vectors would be made, or compared, by another provider or model than the one that made those of the column."""

    default_code = "embedding_mismatch"

    def __init__(self, subject: str, *, recorded: str, resolved: str) -> None:
        super().__init__(
            f"the vectors of {subject} were made by {recorded}; the configured embedding is {resolved}, and vectors of "
            "two models cannot be compared",
            hint="configure the recorded one (OMNIGRAPH_EMBED_PROVIDER, OMNIGRAPH_EMBED_MODEL), make all vectors anew "
            "('omnigraph embed --in-graph --reembed-all'), or set OMNIGRAPH_EMBED_ALLOW_MIXED=1",
        )
        self.recorded = recorded
        self.resolved = resolved


class LimitReached(InputError):
    """A query asked for more rows or time than it may have."""

    default_code = "limit_reached"


class ChangeCursorRejected(InputError):
    """A cursor or page of the change feed is damaged, or belongs to something else."""

    default_code = "change_cursor_rejected"

    def __init__(self, why: str) -> None:
        super().__init__(
            f"change cursor rejected: {why}",
            hint="start the feed again at 'now' or 'beginning', or from a baseline",
        )


class PageCursorRejected(InputError):
    """A cursor of a query's pages is damaged, or belongs to something else."""

    default_code = "page_cursor_rejected"

    def __init__(self, why: str) -> None:
        super().__init__(f"page cursor rejected: {why}", hint="start again with the first page")


class QueryTimeout(LimitReached):
    """A query did not end in the time it was given."""

    default_code = "timeout"


class ConstraintViolation(InputError):
    """Data that breaks a declared constraint."""

    default_code = "constraint_violation"


class NotFound(OmniGraphError):
    """Something named does not exist."""

    default_code = "not_found"


class GraphNotFound(NotFound):
    """There is no graph at this location."""

    default_code = "graph_not_found"


class BranchNotFound(NotFound):
    """No branch has this name."""

    default_code = "branch_not_found"


class TagNotFound(NotFound):
    """No tag has this name."""

    default_code = "tag_not_found"


class CommitNotFound(NotFound):
    """No commit has this id."""

    default_code = "commit_not_found"


class TypeNotFound(NotFound):
    """The schema declares no type of this name."""

    default_code = "type_not_found"


class QueryNotFound(NotFound):
    """The source holds no query of this name."""

    default_code = "query_not_found"


class ChangeFeedGap(NotFound):
    """A cleanup removed versions the feed still needed; `cursor` is where the reader was."""

    default_code = "change_feed_gap"

    def __init__(self, first_unreadable_commit_id: str, cursor: str | None) -> None:
        super().__init__(
            f"the changes of commit {first_unreadable_commit_id} cannot be read any more: old versions were cleaned up",
            hint="take a baseline: it gives the whole graph and the cursor to go on from",
        )
        self.first_unreadable_commit_id = first_unreadable_commit_id
        self.cursor = cursor


class PageGone(NotFound):
    """A cleanup removed versions that the pages behind a cursor are read from."""

    default_code = "page_gone"

    def __init__(self, commit_id: str) -> None:
        super().__init__(
            f"the pages are of commit {commit_id}, which a cleanup has removed", hint="start again with the first page"
        )
        self.commit_id = commit_id


class Conflict(OmniGraphError):
    """The request was fine, but something else happened first."""

    default_code = "conflict"


class HeadMoved(Conflict):
    """The branch moved since it was read; nothing was written, and a fresh attempt is safe."""

    default_code = "head_moved"


class ExpectedVersionMismatch(Conflict):
    """A table is not at the version the writer saw; nothing was written, and a fresh attempt is safe."""

    default_code = "version_mismatch"

    def __init__(self, table_key: str, *, expected: int, actual: int) -> None:
        super().__init__(
            f"stale view of '{table_key}': expected version {expected}, current is {actual}; nothing was written",
            hint="read again and retry",
        )
        self.table_key = table_key
        self.expected = expected
        self.actual = actual


class PreconditionFailed(Conflict):
    """A conditional write found another head; nothing was written."""

    default_code = "precondition_failed"

    def __init__(self, branch: str, *, expected: str, actual: str | None) -> None:
        super().__init__(
            f"branch '{branch}' is at commit {actual}, not at {expected}; nothing was written",
            hint="read the branch again and decide anew",
        )
        self.branch = branch
        self.expected = expected
        self.actual = actual


class BranchExists(Conflict):
    """A branch of this name is there already."""

    default_code = "branch_exists"


class TagExists(Conflict):
    """A tag of this name is there already."""

    default_code = "tag_exists"


class GraphExists(Conflict):
    """The location already holds a graph."""

    default_code = "graph_exists"


class KeyConflict(Conflict):
    """A strict insert met an id that is there already; nothing was written."""

    default_code = "key_conflict"

    def __init__(self, table_key: str, row_id: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.table_key = table_key
        self.row_id = row_id


class GraphReplaced(Conflict):
    """The folder of the graph was replaced while an operation used it; the next operation sees the new content."""

    default_code = "graph_replaced"


class KeyReused(Conflict):
    """An idempotency key came back with a different request."""

    default_code = "idempotency_key_reused"


class MergeConflict(Conflict):
    """Two branches changed the same thing; `conflicts` holds every one, and nothing was written."""

    default_code = "merge_conflict"

    def __init__(self, message: str, conflicts: Sequence[Any], *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.conflicts = tuple(conflicts)


class Denied(OmniGraphError):
    """The policy refused the action; `reasons` says why."""

    default_code = "denied"

    def __init__(self, message: str, reasons: Sequence[str] = (), *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reasons = tuple(reasons)


class StorageError(OmniGraphError):
    """The disk or object store failed, or cannot keep the promises a graph needs."""

    default_code = "storage_error"


class EmbeddingError(OmniGraphError):
    """A text could not be embedded; `text_index` is the first text concerned, where one is known."""

    default_code = "embedding_error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, text_index: int | None = None
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.text_index = text_index


class SparkError(OmniGraphError):
    """Spark or its Java is missing, does not start, or a job failed on it."""

    default_code = "spark_error"


class Cancelled(OmniGraphError):
    """Somebody stopped the query; nothing is wrong with it, and nothing was changed."""

    default_code = "cancelled"


class MissingPackage(OmniGraphError, ImportError):
    """Something needs a package that is not installed."""

    default_code = "missing_package"


class OutcomeUnknown(OmniGraphError):
    """The reply to a publish was lost: read the head before trying again."""

    default_code = "outcome_unknown"


class IncompatibleFormat(OmniGraphError):
    """The graph was written in a storage format this release does not serve."""

    default_code = "incompatible_format"


class Damaged(OmniGraphError):
    """What is stored contradicts an invariant: never retried, never swallowed."""

    default_code = "damaged"
