"""`ServerState`: everything that a reload replaces. `StateHolder`: the state in force.

A reload builds a new state beside the running one and replaces it by one assignment. A request keeps the state with
which it started. If the new state cannot be built, the running one stays in force.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, assert_never

from omnigraph.config_keys import SERVER, SERVER_SETTINGS
from omnigraph.errors import NotFound, OmniGraphError
from omnigraph.operations.authorization.access import Access, Default
from omnigraph.policy.decide import Policy, PolicyDecision
from omnigraph.policy.proposal_rules import ProposalFacts
from omnigraph.policy.statements import QueryFacts
from omnigraph.redaction import redact
from omnigraph.server.audit import AuditLog
from omnigraph.server.auth.authenticator import Authenticator
from omnigraph.server.auth.modes import Mode
from omnigraph.server.auth.sources import TokenSources
from omnigraph.server.auth.tokens import Principal, TokenSet
from omnigraph.server.deployment.cluster_source import POLL_S, ServedCluster
from omnigraph.server.deployment.graphs import RETRY_S, GraphList, ServedGraph, check_graph_id, unknown_graph
from omnigraph.server.deployment.policies import Policies
from omnigraph.server.deployment.settings import ServerSettings
from omnigraph.server.deployment.watched_files import WatchedFiles
from omnigraph.server.webhooks.targets import Webhook

Phase = Literal["starting", "serving", "draining"]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Digests:
    """Digests of what is in force; equal in all processes with the same configuration."""

    config: str
    policy: str | None
    tokens: str | None


@dataclass(frozen=True)
class ServerState:
    """Settings, tokens, policies and graphs in force."""

    settings: ServerSettings
    tokens: TokenSet | None
    authenticator: Authenticator | None
    """Finds the callers of requests; None if requests need no token."""
    token_source: str
    mode: Mode
    graphs: Mapping[str, ServedGraph]
    """The graphs by id, sorted."""
    graph_list: GraphList
    policies: Policies
    audit: AuditLog | None
    digests: Digests
    sources: TokenSources
    webhooks: tuple[Webhook, ...] = ()
    warnings: tuple[str, ...] = ()
    cluster: ServedCluster | None = None

    @property
    def server_policy(self) -> Policy | None:
        """The policy of server actions."""
        return self.policies.server.policy if self.policies.server is not None else None

    @property
    def default_graph(self) -> str | None:
        """The id of the graph of paths without `/graphs/{graph_id}`; None if there is none."""
        return self.graph_list.default

    def find_graph(self, graph_id: str | None) -> ServedGraph:
        """Return a graph by id, or the default graph; it can be quarantined."""
        if graph_id is not None:
            check_graph_id(graph_id)
            found = self.graphs.get(graph_id)
            if found is None:
                raise unknown_graph(graph_id)
            return found
        if self.default_graph is None:
            raise NotFound(
                "the server has no default graph",
                code="no_default_graph",
                hint="use the paths /graphs/{graph_id}/…, or start the server with --default-graph ID",
            )
        return self.graphs[self.default_graph]

    @property
    def quarantined(self) -> tuple[ServedGraph, ...]:
        """The graphs that could not be opened."""
        return tuple(graph for graph in self.graphs.values() if graph.failure is not None)

    def graph_access(self, served: ServedGraph, principal: Principal | None) -> Access:
        """Return the rights of a caller on a graph."""
        match self.mode:
            case "open" | "local":
                default: Default = "allow"
            case "default_deny" | "policy":
                default = "read"
            case _:
                assert_never(self.mode)
        return _access(Access, served.policy, principal, default, served.graph_id)

    def server_access(self, principal: Principal | None) -> Access:
        """Return the rights of a caller to the server actions `graph_list`, `audit_read` and `admin`."""
        if self.mode == "open" and self.server_policy is None and self.settings.is_loopback:
            return _access(OpenServerAccess, None, principal, "allow", None)
        return _access(Access, self.server_policy, principal, "allow" if self.mode == "local" else "deny", None)

    def differences(self, old: ServerState) -> list[str]:
        """Name what differs from another state: settings, tokens, policies and graphs."""
        keys = [setting.key for setting in SERVER_SETTINGS]
        found = [SERVER + key for key in keys if old.settings.get(key) != self.settings.get(key)]
        if old.digests.tokens != self.digests.tokens:
            found.append("tokens")
        if old.digests.policy != self.digests.policy:
            found.append("policies")
        found += [f"graph '{graph_id}' added" for graph_id in self.graphs if graph_id not in old.graphs]
        found += [f"graph '{graph_id}' removed" for graph_id in old.graphs if graph_id not in self.graphs]
        kept = [graph_id for graph_id in self.graphs if graph_id in old.graphs]
        opened = [graph_id for graph_id in kept if self.graphs[graph_id].graph is not old.graphs[graph_id].graph]
        return found + [f"graph '{graph_id}' opened" for graph_id in opened]


class OpenServerAccess(Access):
    """The server actions of open mode on loopback: all but the list of graphs, which reveals addresses."""

    __slots__ = ()

    def decide(
        self,
        action: str,
        branch: str | None = None,
        target: str | None = None,
        name: str | None = None,
        proposal: ProposalFacts | None = None,
        query: QueryFacts | None = None,
    ) -> PolicyDecision:
        """Return the decision on a request without recording it."""
        decision = super().decide(action, branch, target, name, proposal, query)
        if action != "graph_list":
            return decision
        reason = "the list of graphs requires a server policy"
        message = f"action 'graph_list' is denied: {reason}"
        return replace(decision, allowed=False, message=message, reasons=(reason,))


def _access(
    kind: type[Access], policy: Policy | None, principal: Principal | None, default: Default, graph: str | None
) -> Access:
    if principal is None:
        return kind(policy, None, default=default, graph=graph)
    return kind(
        policy,
        principal.actor,
        groups=principal.groups,
        only=principal.only,
        attributes=principal.attributes,
        default=default,
        graph=graph,
    )


@dataclass(frozen=True)
class ReloadReport:
    """The outcome of one reload."""

    ok: bool
    reason: str
    """What triggered the reload."""
    at: float
    """Seconds since the epoch."""
    digests: Digests
    """The digests in force after the reload."""
    changed: tuple[str, ...] = ()
    """The settings, graphs and files that differ from the previous state."""
    warnings: tuple[str, ...] = ()
    error: str | None = None
    code: str | None = None


Build = Callable[[WatchedFiles, ServerState | None], ServerState]
"""Builds a state from its sources; notes the files that it reads."""


class StateHolder:
    """The state in force and the phase of the process. `current` is replaced, never changed."""

    def __init__(self, build: Build) -> None:
        self._build = build
        self._files = WatchedFiles()
        self._lock = threading.Lock()
        self.current = build(self._files, None)
        self.phase: Phase = "starting"
        self.last_reload: ReloadReport | None = None
        self.reloads = {"ok": 0, "failed": 0}
        """The number of reloads since the start of the process, by result."""
        self.on_change: list[Callable[[ServerState], None]] = []
        """Called with the new state after each reload."""
        self._polled_at = self._tried_at = self._cluster_at = time.monotonic()

    def reload(self, reason: str) -> ReloadReport:
        """Build a new state and put it in force; on a failure the running one stays. Blocks; called in a thread."""
        with self._lock:
            running = self.current
            files = WatchedFiles()
            try:
                new = self._build(files, running)
            except OmniGraphError as error:
                report = self._failed(reason, redact(error.message), error.code)
                files.note(*self._files.paths)
            except Exception as error:
                _log.exception("the reload failed")
                report = self._failed(reason, redact(f"{type(error).__name__}: {error}"), "internal")
                files.note(*self._files.paths)
            else:
                self.current = new
                self._notify(new)
                report = ReloadReport(
                    True, reason, time.time(), new.digests, tuple(new.differences(running)), new.warnings
                )
            self._files = files
            self.last_reload = report
            self.reloads["ok" if report.ok else "failed"] += 1
        _log_report(report)
        return report

    def _notify(self, state: ServerState) -> None:
        for notify in self.on_change:
            try:
                notify(state)
            except Exception:
                _log.exception("a part of the server could not use the new state")

    def due(self) -> str | None:
        """Return why a reload is due, or None. Cheap: a stat of each file."""
        changed = self._files.changed()
        if changed:
            return f"'{changed[0]}' changed"
        now, state = time.monotonic(), self.current
        if state.sources.is_polled and now - self._polled_at >= state.settings.auth.tokens.refresh_s:
            self._polled_at = now
            return "refresh of tokens"
        if state.cluster is not None and now - self._cluster_at >= POLL_S:
            self._cluster_at = now
            if state.cluster.has_changed():
                return "a new revision of the cluster"
        if state.quarantined and now - self._tried_at >= RETRY_S:
            self._tried_at = now
            return "retry of quarantined graphs"
        return None

    def _failed(self, reason: str, message: str, code: str) -> ReloadReport:
        return ReloadReport(False, reason, time.time(), self.current.digests, error=message, code=code)


def _log_report(report: ReloadReport) -> None:
    if not report.ok:
        _log.error("reload (%s) failed, the previous state stays in force: %s", report.reason, report.error)
        return
    for warning in report.warnings:
        _log.warning("%s", warning)
    _log.info("reload (%s): %s", report.reason, ", ".join(report.changed) or "no change")
