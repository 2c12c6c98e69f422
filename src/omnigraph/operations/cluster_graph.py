"""Graphs of a cluster: `cluster apply` creates them and changes their schemas, and other calls are refused.

A graph belongs to a cluster if it is `graphs/<id>.omni` below a folder with an applied revision in `__cluster/state`.
The package `cluster` writes these revisions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import msgspec

from omnigraph.decodable import decodable
from omnigraph.errors import Conflict, Damaged, Hint
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store

STATE_FOLDER = "__cluster/state"
_GRAPHS_FOLDER, _SUFFIX = "graphs", ".omni"
_NUMBERED = re.compile(r"([0-9]{8})\.json", re.ASCII)


class _Revision(msgspec.Struct, frozen=True):
    """The members of a revision that decide about a graph."""

    name: str
    graphs: dict[str, Any]
    is_schema_open: bool = False


def graph_path(graph_id: str) -> str:
    """Return the path of a graph below the storage of its cluster."""
    return f"{_GRAPHS_FOLDER}/{graph_id}{_SUFFIX}"


def revision_path(number: int) -> str:
    """Return the path of a revision below the storage of its cluster."""
    return f"{STATE_FOLDER}/{number:08}.json"


def newest_revision(objects: ObjectStore) -> int:
    """Return the number of the newest revision of a cluster; 0 if there is none."""
    found = (_NUMBERED.fullmatch(PurePosixPath(name).name) for name in objects.list(STATE_FOLDER))
    return max((int(match[1]) for match in found if match is not None), default=0)


def check_new_graph(uri: str | os.PathLike[str], environ: Mapping[str, str]) -> None:
    """Refuse to create a graph in the folder of a cluster."""
    found = _find(locate(uri, environ))
    if found is not None:
        graph_id, revision = found
        raise Conflict(
            f"the graphs of this folder belong to the cluster '{revision.name}'",
            code="graph_in_cluster",
            hint=_hint(f"declare 'graphs.{graph_id}' in cluster.yaml"),
        )


def check_schema_change(location: Location) -> None:
    """Refuse a schema change of a graph of a cluster, unless the cluster is open to it."""
    found = _find(location)
    if found is None or found[0] not in found[1].graphs or found[1].is_schema_open:
        return
    raise Conflict(
        f"the schema of the graph belongs to the cluster '{found[1].name}'",
        code="schema_in_cluster",
        hint=_hint("change its file", ", or declare 'schema: open' in cluster.yaml"),
    )


def _hint(first: str, other: str = "") -> Hint:
    return Hint(f"{first} and apply the cluster{other}", cli=f"{first} and run 'omnigraph cluster apply'{other}")


def _find(location: Location) -> tuple[str, _Revision] | None:
    """Return the id of a graph in the cluster around it and the newest revision; None if there is no cluster."""
    address = PurePosixPath(location.path.as_posix() if location.path is not None else location.prefix)
    if address.suffix != _SUFFIX or address.parent.name != _GRAPHS_FOLDER:
        return None
    if location.path is not None:
        root = replace(location, uri=str(location.path.parents[1]), path=location.path.parents[1])
    else:
        root = replace(location, uri=f"s3://{location.bucket}/{address.parents[1]}".removesuffix("/."))
    objects = object_store(root)
    number = newest_revision(objects)
    data = objects.read(revision_path(number)) if number else None
    if data is None:
        return None
    try:
        return address.stem, msgspec.json.decode(data, type=decodable(_Revision))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Damaged(
            f"revision {number} of the cluster '{root.uri}' cannot be read: {error}", code="cluster_damaged"
        ) from None
