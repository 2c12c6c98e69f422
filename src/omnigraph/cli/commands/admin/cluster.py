"""`omnigraph cluster`: a deployment of several graphs, declared by files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_actor
from omnigraph.cli.io.output import plural, print_json
from omnigraph.cli.io.query_input import DataLoss

if TYPE_CHECKING:
    from omnigraph.cluster.cluster_store import ClusterRevision, ClusterStore
    from omnigraph.cluster.declaration import ClusterDeclaration

app = command_group("Declare, plan and apply the graphs, queries and policies of a deployment.")

Folder = Annotated[str, typer.Option("--config", "--dir", "-d", metavar="DIR", help="The folder of cluster.yaml.")]
Storage = Annotated[
    str,
    typer.Option(
        "--config",
        "--dir",
        "-d",
        metavar="DIR|URI|NAME",
        help="The folder of cluster.yaml, the storage of the cluster, or its name in the operator file.",
    ),
]
Grace = Annotated[
    float | None,
    typer.Option(
        "--grace",
        min=0,
        metavar="SECONDS",
        help="The time that servers have to stop serving a graph before its files are deleted (default: 60).",
    ),
]


@app.command("validate")
def validate_command(folder: Folder = ".", as_json: Json = False) -> None:
    """Check cluster.yaml and the files that it names; nothing is read from the storage."""
    declared = _declared(folder)
    if as_json:
        graphs = {graph.graph_id: {"queries": sorted(graph.queries)} for graph in declared.graphs.values()}
        policies = {name: {"applies_to": list(policy.applies_to)} for name, policy in declared.policies.items()}
        print_json({"name": declared.name, "storage": declared.storage, "graphs": graphs, "policies": policies})
        return
    queries = sum(len(graph.queries) for graph in declared.graphs.values())
    print(
        f"cluster ok: {declared.name}, {plural(len(declared.graphs), 'graph')}, "
        f"{plural(queries, 'query', 'queries')}, {plural(len(declared.policies), 'policy', 'policies')}"
    )


@app.command("plan")
def plan_command(
    folder: Folder = ".", grace: Grace = None, allow_data_loss: DataLoss = False, as_json: Json = False
) -> None:
    """Show the steps from the present state to the declaration; nothing is changed."""
    from omnigraph.cluster.plan import GRACE_S, plan_cluster

    declared = _declared(folder)
    store = _store(declared.storage)
    grace_s = GRACE_S if grace is None else grace
    newest = store.find_newest()
    steps = plan_cluster(declared, newest, store, os.environ, grace_s, allow_data_loss=allow_data_loss)
    if as_json:
        print_json({"steps": [step.to_json() for step in steps]})
        return
    for step in steps:
        print(step.line)
        for detail in step.details:
            print(f"        {detail}")
    print(f"plan: {plural(len(steps), 'step')}" if steps else "no change")


@app.command("apply")
@takes_actor
def apply_command(
    run: Invocation,
    folder: Folder = ".",
    grace: Grace = None,
    allow_data_loss: DataLoss = False,
    as_json: Json = False,
) -> None:
    """Make the cluster as declared; exits with 1 if a step failed or is blocked.

    omnigraph cluster apply --config ./deployment --as ana
    """
    from omnigraph.cluster.converge import apply_cluster
    from omnigraph.cluster.plan import GRACE_S

    declared = _declared(folder)
    grace_s = GRACE_S if grace is None else grace
    store = _store(declared.storage)
    result = apply_cluster(declared, store, os.environ, run.actor, grace_s, allow_data_loss=allow_data_loss)
    if as_json:
        print_json(result.to_json())
    else:
        for step in result.steps:
            print(step.line)
        for resource, problem in result.problems.items():
            print(f"problem {resource}: {problem}")
        state = "converged" if result.converged else "not converged"
        print(f"revision {result.revision.number}: {state}")
    if not result.converged:
        raise typer.Exit(FAILED)


@app.command("import")
@takes_actor
def import_command(run: Invocation, folder: Folder = ".", as_json: Json = False) -> None:
    """Write the first revision of a cluster whose graphs exist; nothing else is changed."""
    from omnigraph.cluster.converge import import_cluster

    declared = _declared(folder)
    _show(import_cluster(declared, _store(declared.storage), os.environ, run.actor), as_json=as_json)


@app.command("refresh")
@takes_actor
def refresh_command(run: Invocation, folder: Storage = ".", as_json: Json = False) -> None:
    """Record the schemas and queries that the graphs hold now."""
    from omnigraph.cluster.converge import refresh_cluster

    _show(refresh_cluster(_found(run, folder), os.environ, run.actor), as_json=as_json)


@app.command("approve")
@takes_actor
def approve_command(
    run: Invocation,
    resource: Annotated[str, typer.Argument(metavar="graph.ID", help="The graph to be deleted.")],
    folder: Storage = ".",
    as_json: Json = False,
) -> None:
    """Approve the deletion of a graph as it is now; a later commit voids the approval.

    omnigraph cluster approve graph.old --as ana
    """
    from omnigraph.cluster.converge import approve_deletion

    kind, _, graph_id = resource.partition(".")
    if kind != "graph" or not graph_id:
        raise UsageFault(f"'{resource}' is not a graph; write graph.ID")
    if run.actor is None:
        raise UsageFault("an approval has an actor; give --as ACTOR")
    approval = approve_deletion(_found(run, folder), graph_id, run.actor, os.environ)
    if as_json:
        print_json(_plain(approval))
        return
    print(f"approved: delete graph.{graph_id} at {approval.commit_id}")


@app.command("status")
@takes_actor
def status_command(run: Invocation, folder: Storage = ".", as_json: Json = False) -> None:
    """Show the newest applied revision and the lock."""
    store = _found(run, folder)
    revision, held = store.get_newest(), store.find_lock()
    if as_json:
        print_json({**_plain(revision), "lock": None if held is None else _plain(held)})
        return
    _show(revision, as_json=False)
    if held is not None:
        print(f"locked by {held.actor_id or 'an unknown actor'} on {held.host} since {held.locked_at}: {held.id}")


@app.command("force-unlock")
@takes_actor
def unlock_command(
    run: Invocation,
    lock: Annotated[str, typer.Argument(metavar="LOCK", help="The id of the lock, as 'cluster status' shows it.")],
    folder: Storage = ".",
    as_json: Json = False,
) -> None:
    """Remove the lock of a process that died."""
    if not _found(run, folder).unlock(lock):
        from omnigraph.errors import NotFound

        raise NotFound(f"the cluster is not locked by '{lock}'", code="cluster_not_locked")
    if as_json:
        print_json({"unlocked": lock})
        return
    print(f"unlocked {lock}")


def _declared(folder: str) -> ClusterDeclaration:
    from omnigraph.cluster.declaration import read_declaration

    return read_declaration(folder)


def _store(uri: str) -> ClusterStore:
    from omnigraph.cluster.cluster_store import ClusterStore

    return ClusterStore(uri, os.environ)


def _found(run: Invocation, named: str) -> ClusterStore:
    """Return the storage of a cluster by the folder of its declaration, its address, or its name."""
    from omnigraph.cluster.declaration import storage_of

    return _store(storage_of(run.config.operator.find_cluster(named) or named))


def _plain(document: Any) -> dict[str, Any]:
    import msgspec

    return cast("dict[str, Any]", msgspec.to_builtins(document))


def _show(revision: ClusterRevision, *, as_json: bool) -> None:
    if as_json:
        print_json(_plain(revision))
        return
    print(f"cluster {revision.name}, revision {revision.number}, applied {revision.applied_at}")
    for graph_id, graph in revision.graphs.items():
        print(f"graph.{graph_id}  schema {graph.schema[:12]}  {plural(len(graph.queries), 'query', 'queries')}")
    for name, policy in revision.policies.items():
        print(f"policy.{name}  {policy.digest[:12]}  applies to {', '.join(policy.applies_to)}")
    for graph_id, since in revision.leaving.items():
        print(f"graph.{graph_id}  is not served since {since}; its files will be deleted")
    for resource, problem in revision.problems.items():
        print(f"problem {resource}: {problem}")
