"""Every JSON document of the command line is a document of `omnigraph.wire`, which decodes and encodes it unchanged."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import jsonschema_rs
import msgspec
import pytest

from omnigraph import wire
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.operations.merge.merge import MergeResult
from omnigraph.operations.migrate import SchemaApplyResult
from omnigraph.policy.decide import ConsideredRule
from omnigraph.policy.tests import CaseOutcome, PolicyCase
from omnigraph.query.lint import lint
from omnigraph.schema.check import compile_schema
from omnigraph.schema.migrate import plan_between
from omnigraph.storage.lance.indexes import PendingIndex
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.three_way import ConflictDetail
from omnigraph.versioning.upkeep.maintenance import CleanupStats, TableStats
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.wire.branches import (
    BranchCreatedDocument,
    BranchDocument,
    BranchListDocument,
    MergeDocument,
    MergePreviewDocument,
    RefDeletedDocument,
    RevertDocument,
    RevertPreviewDocument,
    TagCreatedDocument,
    TagListDocument,
)
from omnigraph.wire.changes import (
    BaselineDocument,
    BlameDocument,
    CommitChangesDocument,
    DiffCountsDocument,
    DiffDocument,
    FeedPageDocument,
    HistoryDocument,
)
from omnigraph.wire.commits import CommitDocument, CommitListDocument
from omnigraph.wire.component_names import component_name
from omnigraph.wire.document import Document, plain
from omnigraph.wire.errors import ConflictDocument, ErrorDocument
from omnigraph.wire.exploration import NeighborListDocument, SearchDocument
from omnigraph.wire.graph_state import SnapshotDocument, StatusDocument, VersionDocument
from omnigraph.wire.loads import (
    EmbedDocument,
    IngestDocument,
    LoadAnswerDocument,
    LoadDocument,
    LoadTarget,
    RejectedRecordDocument,
    load_answer,
)
from omnigraph.wire.maintenance import (
    CleanedTableDocument,
    CleanupDocument,
    OptimizeDocument,
    OptimizedTableDocument,
    RecoverDocument,
    RecoveredWriteDocument,
    VerifyDocument,
)
from omnigraph.wire.policies import ConsideredRuleDocument, PolicyCaseDocument
from omnigraph.wire.queries import AnalysisDocument, ChangeDocument, QueryDocument, QueryMetadataDocument
from omnigraph.wire.schemas import (
    LintDocument,
    SchemaAppliedDocument,
    SchemaCheckDocument,
    SchemaDocument,
    SchemaPlanDocument,
)
from omnigraph.wire.stored_queries import (
    QueryChangeDocument,
    QueryValidationDocument,
    StoredQueryDocument,
    StoredQueryListDocument,
)
from omnigraph.wire.tokens import TokenCreatedDocument, TokenListDocument, TokensRevokedDocument

SESSION = Path(__file__).parents[2] / "cases" / "documents" / "session.txt"
DOCUMENTS: dict[str, type[Document]] = {
    "load": LoadDocument,
    "ingest": IngestDocument,
    "read": QueryDocument,
    "change": ChangeDocument,
    "unify": ChangeDocument,
    "embed": EmbedDocument,
    "analyze": AnalysisDocument,
    "branch create": BranchCreatedDocument,
    "branch list": BranchListDocument,
    "branch show": BranchDocument,
    "branch update": BranchDocument,
    "branch delete": RefDeletedDocument,
    "branch merge": MergeDocument,
    "branch merge --preview": MergePreviewDocument,
    "revert": RevertDocument,
    "revert --preview": RevertPreviewDocument,
    "token create": TokenCreatedDocument,
    "token list": TokenListDocument,
    "token revoke": TokensRevokedDocument,
    "tag create": TagCreatedDocument,
    "tag list": TagListDocument,
    "tag delete": RefDeletedDocument,
    "diff": DiffDocument,
    "diff --stat": DiffCountsDocument,
    "commit list": CommitListDocument,
    "commit show": CommitDocument,
    "commit changes": CommitChangesDocument,
    "log": CommitListDocument,
    "history": HistoryDocument,
    "blame": BlameDocument,
    "search": SearchDocument,
    "neighbors": NeighborListDocument,
    "changes poll": FeedPageDocument,
    "changes baseline": BaselineDocument,
    "status": StatusDocument,
    "snapshot": SnapshotDocument,
    "schema show": SchemaDocument,
    "schema check": SchemaCheckDocument,
    "schema plan": SchemaPlanDocument,
    "schema apply": SchemaAppliedDocument,
    "lint": LintDocument,
    "queries push": QueryChangeDocument,
    "queries list": StoredQueryListDocument,
    "queries show": StoredQueryDocument,
    "queries validate": QueryValidationDocument,
    "queries delete": QueryChangeDocument,
    "optimize": OptimizeDocument,
    "cleanup": CleanupDocument,
    "recover": RecoverDocument,
    "verify": VerifyDocument,
    "version": VersionDocument,
}
"""Command and option → document."""
LOCAL = {"init", "blob"}
"""Commands whose documents only the command line has."""


def kind_of(command: str) -> str:
    words = command.split()
    groups = ("branch", "tag", "commit", "changes", "schema", "token", "queries")
    name = " ".join(words[:2]) if words[0] in groups else words[0]
    options = [option for option in ("--preview", "--stat") if option in words]
    return " ".join([name, *options])


def printed() -> Iterator[tuple[str, str, bool]]:
    """Each command of the session, its document and whether it failed."""
    parts = re.split(r"(?m)^\$ omnigraph (.*)\n", SESSION.read_text(encoding="utf-8"))[1:]
    for command, output in zip(parts[::2], parts[1::2], strict=True):
        text = re.sub(r"(?m)^\[\d\]\n", "", output)
        yield command, re.sub(r"<(?:time|bytes|number|format)>", "1", text), text != output


PRINTED = [case for case in printed() if kind_of(case[0]) not in LOCAL]


@pytest.mark.parametrize(("command", "text", "failed"), PRINTED, ids=[command for command, _, _ in PRINTED])
def test_document_is_decoded_and_encoded_unchanged(command: str, text: str, failed: bool) -> None:
    first = text.partition("\n")[0] if command.endswith("-f jsonl") else text
    cls = DOCUMENTS[kind_of(command)]
    if first is not text:
        cls = QueryMetadataDocument
    elif failed and '"error": "' in text and "lint" not in command:
        cls = ErrorDocument
    document = msgspec.json.decode(first, type=cls)
    assert json.dumps(plain(document)) == json.dumps(json.loads(first))
    jsonschema_rs.validate(msgspec.json.schema(cls), json.loads(first))


def test_session_prints_every_document() -> None:
    assert {kind_of(command) for command, _, failed in PRINTED if not failed} == set(DOCUMENTS)


COMPILED = compile_schema("node Person {\n    name: String @key\n    nick: String?\n}\n")
RENAMED = compile_schema('node Person {\n    name: String @key @rename_from("old")\n    alias: String?\n}\n')
STEP = {"table_key": TableKey.node("Person"), "version": 3}
RESULTS: list[tuple[type[Document], dict[str, object]]] = [
    (
        MergeDocument,
        MergeResult("a", "main", "merged", "01A", "ana", False, "it has an open write", ("add node Person",)).to_json(),
    ),
    (SchemaPlanDocument, {"from": "a.pg", "to": "b.pg", **plan_between(COMPILED, RENAMED).to_json()}),
    (
        SchemaAppliedDocument,
        {"uri": "g", **SchemaApplyResult(True, True, 3, "01A", (), ("write a rename",), ("1 row",)).to_json()},
    ),
    (
        OptimizedTableDocument,
        {**TableStats("node:A", 4, 1, True, (PendingIndex("v", "too few rows"),)).to_json(), "skipped": None},
    ),
    (CleanedTableDocument, CleanupStats("node:A", "tables/a", 2, 100, "in use").to_json()),
    (RecoveredWriteDocument, Recovered("i", "rolled_back", "01A", "main", "ana", (STEP,), "died").to_json()),
    (RecoveredWriteDocument, Recovered("i", "unreadable", detail="not an intent").to_json()),
    (RejectedRecordDocument, Reject("a.jsonl", 3, "Person", "age", "type", "not a number", {"age": "x"}).to_json()),
    (PolicyCaseDocument, CaseOutcome(PolicyCase("a", "ana", "read", None, None, "allow"), "deny", None).to_json()),
    (ConsideredRuleDocument, ConsideredRule("readers", "action_not_listed").to_json()),
    (ConflictDocument, ConflictDetail("schema", None, "schema_conflict", "two schemas").to_json()),
    (
        LintDocument,
        lint(COMPILED, "query q( {", query_path="q.gq", schema_source={"kind": "file", "path": "s.pg"}).to_dict(),
    ),
]


@pytest.mark.parametrize(("cls", "members"), RESULTS, ids=[cls.__name__ for cls, _ in RESULTS])
def test_document_has_every_member_of_a_result(cls: type[Document], members: dict[str, object]) -> None:
    assert json.dumps(cls.of(members).to_json()) == json.dumps(members)
    jsonschema_rs.validate(msgspec.json.schema(cls), cls.of(members).to_json())


def test_answer_to_a_load_lists_the_rejected_records() -> None:
    reject = RejectedRecordDocument.of(Reject(None, 1, None, None, "json", "not valid JSON", "{").to_json())
    tables = (("node:Person", 2), ("edge:Knows", 1))
    result = LoadResult("draft", "merge", "01A", tables, branch_created=True, rejected_count=1)
    target = LoadTarget("g", "draft", "merge", "ana")
    answer = load_answer(target, "main", result, None, [reject], embeds=False).to_json()
    assert answer == {
        "uri": "g",
        "branch": "draft",
        "base_branch": "main",
        "branch_created": True,
        "mode": "merge",
        "tables": [{"table_key": "edge:Knows", "rows_loaded": 1}, {"table_key": "node:Person", "rows_loaded": 2}],
        "actor_id": "ana",
        "commit": None,
        "rejected": [reject.to_json()],
        "repeated": False,
        "notes": [],
        "rejected_count": 1,
    }
    jsonschema_rs.validate(msgspec.json.schema(LoadAnswerDocument), answer)


def all_documents() -> list[type[Document]]:
    for module in iter_modules(wire.__path__):
        import_module(f"{wire.__name__}.{module.name}")

    def below(cls: type[Document]) -> Iterator[type[Document]]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    # A class that another test made, or imported a second time, exists until it is collected.
    return [cls for cls in below(Document) if getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls]


def test_every_document_has_a_json_schema() -> None:
    """An interface description is generated from these."""
    documents = [cls for cls in all_documents() if not cls.__name__.startswith("_")]
    _, components = msgspec.json.schema_components(documents, ref_template="#/components/schemas/{name}")
    assert set(components) == {cls.__name__ for cls in documents}
    assert all(component.get("description") for component in components.values())


def test_every_document_has_a_component_name_of_its_own() -> None:
    names = [component_name(cls) for cls in all_documents()]
    assert len(names) == len(set(names))


def test_unset_member_is_absent_and_subclasses_of_scalars_are_plain() -> None:
    preview = CleanupDocument(uri="g", keep_versions=None, older_than_secs=None, confirmed=True, tables=[])
    assert list(preview.to_json()) == ["uri", "keep_versions", "older_than_secs", "confirmed", "tables"]
    assert type(plain({"key": TableKey.node("Person")})["key"]) is str
    with pytest.raises(NotImplementedError, match="object has no JSON form"):
        plain(object())


def test_member_of_another_type_is_rejected() -> None:
    with pytest.raises(msgspec.ValidationError, match="branches"):
        BranchListDocument.of({"branches": [1]})
