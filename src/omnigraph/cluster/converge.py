"""Changes of a cluster: apply a declaration, import existing graphs, refresh the revision, approve a deletion.

`apply` carries out the steps of a plan in order: graphs, schemas, queries, policies, deletions. A graph first leaves
the revision, so that servers stop serving it; a later `apply` deletes its files. A step that fails does not stop the
others; the revision that is written at the end describes what was reached, with the problems. Steps are found by
comparison with the graphs themselves, so `apply` can be repeated at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from msgspec.structs import replace

from omnigraph.cluster.cluster_store import (
    AppliedGraph,
    AppliedPolicy,
    ClusterRevision,
    ClusterStore,
    DeleteApproval,
    utc_now,
)
from omnigraph.cluster.declaration import ClusterDeclaration, DeclaredGraph, digest_of
from omnigraph.cluster.plan import GRACE_S, PlanStep, observe, plan_cluster
from omnigraph.errors import Hint, InputError, NotFound, OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.graph_open import open as open_graph
from omnigraph.operations.create import create_graph
from omnigraph.operations.migrate import apply_change
from omnigraph.suggestions import listing
from omnigraph.versioning.write.transaction import WriteOptions

MESSAGE = "cluster apply"


@dataclass(frozen=True)
class ApplyResult:
    """The steps of an `apply`, the problems by resource, and the revision that was written, if any."""

    steps: Sequence[PlanStep]
    problems: Mapping[str, str]
    revision: ClusterRevision

    @property
    def converged(self) -> bool:
        """True if the cluster is as declared."""
        return self.revision.converged

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "revision": self.revision.number,
            "converged": self.converged,
            "steps": [step.to_json() for step in self.steps],
            "problems": dict(self.problems),
        }


@dataclass
class _Applying:
    declared: ClusterDeclaration
    applied: ClusterRevision | None
    store: ClusterStore
    environ: Mapping[str, str]
    actor: str | None
    allow_data_loss: bool = False
    problems: dict[str, str] = field(default_factory=dict)

    def run(self, steps: Sequence[PlanStep]) -> None:
        """Carry out steps; what fails or is blocked is noted."""
        for graph in self.declared.graphs.values():
            mine = [step for step in steps if _graph_of(step) == graph.graph_id]
            if mine:
                self._guarded(f"graph.{graph.graph_id}", partial(self._graph, graph, mine))
        for name, policy in self.declared.policies.items():
            if f"policy.{name}" in {step.resource for step in steps}:
                self._guarded(f"policy.{name}", partial(self.store.store_policy, name, policy.digest, policy.files))
        for step in steps:
            if step.disposition == "blocked":
                self.problems.setdefault(step.resource, step.reason or "blocked")
            elif step.disposition == "applied" and (graph_id := _removed_graph(step)) is not None:
                self._guarded(step.resource, partial(self.store.delete_graph, graph_id))

    def _guarded(self, resource: str, work: Callable[[], None]) -> None:
        try:
            work()
        except OmniGraphError as error:
            self.problems[resource] = error.message

    def _graph(self, graph: DeclaredGraph, steps: Sequence[PlanStep]) -> None:
        uri, kinds = self.store.graph_uri(graph.graph_id), {step.resource.partition(".")[0]: step for step in steps}
        if "graph" in kinds:
            create_graph(uri, graph.schema, actor=self.actor, environ=self.environ)
        with open_graph(uri, actor=self.actor, environ=self.environ) as opened:
            schema = kinds.get("schema")
            if schema is not None and schema.operation == "update":
                if schema.disposition == "blocked":
                    return  # queries are declared for the new schema
                # `Graph.apply_schema` refuses graphs of a cluster.
                options = WriteOptions(actor=self.actor, message=MESSAGE)
                repository = context_of(opened).repository
                apply_change(repository, graph.schema, options, allow_data_loss=self.allow_data_loss)
            named = {step.resource.split(".", 2)[2]: step for step in steps if step.resource.startswith("query.")}
            stored = [graph.queries[name].source for name, step in named.items() if step.operation != "delete"]
            deleted = [name for name, step in named.items() if step.operation == "delete"]
            if stored:
                opened.store_query(*stored, message=MESSAGE)
            if deleted:
                opened.delete_query(*deleted, message=MESSAGE)


def apply_cluster(
    declared: ClusterDeclaration,
    store: ClusterStore,
    environ: Mapping[str, str],
    actor: str | None = None,
    grace_s: float = GRACE_S,
    *,
    allow_data_loss: bool = False,
) -> ApplyResult:
    """Make a cluster as declared and write the revision that was reached; without a change none is written.

    The files of a deleted graph are kept for `grace_s` seconds after the revision without it. A schema that drops data
    is blocked, unless `allow_data_loss`.
    """
    with store.locked(actor):
        applied = store.find_newest()
        steps = plan_cluster(declared, applied, store, environ, grace_s, allow_data_loss=allow_data_loss)
        work = _Applying(declared, applied, store, environ, actor, allow_data_loss)
        work.run(steps)
        revision = _reached(declared, applied, store, environ, actor, work.problems, _leaving(applied, steps))
        if applied is not None and _is_same(applied, revision):
            return ApplyResult(steps, work.problems, applied)
        store.write(revision)
    return ApplyResult(steps, work.problems, revision)


def import_cluster(
    declared: ClusterDeclaration, store: ClusterStore, environ: Mapping[str, str], actor: str | None = None
) -> ClusterRevision:
    """Write the first revision of a cluster whose graphs exist; nothing else is changed."""
    with store.locked(actor):
        if store.newest_number():
            raise InputError(
                f"'{store.uri}' has an applied cluster already",
                code="cluster_exists",
                hint=Hint("refresh it", cli="run 'omnigraph cluster refresh'"),
            )
        revision = _reached(declared, None, store, environ, actor, {}, {})
        if not revision.graphs:
            raise NotFound(
                f"none of the declared graphs exists in '{store.uri}'",
                code="cluster_not_found",
                hint=Hint(
                    "apply the declaration, which creates them", cli="run 'omnigraph cluster apply', which creates them"
                ),
            )
        store.write(revision)
    return revision


def refresh_cluster(store: ClusterStore, environ: Mapping[str, str], actor: str | None = None) -> ClusterRevision:
    """Write a revision with the schemas and queries that the graphs hold now, if they differ from the newest one."""
    with store.locked(actor):
        applied = store.get_newest()
        graphs: dict[str, AppliedGraph] = {}
        for graph_id, known in applied.graphs.items():
            found = observe(store, graph_id, environ)
            if found is not None:
                queries = {name: found[1].queries[name] for name in known.queries if name in found[1].queries}
                graphs[graph_id] = AppliedGraph(schema=digest_of(found[1].schema), queries=queries)
        revision = _next(applied, actor, graphs=graphs)
        if _is_same(applied, revision):
            return applied
        store.write(revision)
    return revision


def approve_deletion(store: ClusterStore, graph_id: str, actor: str, environ: Mapping[str, str]) -> DeleteApproval:
    """Record consent to delete a graph as it is now; a later commit voids it."""
    applied = store.get_newest()
    if graph_id not in applied.graphs and graph_id not in applied.leaving:
        raise NotFound(
            f"the cluster has no graph '{graph_id}'",
            code="graph_not_found",
            hint=f"its graphs are {listing(sorted(applied.graphs))}",
        )
    found = observe(store, graph_id, environ)
    if found is None:
        raise NotFound(f"graph '{graph_id}' does not exist in '{store.uri}'", code="graph_not_found")
    approval = DeleteApproval(graph_id=graph_id, commit_id=found[1].commit_id, actor_id=actor, approved_at=utc_now())
    store.approve(approval)
    return approval


def _reached(
    declared: ClusterDeclaration,
    applied: ClusterRevision | None,
    store: ClusterStore,
    environ: Mapping[str, str],
    actor: str | None,
    problems: Mapping[str, str],
    leaving: Mapping[str, str],
) -> ClusterRevision:
    """Return the revision that describes the graphs as they are, and the policies that were stored."""
    graphs: dict[str, AppliedGraph] = {}
    left: dict[str, str] = {}
    for graph_id in sorted({*declared.graphs, *(applied.graphs if applied else ()), *leaving}):
        found = observe(store, graph_id, environ)
        if found is None:
            continue
        if graph_id in leaving:
            left[graph_id] = leaving[graph_id]
            continue
        names = set(declared.graphs[graph_id].queries) if graph_id in declared.graphs else set()
        names |= set(applied.graphs[graph_id].queries if applied and graph_id in applied.graphs else ())
        queries = {name: found[1].queries[name] for name in sorted(names) if name in found[1].queries}
        graphs[graph_id] = AppliedGraph(schema=digest_of(found[1].schema), queries=queries)
    policies = {
        name: AppliedPolicy(digest=policy.digest, files=sorted(policy.files), applies_to=list(policy.applies_to))
        for name, policy in declared.policies.items()
        if f"policy.{name}" not in problems
    }
    _keep_policies(policies, declared, applied, graphs)
    guarded = {scope for policy in policies.values() for scope in policy.applies_to}
    for scope in (scope for policy in declared.policies.values() for scope in policy.applies_to):
        if scope not in guarded:
            graphs.pop(scope, None)  # it is not served before its policy is stored
    return ClusterRevision(
        number=(applied.number if applied else 0) + 1,
        name=declared.name,
        is_schema_open=declared.is_schema_open,
        graphs=graphs,
        policies=policies,
        leaving=left,
        converged=not problems,
        problems=dict(problems),
        actor_id=actor,
        applied_at=utc_now(),
    )


def _leaving(applied: ClusterRevision | None, steps: Sequence[PlanStep]) -> dict[str, str]:
    """Return the graphs that are no longer served and whose files remain, each with the time since when."""
    known, now = applied.leaving if applied is not None else {}, utc_now()
    removed = {graph_id: step for step in steps if (graph_id := _removed_graph(step)) is not None}
    return {
        graph_id: known.get(graph_id, now)
        for graph_id, step in removed.items()
        if graph_id in known or step.disposition == "deferred"
    }


def _keep_policies(
    policies: dict[str, AppliedPolicy],
    declared: ClusterDeclaration,
    applied: ClusterRevision | None,
    graphs: Mapping[str, AppliedGraph],
) -> None:
    """Add the policies that must stay: no graph loses its policy because a step was refused or failed.

    These are the policies of graphs whose deletion is not approved, and those whose successors could not be stored.
    """
    waiting = {
        scope for name, policy in declared.policies.items() if name not in policies for scope in policy.applies_to
    }
    waiting |= set(graphs) - set(declared.graphs)
    waiting -= {scope for policy in policies.values() for scope in policy.applies_to}
    for name, policy in (applied.policies if applied is not None else {}).items():
        stays = [scope for scope in policy.applies_to if scope in waiting]
        if stays:
            known = policies.get(name, replace(policy, applies_to=[]))
            policies[name] = replace(known, applies_to=[*known.applies_to, *stays])


def _next(applied: ClusterRevision, actor: str | None, *, graphs: dict[str, AppliedGraph]) -> ClusterRevision:
    return replace(applied, number=applied.number + 1, graphs=graphs, actor_id=actor, applied_at=utc_now())


def _is_same(one: ClusterRevision, other: ClusterRevision) -> bool:
    return one == replace(other, number=one.number, actor_id=one.actor_id, applied_at=one.applied_at)


def _graph_of(step: PlanStep) -> str | None:
    """Return the declared graph that a step changes; None if it changes a policy or deletes a graph."""
    kind, _, rest = step.resource.partition(".")
    return None if kind == "policy" or _removed_graph(step) is not None else rest.partition(".")[0]


def _removed_graph(step: PlanStep) -> str | None:
    """Return the graph that a step deletes; None for other steps."""
    kind, _, graph_id = step.resource.partition(".")
    return graph_id if kind == "graph" and step.operation == "delete" else None
