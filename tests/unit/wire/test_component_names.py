"""Names of components, and closed sets that repeat those of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, get_args

from omnigraph import wire
from omnigraph.operations.load.load_request import MODES
from omnigraph.operations.merge.merge_plan import MergeOutcome as EngineOutcome
from omnigraph.policy.decide import Why as PolicyWhy
from omnigraph.policy.tests import Verdict as PolicyVerdict
from omnigraph.versioning.compare.three_way import ConflictKind as EngineConflictKind
from omnigraph.versioning.compare.three_way import Resolution
from omnigraph.wire import requests
from omnigraph.wire.branches import BranchListDocument, MergeOutcome
from omnigraph.wire.component_names import COMPONENT_NAMES, ENUM_NAMES, component_name
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ConflictKind, ErrorDocument
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.loads import LoadMode
from omnigraph.wire.policies import Verdict, Why
from omnigraph.wire.queries import QueryDocument
from omnigraph.wire.requests.queries import ReadRequest
from omnigraph.wire.requests.request import Request, Resolve
from omnigraph.wire.server_state import HealthDocument


def test_names() -> None:
    names = {component_name(cls) for cls in (HealthDocument, SnapshotDocument, ErrorDocument, BranchListDocument)}
    assert names == {"HealthOutput", "SnapshotOutput", "ErrorOutput", "BranchListOutput"}
    assert (component_name(QueryDocument), component_name(ReadRequest)) == ("ReadOutput", "ReadRequest")
    listed = [*COMPONENT_NAMES.values(), *ENUM_NAMES.values()]
    assert len(listed) == len(set(listed))


SPECIFIED = [
    "HealthOutput",
    "SnapshotOutput",
    "SnapshotTableOutput",
    "ReadRequest",
    "ReadOutput",
    "ReadTargetOutput",
    "ChangeRequest",
    "ChangeOutput",
    "ExportRequest",
    "IngestRequest",
    "IngestOutput",
    "IngestTableOutput",
    "SchemaApplyRequest",
    "SchemaApplyOutput",
    "SchemaOutput",
    "BranchCreateRequest",
    "BranchCreateOutput",
    "BranchListOutput",
    "BranchDeleteOutput",
    "BranchMergeRequest",
    "BranchMergeOutput",
    "BranchMergeOutcome",
    "CommitOutput",
    "CommitListOutput",
    "LoadMode",
    "ErrorOutput",
    "ErrorCode",
    "MergeConflictOutput",
    "MergeConflictKindOutput",
]


def test_every_specified_name_exists() -> None:
    for package in (wire, requests):
        for module in iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    types = [*subclasses(Document), *subclasses(Request)]
    assert set(SPECIFIED) <= {*map(component_name, types), *ENUM_NAMES.values()}


def subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from subclasses(child)


def test_closed_sets_are_those_of_the_engine() -> None:
    assert set(get_args(LoadMode)) == set(MODES)
    assert get_args(MergeOutcome) == get_args(EngineOutcome)
    assert get_args(ConflictKind) == get_args(EngineConflictKind)
    assert get_args(Verdict) == get_args(PolicyVerdict)
    assert get_args(Why) == get_args(PolicyWhy)
    choice, _ = get_args(get_args(Resolve)[0])
    assert get_args(choice) == get_args(Resolution)
