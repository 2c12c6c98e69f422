"""The graphs and policies of an applied cluster, as the entries of a server.

The newest revision is looked up at an interval; a new one is adopted by a reload: new graphs are opened, removed ones
are no longer served once their requests have ended, policies are replaced.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from omnigraph.cluster.cluster_store import ClusterRevision, ClusterStore
from omnigraph.cluster.declaration import CLUSTER_SCOPE, storage_of
from omnigraph.errors import InputError, StorageError
from omnigraph.server.deployment.graphs import TESTS_FILE, GraphEntry, GraphList
from omnigraph.server.deployment.settings import ServerPolicySettings, ServerSettings

POLL_S = 5.0
"""The interval at which the newest revision is looked up."""


@dataclass(frozen=True)
class ServedCluster:
    """The revision that a server serves."""

    store: ClusterStore = field(repr=False)
    revision: ClusterRevision
    folders: Mapping[str, Path] = field(repr=False)
    """Policy → folder of its files."""
    copies: Path | None = field(default=None, repr=False)
    """The folder of files that were copied from a bucket."""

    def has_changed(self) -> bool:
        """True if there is a newer revision; a storage that does not answer has none."""
        try:
            return self.store.newest_number() != self.revision.number
        except StorageError:
            return False

    def graph_list(self, default: str | None) -> GraphList:
        """Return the graphs of the revision with their policies."""
        policies = {scope: name for name, policy in self.revision.policies.items() for scope in policy.applies_to}
        entries = []
        for graph_id in sorted(self.revision.graphs):
            folder = self.folders[policies[graph_id]] if graph_id in policies else None
            tests = folder / TESTS_FILE if folder is not None else None
            entries.append(GraphEntry(graph_id, self.store.graph_uri(graph_id), folder, tests))
        only = entries[0].graph_id if len(entries) == 1 else None
        return GraphList(tuple(entries), default or only, single=False)

    def with_policy(self, settings: ServerSettings) -> ServerSettings:
        """Return settings with the policy of the cluster itself."""
        for name, policy in self.revision.policies.items():
            if CLUSTER_SCOPE in policy.applies_to:
                return replace(settings, policy=ServerPolicySettings(self.folders[name] / "policy.yaml"))
        return settings


def open_cluster(
    settings: ServerSettings, uris: Sequence[str], environ: Mapping[str, str], running: ServedCluster | None
) -> ServedCluster | None:
    """Return the newest revision of the cluster that the settings name; None if they name none."""
    if settings.cluster is None:
        return None
    if uris or settings.graph is not None or settings.graphs:
        raise InputError(
            "a cluster and single graphs exclude each other",
            code="bad_config",
            hint="remove --cluster, or the graphs",
        )
    store = ClusterStore(storage_of(settings.cluster), environ)
    revision = store.get_newest()
    if running is not None and running.revision == revision:
        return running
    if not revision.graphs:
        raise InputError(f"revision {revision.number} of the cluster has no graph", code="no_graph")
    copies = running.copies if running is not None else None
    if copies is None and not store.is_local:
        copies = Path(tempfile.mkdtemp(prefix="omnigraph-cluster-"))
    folders = {name: store.policy_folder(name, policy, copies) for name, policy in revision.policies.items()}
    return ServedCluster(store, revision, folders, copies)
