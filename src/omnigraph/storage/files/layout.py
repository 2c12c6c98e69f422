"""Every path of a graph, named once.

A graph is one folder or one object-store prefix. Names that begin with two underscores belong to the
engine. A table's folder never changes, whatever its type is called later.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

MANIFEST = "__manifest"
RECOVERY = "__recovery"
INIT_CLAIM = "__init_claim.json"
STAGING = "__staging"
AUDIT = "_graph_commit_recoveries.lance"
SCHEMA_COPY = "_schema.pg"
PROBE = "__create_if_absent_probe_"

_FOLDERS = {"node": "nodes", "edge": "edges"}
TABLES = tuple(_FOLDERS.values())
"""The folders that hold table folders."""

_TABLE_FOLDER = re.compile(rf"({'|'.join(TABLES)})/[0-9a-f]{{16}}(-[0-9a-f]{{16}})?")


def fnv1a64(text: str) -> str:
    """FNV-1a, 64 bits, of the UTF-8 text, as 16 lower-case hex digits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"


def table_folder(kind: Literal["node", "edge"], name: str, suffix: int | None = None) -> str:
    """The folder of a table, relative to the root.

    The first tables of a graph are named by their type alone; every later one gets a suffix of its own,
    so that neither a name used again nor two branches that add the same type can meet in one folder.
    """
    base = f"{_FOLDERS[kind]}/{fnv1a64(name)}"
    return base if suffix is None else f"{base}-{suffix:016x}"


def is_table_folder(text: str) -> bool:
    """Whether a text is the folder of a table, as `table_folder` names them."""
    return _TABLE_FOLDER.fullmatch(text) is not None


def intent_name(operation_id: str) -> str:
    """The sidecar of one write."""
    return f"{RECOVERY}/{operation_id}.json"


def staging_folder(job_id: str) -> str:
    """Where a bulk job keeps its files until it is done."""
    return f"{STAGING}/{job_id}"


def manifest_file(folder: Path, version: int) -> Path:
    """Where Lance keeps the manifest of a numbered version."""
    return folder / "_versions" / manifest_name(version)


def detached_manifest(version: int) -> str:
    """The manifest of a detached version, relative to the table's folder."""
    return f"_versions/d{version}.manifest"


def manifest_name(version: int) -> str:
    """What Lance calls the manifest of a numbered version: the newest comes first in a listing."""
    return f"{2**64 - 1 - version:020}.manifest"
