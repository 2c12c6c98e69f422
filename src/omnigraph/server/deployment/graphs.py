"""The graphs of a server: which are served, under which ids, and their opening.

Graphs are opened four at a time. A graph that cannot be opened is quarantined with its reason: its routes answer 503,
the others are served, and the opening is tried again later.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from omnigraph.config import FILE_NAME, Config
from omnigraph.errors import InputError, NotFound, OmniGraphError, Overloaded
from omnigraph.graph import Graph
from omnigraph.graph_open import open as open_graph
from omnigraph.operations.authorization.access import Access
from omnigraph.policy.decide import Policy
from omnigraph.redaction import redact, redact_uri
from omnigraph.server.deployment.settings import ServerSettings
from omnigraph.suggestions import did_you_mean, listing

DEFAULT_ID = "default"
OPEN_AT_ONCE = 4
RETRY_S = 30.0
"""The interval at which a quarantined graph is opened again."""
TESTS_FILE = "policy.tests.yaml"
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_RESERVED = frozenset({"policies"})
_ID_RULE = "an id has 1 to 64 letters, digits and hyphens, and is not 'policies'"
_log = logging.getLogger(__name__)


def is_graph_id(text: str) -> bool:
    """True if a text can be the id of a graph."""
    return _ID.fullmatch(text) is not None and text not in _RESERVED


@dataclass(frozen=True)
class GraphEntry:
    """A graph that the server is to serve."""

    graph_id: str
    uri: str = field(repr=False)
    policy_file: Path | None = None
    tests_file: Path | None = None
    read_only: bool = False
    approximate: bool = False


@dataclass(frozen=True)
class GraphList:
    """All graphs that the server is to serve."""

    entries: tuple[GraphEntry, ...]
    default: str | None
    """The id of the graph of paths without `/graphs/{graph_id}`; None if there is none."""
    single: bool
    """True if one graph was named; the list of graphs is then not served."""


@dataclass(frozen=True)
class GraphFailure:
    """Why a graph is quarantined."""

    code: str
    message: str
    retry_at: float
    """The time of the next try, in seconds since the epoch."""

    @property
    def retry_after_s(self) -> int:
        """The seconds until the next try, at least 1."""
        return max(1, round(self.retry_at - time.time()))


@dataclass(frozen=True)
class ServedGraph:
    """A graph of the server: open, or quarantined with its failure."""

    graph_id: str
    uri: str = field(repr=False)
    graph: Graph | None
    policy: Policy | None = None
    failure: GraphFailure | None = None
    read_only: bool = False
    approximate: bool = False

    @property
    def has_row_rules(self) -> bool:
        """True if the policy limits rows or properties; figures of all rows are then not shown."""
        return self.policy is not None and self.policy.has_row_rules

    @property
    def is_ready(self) -> bool:
        """True if the graph can be read."""
        return self.graph is not None

    @property
    def is_local(self) -> bool:
        """True if the graph is on a disk of this machine."""
        return "://" not in self.uri

    @property
    def public_uri(self) -> str:
        """The address without passwords."""
        return redact_uri(self.uri)

    def handle(self, access: Access, request_id: str | None = None) -> Graph:
        """Return a handle that enforces the rights of a caller; its writes record the id of the request.

        A quarantined graph raises `Overloaded`.
        """
        if self.graph is None:
            assert self.failure is not None
            raise Overloaded(
                f"graph '{self.graph_id}' is not available ({self.failure.code})",
                scope="server",
                retry_after_s=self.failure.retry_after_s,
                limit="graph_available",
            )
        graph = self.graph.with_access(access)
        return graph if request_id is None else graph.with_metadata({"request_id": request_id})


def list_graphs(config: Config, settings: ServerSettings, uris: Sequence[str] = ()) -> GraphList:
    """Return the graphs to serve: the given addresses, `server.graphs`, `server.graph`, or all of `graphs:`."""
    if uris:
        entries = _by_address(config, uris)
    elif settings.graphs:
        entries = [_named(config, name) for name in dict.fromkeys(settings.graphs)]
    elif settings.graph is not None:
        entry = _named(config, settings.graph)
        entries = [entry if is_graph_id(entry.graph_id) else replace(entry, graph_id=DEFAULT_ID)]
    else:
        entries = [_named(config, name) for name in config.graphs if not _is_server(config.graphs[name])]
        if not entries:
            raise _no_graph()
    for entry in entries:
        _check_entry(entry)
    single = len(uris) == 1 or (not uris and not settings.graphs and settings.graph is not None)
    return GraphList(tuple(entries), _default_id(entries, settings, with_names=not uris), single)


def _by_address(config: Config, uris: Sequence[str]) -> list[GraphEntry]:
    """Return entries of addresses; the id of several is the last part of the address without `.omni`."""
    policy, tests = _policy_files(config, None)
    if len(uris) == 1:
        return [GraphEntry(DEFAULT_ID, uris[0], policy, tests)]
    entries: dict[str, GraphEntry] = {}
    for uri in uris:
        graph_id = folder_id(uri)
        if graph_id in entries:
            raise InputError(
                f"two graphs have the id '{graph_id}'",
                code="bad_graph_id",
                hint=f"name the graphs under 'graphs:' in {FILE_NAME}, and start the server without addresses",
            )
        entries[graph_id] = GraphEntry(graph_id, uri, policy, tests)
    return list(entries.values())


def folder_id(uri: str) -> str:
    """Return the last part of an address without `.omni`."""
    return PurePosixPath(uri.rstrip("/")).name.removesuffix(".omni")


def _named(config: Config, name: str) -> GraphEntry:
    policy, tests = _policy_files(config, name)
    read_only = bool(config.values.get(f"graphs.{name}.read_only", False))
    approximate = bool(config.values.get(f"graphs.{name}.search.approximate", False))
    return GraphEntry(name, config.get_graph(name), policy, tests, read_only, approximate)


def _policy_files(config: Config, name: str | None) -> tuple[Path | None, Path | None]:
    """Return the policy and the tests file of a graph: its own policy, else `policy.file`."""
    own = config.values.get(f"graphs.{name}.policy.file") if name is not None else None
    if own is not None:
        path = config.resolve(own)
        return path, path / TESTS_FILE if path.is_dir() else path.with_name(f"{path.stem}.tests.yaml")
    common = config.get("policy.file")
    if common is None:
        return None, None
    path = config.resolve(common)
    tests = config.get("policy.tests")
    return path, config.resolve(tests) if tests is not None else _tests_beside(path)


def _tests_beside(path: Path) -> Path:
    return path / TESTS_FILE if path.is_dir() else path.with_name(TESTS_FILE)


def _check_entry(entry: GraphEntry) -> None:
    if _is_server(entry.uri):
        raise InputError(
            f"graph '{entry.graph_id}': '{redact_uri(entry.uri)}' is a server; a server serves storage",
            code="needs_storage",
            hint="give a folder or s3://bucket/prefix",
        )
    if not is_graph_id(entry.graph_id):
        raise InputError(f"'{entry.graph_id}' cannot be the id of a graph: {_ID_RULE}", code="bad_graph_id")


def _default_id(entries: Sequence[GraphEntry], settings: ServerSettings, *, with_names: bool) -> str | None:
    """Return the id of the default graph: `server.default_graph`, `server.graph`, or the only graph."""
    named = settings.default_graph or (settings.graph if with_names and settings.graphs else None)
    ids = [entry.graph_id for entry in entries]
    if named is None:
        return ids[0] if len(ids) == 1 else None
    if named not in ids:
        raise InputError(
            f"the default graph '{named}' is not served; served: {listing(ids)}",
            code="unknown_target",
            hint=did_you_mean(named, ids),
        )
    return named


def _is_server(uri: str) -> bool:
    return uri.lower().startswith(("http://", "https://"))


def _no_graph() -> InputError:
    return InputError(
        "no graph was given to serve",
        code="no_graph",
        hint=f"give its address, its name (--target NAME), or set 'server.graph' or 'graphs:' in {FILE_NAME}",
    )


def check_graph_id(graph_id: str) -> None:
    """Refuse a text that cannot be the id of a graph."""
    if not is_graph_id(graph_id):
        raise InputError(f"'{graph_id}' is not the id of a graph: {_ID_RULE}", code="bad_graph_id")


def unknown_graph(graph_id: str) -> NotFound:
    """Return the error of an id that names no graph; it does not list the graphs."""
    return NotFound(f"there is no graph '{graph_id}'", code="graph_not_found")


def open_graphs(
    entries: Iterable[GraphEntry],
    environ: Mapping[str, str],
    running: Mapping[str, ServedGraph] | None = None,
) -> dict[str, ServedGraph]:
    """Open graphs; a running one at the same address is kept. Returns them by id, sorted, without policies."""
    running = running or {}

    def served(entry: GraphEntry) -> ServedGraph:
        known = running.get(entry.graph_id)
        if known is not None and known.graph is not None and _is_same(known, entry):
            return replace(known, policy=None)
        return _open(entry, environ)

    ordered = sorted(entries, key=lambda entry: entry.graph_id)
    with ThreadPoolExecutor(OPEN_AT_ONCE, "omnigraph-open") as pool:
        return {graph.graph_id: graph for graph in pool.map(served, ordered)}


def _is_same(known: ServedGraph, entry: GraphEntry) -> bool:
    settings = (entry.uri, entry.read_only, entry.approximate)
    return (known.uri, known.read_only, known.approximate) == settings


def _open(entry: GraphEntry, environ: Mapping[str, str]) -> ServedGraph:
    graph: Graph | None = None
    failure: GraphFailure | None = None
    try:
        graph = open_graph(entry.uri, read_only=entry.read_only, environ=environ, approximate=entry.approximate)
    except OmniGraphError as error:
        failure = GraphFailure(error.code, redact(error.message), time.time() + RETRY_S)
    except Exception as error:
        _log.exception("graph '%s' cannot be opened", entry.graph_id)
        failure = GraphFailure("internal", redact(f"{type(error).__name__}: {error}"), time.time() + RETRY_S)
    return ServedGraph(entry.graph_id, entry.uri, graph, None, failure, entry.read_only, entry.approximate)
