"""Names of documents in the description of the HTTP interface."""

from __future__ import annotations

from typing import get_args

from omnigraph.wire.branches import (
    BranchCreatedDocument,
    MergeDocument,
    MergeOutcome,
    RefDeletedDocument,
)
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ERROR_CODES, ConflictDocument, ConflictKind
from omnigraph.wire.loads import IngestDocument, LoadAnswerDocument, LoadedTableDocument, LoadMode
from omnigraph.wire.queries import QueryDocument, TargetDocument
from omnigraph.wire.requests.request import Request
from omnigraph.wire.schemas import SchemaAppliedDocument

COMPONENT_NAMES: dict[type[Document], str] = {
    QueryDocument: "ReadOutput",
    TargetDocument: "ReadTargetOutput",
    LoadAnswerDocument: "IngestOutput",
    IngestDocument: "IngestCountsOutput",
    LoadedTableDocument: "IngestTableOutput",
    SchemaAppliedDocument: "SchemaApplyOutput",
    BranchCreatedDocument: "BranchCreateOutput",
    RefDeletedDocument: "BranchDeleteOutput",
    MergeDocument: "BranchMergeOutput",
    ConflictDocument: "MergeConflictOutput",
}
"""Document → name, where the name is not that of the class."""

ENUM_NAMES: dict[tuple[str, ...], str] = {
    ERROR_CODES: "ErrorCode",
    get_args(LoadMode): "LoadMode",
    get_args(MergeOutcome): "BranchMergeOutcome",
    get_args(ConflictKind): "MergeConflictKindOutput",
}
"""Closed set of values → name of its component."""


def component_name(type_: type[Document] | type[Request]) -> str:
    """Return the name of a document or an input; other documents than the listed ones end in `Output`."""
    if not issubclass(type_, Document):
        return type_.__name__
    return COMPONENT_NAMES.get(type_) or type_.__name__.removesuffix("Document") + "Output"
