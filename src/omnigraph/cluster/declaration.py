"""Reading of `cluster.yaml` and of the files that it names. Unknown keys are errors."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from omnigraph.decodable import decodable
from omnigraph.errors import InputError, OmniGraphError
from omnigraph.policy.decide import Policy
from omnigraph.policy.load import TESTS_FILE, parse_policy, policy_path, read_policy
from omnigraph.policy.yaml_nodes import ProblemLog, parse_yaml, plain_value, read_policy_text
from omnigraph.query.stored_queries import StoredQuery, read_stored
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema
from omnigraph.suggestions import did_you_mean
from omnigraph.text_files import read_text_file

FILE_NAME = "cluster.yaml"
CLUSTER_SCOPE = "cluster"
"""The scope of the policy of the server itself."""
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_PROVIDER = "the environment of a process names its embedding provider (OMNIGRAPH_EMBED_PROVIDER, docs/embeddings.md)"
_BLOBS = "servers read no external files; a load from Python copies them (blob_sources, docs/schema-language.md)"
_ELSEWHERE = {"providers": _PROVIDER, "embedding_provider": _PROVIDER, "external_blobs": _BLOBS}
"""Keys of the file or of a graph that are set elsewhere → the place."""


class _Metadata(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    name: str


class _State(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    backend: Literal["cluster"] = "cluster"
    lock: bool = True


class _QueryFile(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    file: str


class _Graph(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    schema: str
    queries: str | list[str] | dict[str, _QueryFile] = []


class _Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    file: str
    applies_to: list[str]


class _File(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    version: Literal[1]
    metadata: _Metadata
    graphs: dict[str, _Graph]
    storage: str | None = None
    state: _State = _State()
    schema: Literal["open", "closed"] = "closed"
    policies: dict[str, _Policy] = {}


@dataclass(frozen=True)
class DeclaredGraph:
    """A graph: its schema and its stored queries, compiled."""

    graph_id: str
    schema: str = field(repr=False)
    catalog: Catalog = field(repr=False)
    queries: Mapping[str, StoredQuery] = field(repr=False)


@dataclass(frozen=True)
class DeclaredPolicy:
    """A policy: its files by name, and the graphs that it applies to, or `cluster`."""

    name: str
    files: Mapping[str, str] = field(repr=False)
    applies_to: tuple[str, ...]
    policy: Policy = field(repr=False)

    @property
    def digest(self) -> str:
        """The digest of the files."""
        return digest_of(*(part for name in sorted(self.files) for part in (name, self.files[name])))


@dataclass(frozen=True)
class ClusterDeclaration:
    """A valid `cluster.yaml` with everything that it names."""

    name: str
    storage: str
    is_schema_open: bool
    """True if served graphs accept schema changes from others than `cluster apply`."""
    graphs: Mapping[str, DeclaredGraph]
    policies: Mapping[str, DeclaredPolicy]


def is_id(text: str) -> bool:
    """Return True for the id of a graph or the name of a policy; both are names of folders."""
    return _ID.fullmatch(text) is not None


def digest_of(*texts: str) -> str:
    """Return the digest of texts in order."""
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode()
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()


def read_declaration(folder: str | Path) -> ClusterDeclaration:
    """Read and check the declaration in a folder; the first problem of a file raises."""
    root = Path(folder)
    path = root / FILE_NAME
    file = _parse(read_text_file(path), path)
    if not file.graphs:
        raise _invalid(path, "'graphs' names no graph")
    graphs = {graph_id: _read_graph(root, path, graph_id, graph) for graph_id, graph in sorted(file.graphs.items())}
    policies = {name: _read_policy(root, path, name, policy) for name, policy in sorted(file.policies.items())}
    _check_scopes(path, graphs, policies)
    return ClusterDeclaration(
        file.metadata.name, file.storage or str(root.resolve()), file.schema == "open", graphs, policies
    )


def storage_of(folder: str | Path) -> str:
    """Return the storage of a cluster that is given by the folder of its declaration, or by its storage."""
    path = Path(folder) / FILE_NAME
    if "://" in str(folder) or not path.is_file():
        return str(folder)
    return _parse(read_text_file(path), path).storage or str(Path(folder).resolve())


def _parse(text: str, path: Path) -> _File:
    log = ProblemLog(str(path), "declaration")
    root = parse_yaml(text, log)
    if log.problems:
        raise _invalid(path, log.problems[0].describe())
    values = None if root is None else plain_value(root)
    _check_elsewhere(path, values)
    try:
        file = msgspec.convert(values, decodable(_File))
    except ValueError as error:
        raise _invalid(path, " ".join(str(error).split())) from None
    if not file.state.lock:
        raise _invalid(path, "'state.lock' must be true: 'apply' always holds the lock")
    return file


def _check_elsewhere(path: Path, values: object) -> None:
    """Refuse keys of other deployments that have another place here."""
    root = values if isinstance(values, dict) else {}
    graphs = root.get("graphs")
    named = graphs.items() if isinstance(graphs, dict) else ()
    for prefix, members in (("", root), *((f"graphs.{name}.", each) for name, each in named)):
        for key in _ELSEWHERE.keys() & (members if isinstance(members, dict) else {}).keys():
            raise _invalid(path, f"'{prefix}{key}' is not a key of a cluster", _ELSEWHERE[key])


def _read_graph(root: Path, path: Path, graph_id: str, graph: _Graph) -> DeclaredGraph:
    if not is_id(graph_id) or graph_id == "policies":
        raise _invalid(path, f"'graphs.{graph_id}': an id has 1 to 64 letters, digits and hyphens")
    schema = read_text_file(root / graph.schema)
    catalog = compile_schema(schema, graph.schema)
    queries: dict[str, StoredQuery] = {}
    for file, name in _query_files(root, graph.queries):
        found = read_stored(read_text_file(file), str(file))
        if name is not None:
            found = [query for query in found if query.name == name]
            if not found:
                raise _invalid(path, f"'graphs.{graph_id}.queries.{name}': '{file}' has no query '{name}'")
        for query in found:
            if query.name in queries:
                raise _invalid(path, f"'graphs.{graph_id}.queries': the query '{query.name}' occurs twice")
            query.compile(catalog)
            queries[query.name] = query
    return DeclaredGraph(graph_id, schema, catalog, queries)


def _query_files(root: Path, named: str | Sequence[str] | Mapping[str, _QueryFile]) -> list[tuple[Path, str | None]]:
    """Return files of queries, each with the one query that counts, or None if all do."""
    if isinstance(named, Mapping):
        return [(root / query.file, name) for name, query in named.items()]
    found: list[tuple[Path, str | None]] = []
    for name in [named] if isinstance(named, str) else named:
        path = root / name
        found += [(file, None) for file in (sorted(path.glob("*.gq")) if path.is_dir() else [path])]
    return found


def _read_policy(root: Path, path: Path, name: str, declared: _Policy) -> DeclaredPolicy:
    if not is_id(name):
        raise _invalid(path, f"'policies.{name}': a name has 1 to 64 letters, digits and hyphens")
    kind: Literal["server", "graph"] = "server" if CLUSTER_SCOPE in declared.applies_to else "graph"
    if kind == "server" and len(declared.applies_to) > 1:
        raise _invalid(path, f"'policies.{name}.applies_to': '{CLUSTER_SCOPE}' stands alone")
    file = root / declared.file
    texts = read_policy(file, kind)
    files = {"policy.yaml": texts.text, **{cedar.name: text for cedar, text in texts.cedar.items()}}
    tests = policy_path(file).with_name(TESTS_FILE)
    if tests.is_file():
        files[TESTS_FILE] = read_policy_text(tests)
    return DeclaredPolicy(name, files, tuple(declared.applies_to), Policy(parse_policy(texts, kind), name))


def _check_scopes(path: Path, graphs: Mapping[str, DeclaredGraph], policies: Mapping[str, DeclaredPolicy]) -> None:
    """Each policy applies to declared graphs, and each graph has at most one; rules for rows must fit its schema."""
    taken: dict[str, str] = {}
    for name, policy in policies.items():
        if not policy.applies_to:
            raise _invalid(path, f"'policies.{name}.applies_to' is empty")
        for scope in policy.applies_to:
            if scope != CLUSTER_SCOPE and scope not in graphs:
                hint = did_you_mean(scope, graphs)
                raise _invalid(path, f"'policies.{name}.applies_to': there is no graph '{scope}'", hint)
            if scope in taken:
                raise _invalid(path, f"'{scope}' has two policies: '{taken[scope]}' and '{name}'")
            taken[scope] = name
            if scope != CLUSTER_SCOPE and policy.policy.has_row_rules:
                policy.policy.row_policies(graphs[scope].catalog)


def _invalid(path: Path, reason: str, hint: str | None = None) -> OmniGraphError:
    return InputError(f"'{path}': {reason}", code="cluster_invalid", hint=hint or "docs/guides/cluster.md describes it")
