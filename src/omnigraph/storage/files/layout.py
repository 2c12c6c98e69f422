"""The paths of a graph.

A graph is one folder or one object-store prefix. Names that begin with two underscores belong to the engine. The folder
of a table never changes, even if its type is renamed.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

MANIFEST = "__manifest"
LOG = "__log"
RECOVERY = "__recovery"
INIT_CLAIM = "__init_claim.json"
MAINTENANCE_CLAIM = "__maintenance_claim.json"
STAGING = "__staging"
WEBHOOKS = "__webhooks"
PURGES = "__purges"
PURGE_CLAIM = "__purge_claim.json"
PROPOSALS = "__proposals"
RECOVERY_LOG = "_graph_commit_recoveries.lance"
SCHEMA_COPY = "_schema.pg"
PROBE = "__create_if_absent_probe_"

_FOLDERS = {"node": "nodes", "edge": "edges"}
TABLES = tuple(_FOLDERS.values())
"""The folders that contain table folders."""

_TABLE_FOLDER = re.compile(rf"({'|'.join(TABLES)})/[0-9a-f]{{16}}(-[0-9a-f]{{16}})?")


def fnv1a64(text: str) -> str:
    """Return the 64-bit FNV-1a hash of the UTF-8 text as 16 lower-case hex digits."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) % 2**64
    return f"{value:016x}"


def table_folder(kind: Literal["node", "edge"], name: str, suffix: int | None = None) -> str:
    """Return the folder of a table, relative to the root.

    The first tables of a graph are named by their type alone. Every later table gets its own suffix, so neither a
    reused name nor two branches that add the same type can share a folder.
    """
    base = f"{_FOLDERS[kind]}/{fnv1a64(name)}"
    return base if suffix is None else f"{base}-{suffix:016x}"


def is_table_folder(text: str) -> bool:
    """Return True if a text is the folder of a table, as `table_folder` names it."""
    return _TABLE_FOLDER.fullmatch(text) is not None


def intent_name(operation_id: str) -> str:
    """Return the intent file of one write."""
    return f"{RECOVERY}/{operation_id}.json"


def staging_folder(job_id: str) -> str:
    """Return the folder in which a bulk job keeps its files until it ends."""
    return f"{STAGING}/{job_id}"


def webhook_folder(name: str) -> str:
    """Return the folder of the progress of a webhook."""
    return f"{WEBHOOKS}/{name}"


def manifest_file(folder: Path, version: int) -> Path:
    """Return the path of Lance's manifest of a numbered version."""
    return folder / "_versions" / manifest_name(version)


def detached_manifest(version: int) -> str:
    """Return Lance's manifest of a detached version, relative to the table's folder."""
    return f"_versions/d{version}.manifest"


def manifest_name(version: int) -> str:
    """Return the name of Lance's manifest of a numbered version; the newest sorts first in a listing."""
    return f"{2**64 - 1 - version:020}.manifest"
