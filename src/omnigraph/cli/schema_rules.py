"""Rules for rows of the configured policy that a change of the schema would make invalid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.cli.io.output import remark

if TYPE_CHECKING:
    from omnigraph.cli.addresses import Address
    from omnigraph.cli.invocation import Invocation
    from omnigraph.graph import Graph
    from omnigraph.policy.decide import Policy


def open_for_schema_change(
    run: Invocation, address: Address, *, branch: str | None = None, read_only: bool = False
) -> Graph:
    """Open the graph for a change of its schema, which must not break rules for rows. A server has its own policy."""
    graph = run.open(address, branch=branch, read_only=read_only)
    policy = None if address.is_server else rules_for_rows(run, address)
    if policy is None:
        return graph
    from omnigraph.graph import Graph
    from omnigraph.graph_handle import context_of

    return Graph(context_of(graph).with_schema_policy(policy), branch=graph.branch, actor=graph.actor)


def rules_for_rows(run: Invocation, address: Address | None) -> Policy | None:
    """Return the configured policy of a graph; None if it has no rules for rows."""
    name = address.name if address is not None else None
    path = run.config.get(f"graphs.{name}.policy.file") if name is not None else None
    path = path or run.config.get("policy.file")
    if path is None:
        return None
    from omnigraph.policy.load import policy_path, read_policy

    file = run.config.resolve(str(path))
    if not policy_path(file).is_file() or read_policy(file).version != 2:
        return None
    from omnigraph.policy.decide import load_policy

    policy = load_policy(file)
    return policy if policy.has_row_rules else None


def remark_on_rules(broken: Sequence[str]) -> None:
    """Warn of rules of the policy that a change of the schema makes invalid."""
    for problem in broken:
        remark("warning", f"the policy becomes invalid: {problem}")
