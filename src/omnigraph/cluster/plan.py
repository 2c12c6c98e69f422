"""The difference between a declaration and what the graphs of a cluster hold. Pure, apart from `observe`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from omnigraph.cluster.cluster_store import ClusterRevision, ClusterStore
from omnigraph.cluster.declaration import ClusterDeclaration, DeclaredGraph, DeclaredPolicy, digest_of
from omnigraph.errors import GraphNotFound
from omnigraph.graph import Graph
from omnigraph.graph_open import open as open_graph
from omnigraph.schema.migrate import SchemaPlan

Operation = Literal["create", "update", "delete"]
Disposition = Literal["applied", "derived", "deferred", "blocked"]
"""`applied`: carried out by `apply`; `derived`: part of another step; `deferred`: completed by a later `apply`;
`blocked`: refused, with the reason.
"""

GRACE_S = 60.0
"""Seconds from the revision without a graph to the deletion of its files; servers look for revisions every five."""


@dataclass(frozen=True)
class ObservedGraph:
    """What a graph holds at the head of `main`."""

    graph_id: str
    schema: str = field(repr=False)
    commit_id: str
    queries: Mapping[str, str] = field(repr=False)
    """Stored query → digest of its text."""


@dataclass(frozen=True)
class PlanStep:
    """One change of a resource, such as `graph.lab`, `schema.lab`, `query.lab.recent` or `policy.staff`."""

    resource: str
    operation: Operation
    disposition: Disposition = "applied"
    reason: str | None = None
    details: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """The step in one line."""
        note = f" ({self.disposition}: {self.reason})" if self.reason else ""
        note = note or (f" ({self.disposition})" if self.disposition != "applied" else "")
        return f"{self.operation:<6}  {self.resource}{note}"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        data: dict[str, Any] = {
            "resource": self.resource,
            "operation": self.operation,
            "disposition": self.disposition,
        }
        if self.reason is not None:
            data["reason"] = self.reason
        return {**data, "details": list(self.details)} if self.details else data


def observe(store: ClusterStore, graph_id: str, environ: Mapping[str, str]) -> tuple[Graph, ObservedGraph] | None:
    """Return a graph of the cluster, opened to read, and what it holds; None if it does not exist."""
    try:
        graph = open_graph(store.graph_uri(graph_id), read_only=True, environ=environ)
    except GraphNotFound:
        return None
    queries = {query.name: digest_of(query.source) for query in graph.queries()}
    snapshot = graph.snapshot()
    return graph, ObservedGraph(graph_id, snapshot.schema.source, snapshot.commit_id, queries)


def plan_cluster(
    declared: ClusterDeclaration,
    applied: ClusterRevision | None,
    store: ClusterStore,
    environ: Mapping[str, str],
    grace_s: float = GRACE_S,
    *,
    allow_data_loss: bool = False,
) -> list[PlanStep]:
    """Return the steps from the present state to the declaration, in the order in which they are carried out.

    `grace_s` are the seconds that servers have to stop serving a graph before its files are deleted. A schema that
    drops data is blocked, unless `allow_data_loss`.
    """
    steps: list[PlanStep] = []
    for graph in declared.graphs.values():
        found = observe(store, graph.graph_id, environ)
        if found is None:
            steps += _new_graph(graph)
            continue
        known = applied.graphs[graph.graph_id].queries if applied and graph.graph_id in applied.graphs else {}
        steps += _changed_graph(graph, *found, known, allow_data_loss=allow_data_loss)
    steps += _policies(declared.policies, applied, store)
    for graph_id in sorted({*applied.graphs, *applied.leaving} if applied else ()):
        if graph_id not in declared.graphs:
            assert applied is not None
            steps.append(_deleted_graph(store, graph_id, environ, _is_left(applied, graph_id, grace_s), grace_s))
    return steps


def _is_left(applied: ClusterRevision, graph_id: str, grace_s: float) -> bool:
    """Return True if servers had the time to stop serving a graph."""
    if graph_id not in applied.leaving:
        return False
    return datetime.now(UTC) - datetime.fromisoformat(applied.leaving[graph_id]) >= timedelta(seconds=grace_s)


def _new_graph(graph: DeclaredGraph) -> Iterator[PlanStep]:
    yield PlanStep(f"graph.{graph.graph_id}", "create")
    yield PlanStep(f"schema.{graph.graph_id}", "create", "derived")
    for name in sorted(graph.queries):
        yield PlanStep(f"query.{graph.graph_id}.{name}", "create")


def _changed_graph(
    graph: DeclaredGraph, opened: Graph, observed: ObservedGraph, known: Mapping[str, str], *, allow_data_loss: bool
) -> Iterator[PlanStep]:
    if graph.schema != observed.schema:
        yield _schema_step(graph.graph_id, opened.plan_schema(graph.schema, allow_data_loss=allow_data_loss))
    for name, query in sorted(graph.queries.items()):
        stored = observed.queries.get(name)
        if stored != digest_of(query.source):
            yield PlanStep(f"query.{graph.graph_id}.{name}", "create" if stored is None else "update")
    for name in sorted(known):
        # Queries that others stored in the graph stay.
        if name not in graph.queries and name in observed.queries:
            yield PlanStep(f"query.{graph.graph_id}.{name}", "delete")


def _schema_step(graph_id: str, plan: SchemaPlan) -> PlanStep:
    details = (*(step.describe() for step in plan.steps), *plan.losses)
    if not plan.supported:
        reason = plan.unsupported[0].reason + ("; --allow-data-loss permits it" if plan.losses else "")
        return PlanStep(f"schema.{graph_id}", "update", "blocked", reason, details)
    return PlanStep(f"schema.{graph_id}", "update", details=details)


def _policies(
    declared: Mapping[str, DeclaredPolicy], applied: ClusterRevision | None, store: ClusterStore
) -> Iterator[PlanStep]:
    known = applied.policies if applied is not None else {}
    for name, policy in declared.items():
        found = known.get(name)
        if found is None:
            yield PlanStep(f"policy.{name}", "create")
        elif (found.digest, tuple(found.applies_to)) != (policy.digest, policy.applies_to):
            yield PlanStep(f"policy.{name}", "update")
        elif not store.has_policy(name, found):
            yield PlanStep(f"policy.{name}", "update", details=("its stored files are missing or altered",))
    for name in sorted(known):
        if name not in declared:
            yield PlanStep(f"policy.{name}", "delete")


def _deleted_graph(
    store: ClusterStore, graph_id: str, environ: Mapping[str, str], is_left: bool, grace_s: float
) -> PlanStep:
    """A graph is deleted only with consent to its present head, and when no server serves it any more."""
    found = observe(store, graph_id, environ)
    if found is None:
        return PlanStep(f"graph.{graph_id}", "delete")
    approval = store.find_approval(graph_id)
    if approval is None or approval.commit_id != found[1].commit_id:
        reason = "the graph has changed since its deletion was approved" if approval else "its deletion is not approved"
        hint = f"{reason}; run 'omnigraph cluster approve graph.{graph_id} --as ACTOR'"
        return PlanStep(f"graph.{graph_id}", "delete", "blocked", hint)
    if not is_left:
        reason = f"servers stop serving it; an apply after {grace_s:g} seconds deletes its files"
        return PlanStep(f"graph.{graph_id}", "delete", "deferred", reason)
    return PlanStep(f"graph.{graph_id}", "delete")
