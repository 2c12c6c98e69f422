"""Rows of `__manifest`: conversion of the manifest objects to rows and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from sys import intern
from typing import Any

import msgspec

from omnigraph.errors import Damaged, Hint
from omnigraph.storage.files.layout import is_table_folder
from omnigraph.storage.manifest.manifest_schema import Row, to_row
from omnigraph.versioning.model.aliases import AliasRecord
from omnigraph.versioning.model.manifest_objects import (
    MAIN,
    RECLAIM_PREFIX,
    Commit,
    EmbeddingSpace,
    Head,
    Pin,
    QueriesRecord,
    Reclaim,
    SchemaRecord,
    TableRow,
    Tag,
)

PinsOfCommit = Callable[[str], tuple[Pin, ...]]


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


def _branch(name: str) -> str | None:
    return None if name == MAIN else name


# -- to rows -----------------------------------------------------------------------------------------


def table_object_id(table_id: int, incarnation: int) -> str:
    """Return the row id of a table."""
    return f"table:{table_id:016x}:{incarnation:016x}"


def head_object_id(branch: str) -> str:
    """Return the row id of a branch's head."""
    return f"graph_head:{branch}"


def tag_object_id(name: str) -> str:
    """Return the row id of a tag."""
    return f"graph_tag:{name}"


def schema_object_id(hash_: str) -> str:
    """Return the row id of a schema."""
    return f"schema:{hash_}"


def queries_object_id(hash_: str) -> str:
    """Return the row id of a set of stored queries."""
    return f"queries:{hash_}"


def alias_object_id(hash_: str) -> str:
    """Return the row id of a document of an alias set."""
    return f"aliases:{hash_}"


def idempotency_object_id(key: str, actor: str | None) -> str:
    """Return the row id of an idempotency key; the keys of different actors are independent."""
    return f"idempotency_of:{_json([actor, key])}"


def unscoped_idempotency_object_id(key: str) -> str:
    """Return the row id of an idempotency key as earlier releases wrote it: one set of keys for all actors."""
    return f"idempotency:{key}"


def table_to_row(table: TableRow) -> Row:
    """Return the `table` row."""
    return to_row(
        table_object_id(table.table_id, table.incarnation),
        "table",
        location=table.folder,
        table_key=table.key,
        stable_table_id=table.table_id,
        table_incarnation_id=table.incarnation,
    )


def version_to_row(pin: Pin, branch: str, manifest_version: int, details: Mapping[str, Any]) -> Row:
    """Return the `table_version` row of a newly published pin."""
    return to_row(
        f"table_version:{pin.table_id:016x}:{pin.incarnation:016x}:{manifest_version:020}",
        "table_version",
        metadata=_json({"lance_version": pin.lance_version, **details}),
        table_key=pin.key,
        stable_table_id=pin.table_id,
        table_incarnation_id=pin.incarnation,
        table_version=pin.table_version,
        table_branch=_branch(branch),
        row_count=pin.row_count,
    )


def tombstone_to_row(pin: Pin, branch: str, manifest_version: int) -> Row:
    """Return the `table_tombstone` row of a table that is removed from the branch."""
    return to_row(
        f"table_tombstone:{pin.table_id:016x}:{pin.incarnation:016x}:{manifest_version:020}",
        "table_tombstone",
        table_key=pin.key,
        stable_table_id=pin.table_id,
        table_incarnation_id=pin.incarnation,
        table_version=pin.table_version + 1,
        table_branch=_branch(branch),
    )


def commit_to_row(commit: Commit, pins: Iterable[Pin]) -> Row:
    """Return the `graph_commit` row, with every pin of the snapshot that the commit made."""
    metadata = {
        "parent_commit_id": commit.parent_id,
        "merged_parent_commit_id": commit.merged_parent_id,
        "actor_id": commit.actor,
        "created_at": commit.created_us,
        "message": commit.message,
        "metadata": dict(commit.metadata),
        "kind": commit.kind,
        "changed": list(commit.changed),
        "schema_hash": commit.schema_hash,
        "since": commit.since,
        "fork_commit_id": commit.fork_commit_id,
        **_sets_to_json(commit),
        **pins_to_json(pins),
    }
    return to_row(
        commit.id,
        "graph_commit",
        metadata=_json(metadata),
        table_version=commit.manifest_version,
        table_branch=_branch(commit.branch),
    )


def head_to_row(head: Head, fork_pins: Iterable[Pin] | None = None) -> Row:
    """Return the `graph_head` row; with the pins of its fork point, it contains only those that differ."""
    if fork_pins is None:
        return _head_row(head.branch, head_to_json(head))
    known = {(pin.table_id, pin.incarnation): pin for pin in fork_pins}
    own = {(pin.table_id, pin.incarnation): pin for pin in head.pins}
    data = head_to_json(replace(head, pins=tuple(pin for table, pin in own.items() if known.get(table) != pin)))
    data["pins_of"] = head.fork_commit_id
    data["dropped"] = [list(table) for table in known if table not in own]
    return _head_row(head.branch, data)


def head_to_log_row(head: Head) -> Row:
    """Return the `graph_head` row without pins, for the log: those of its commit."""
    data = head_to_json(replace(head, pins=()))
    for name in ("pins", "transactions"):
        del data[name]
    return _head_row(head.branch, data)


def _head_row(branch: str, data: Mapping[str, Any]) -> Row:
    return to_row(head_object_id(branch), "graph_head", metadata=_json(data), table_branch=_branch(branch))


def head_to_json(head: Head) -> dict[str, Any]:
    """Return everything of a head except the name of its branch; absent attributes are omitted."""
    attributes = {"description": head.description, "expires_at": head.expires_us}
    return {
        "head_commit_id": head.commit_id,
        "parent_commit_id": head.parent_commit_id,
        "incarnation": head.incarnation,
        "manifest_version": head.manifest_version,
        "schema_hash": head.schema_hash,
        "created_at": head.created_us,
        "fork_commit_id": head.fork_commit_id,
        "fork_branch": head.fork_branch,
        "since": head.since,
        "owner": head.owner,
        **{name: value for name, value in attributes.items() if value is not None},
        **_sets_to_json(head),
        **pins_to_json(head.pins),
    }


def tag_to_row(tag: Tag) -> Row:
    """Return the `graph_tag` row, with every pin of its commit."""
    return to_row(tag_object_id(tag.name), "graph_tag", metadata=_json(tag_to_json(tag)))


def tag_to_json(tag: Tag) -> dict[str, Any]:
    """Return everything of a tag except its name."""
    return {
        "commit_id": tag.commit_id,
        "created_at": tag.created_us,
        "actor_id": tag.actor,
        "message": tag.message,
        **pins_to_json(tag.pins),
    }


def schema_to_row(schema: SchemaRecord) -> Row:
    """Return the `schema` row."""
    return to_row(
        schema_object_id(schema.hash),
        "schema",
        metadata=_json({"hash": schema.hash, "source": schema.source, "ir": schema.ir}),
    )


def queries_to_row(queries: QueriesRecord) -> Row:
    """Return the `queries` row."""
    metadata = _json({"hash": queries.hash, "document": queries.document})
    return to_row(queries_object_id(queries.hash), "queries", metadata=metadata)


def alias_to_row(record: AliasRecord) -> Row:
    """Return the `aliases` row of one document of an alias set."""
    metadata = _json({"hash": record.hash, "document": record.document})
    return to_row(alias_object_id(record.hash), "aliases", metadata=metadata)


def _sets_to_json(point: Commit | Head) -> dict[str, str]:
    # Formats before 1004 and 1006 have no such keys.
    hashes = {"queries_hash": point.queries_hash, "aliases_hash": point.aliases_hash}
    return {name: hash_ for name, hash_ in hashes.items() if hash_}


IDENTITY_OBJECT_ID = "graph_identity"
REF_CHANGE = "ref_change"
REF_CHANGE_PREFIX = "ref_change:"


def identity_to_row(next_id: int) -> Row:
    """Return the row with the next identity number for types, properties and tables, shared by all branches."""
    return to_row(IDENTITY_OBJECT_ID, "graph_identity", metadata=_json({"next_identity_id": next_id}))


def abort_to_row(commit_id: str, operation_id: str, at: int) -> Row:
    """Return the row that prevents an aborted commit from ever being published."""
    return to_row(commit_id, "graph_abort", metadata=_json({"operation_id": operation_id, "created_at": at}))


def reclaim_to_row(reclaim: Reclaim, at: int) -> Row:
    """Return the `graph_abort` row that prevents table versions from being pinned while they are removed."""
    tables = {folder: None if some is None else _to_ranges(some) for folder, some in reclaim.tables.items()}
    metadata = {"operation_id": reclaim.token, "created_at": at, "tables": tables}
    return to_row(reclaim.object_id, "graph_abort", metadata=_json(metadata))


def _to_ranges(versions: Iterable[int]) -> list[list[int]]:
    """Return runs of consecutive numbers as pairs of first and last."""
    ranges: list[list[int]] = []
    for version in sorted(versions):
        if ranges and version == ranges[-1][1] + 1:
            ranges[-1][1] = version
        else:
            ranges.append([version, version])
    return ranges


def idempotency_to_row(
    key: str,
    actor: str | None,
    commit_id: str | None,
    request_hash: str | None,
    result: Mapping[str, Any] | None = None,
) -> Row:
    """Return the row that records the commit and the result of an actor's request; an empty result is omitted."""
    metadata: dict[str, Any] = {"commit_id": commit_id, "request_hash": request_hash}
    if result:
        metadata["result"] = dict(result)
    return to_row(idempotency_object_id(key, actor), "idempotency", metadata=_json(metadata))


def ref_change_to_row(change_id: str, change: Mapping[str, Any], version: int) -> Row:
    """Return the history row that records a change of a branch or tag, and the manifest version that contains it."""
    return to_row(f"{REF_CHANGE_PREFIX}{change_id}", REF_CHANGE, metadata=_json(change), table_version=version)


# -- from rows ---------------------------------------------------------------------------------------


def read_metadata(row: Row) -> dict[str, Any]:
    """Return the JSON object of a row, or raise `Damaged` with the id of the row."""
    try:
        data = _decoded(row["metadata"])
        if not isinstance(data, dict):
            raise TypeError("not an object")
    except (TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error
    return data


def _decoded(text: str) -> Any:
    """Decode a JSON text. This dominates the cost of listing ten thousand commits."""
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError:
        # NaN is not valid JSON but may occur in the user's metadata of a commit.
        return json.loads(text)


def damaged_row(row: Row, why: str) -> Damaged:
    """Return the error for a row with unexpected content."""
    return Damaged(
        f"the manifest row '{row.get('object_id')}' is damaged: {why}",
        code="damaged_manifest",
        hint=Hint(
            "restore the graph's folder from a copy; verify() lists what is affected",
            cli="restore the graph's folder from a copy; 'omnigraph verify' lists what is affected",
        ),
    )


def row_to_table(row: Row) -> TableRow:
    """Read a `table` row."""
    try:
        folder = _text(row["location"])
        if not is_table_folder(folder):
            raise ValueError("its location is not the folder of a table")
        return TableRow(int(row["stable_table_id"]), int(row["table_incarnation_id"]), str(row["table_key"]), folder)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def commit_of_pins(row: Row) -> str | None:
    """Return the commit whose pins are required to read a `graph_head` row; None if it contains all pins itself."""
    data = read_metadata(row)
    found = data.get("pins_of") if "pins" in data else data.get("head_commit_id")
    return found if isinstance(found, str) else None


def row_to_head(row: Row, pins_of: PinsOfCommit) -> Head:
    """Read a `graph_head` row; `pins_of` returns the pins of a commit."""
    data = read_metadata(row)
    try:
        if "pins" not in data:
            head = head_from_json(row["table_branch"] or MAIN, {**data, "pins": []})
            return replace(head, pins=pins_of(head.commit_id))
        head = head_from_json(row["table_branch"] or MAIN, data)
        if "pins_of" in data or "dropped" in data:
            fork_pins = pins_of(_text(data["pins_of"]))
            return replace(head, pins=_completed(head.pins, fork_pins, data["dropped"]))
        return head
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def _completed(own: Iterable[Pin], fork_pins: Iterable[Pin], dropped: Iterable[list[int]]) -> tuple[Pin, ...]:
    """Return the pins of a head from those that differ from its fork point."""
    pins = {(pin.table_id, pin.incarnation): pin for pin in (*fork_pins, *own)}
    for table, incarnation in dropped:
        pins.pop((table, incarnation), None)
    return tuple(sorted(pins.values(), key=lambda pin: pin.key))


def head_from_json(branch: str, data: Mapping[str, Any]) -> Head:
    """Return the head of `head_to_json`; unexpected content raises `KeyError`, `TypeError` or `ValueError`."""
    return Head(
        branch=branch,
        incarnation=_text(data["incarnation"]),
        commit_id=_text(data["head_commit_id"]),
        parent_commit_id=_text_or_none(data["parent_commit_id"]),
        manifest_version=int(data["manifest_version"]),
        schema_hash=_text(data["schema_hash"]),
        created_us=int(data["created_at"]),
        fork_commit_id=_text_or_none(data["fork_commit_id"]),
        fork_branch=_text_or_none(data["fork_branch"]),
        since=int(data["since"]),
        owner=_text_or_none(data["owner"]),
        pins=_pins(data),
        description=_text_or_none(data.get("description")),
        expires_us=int(data["expires_at"]) if data.get("expires_at") is not None else None,
        queries_hash=_text(data.get("queries_hash", "")),
        aliases_hash=_text(data.get("aliases_hash", "")),
    )


def row_to_tag(row: Row) -> Tag:
    """Read a `graph_tag` row."""
    data = read_metadata(row)
    try:
        return tag_from_json(_text(row["object_id"]).removeprefix(tag_object_id("")), data)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def tag_from_json(name: str, data: Mapping[str, Any]) -> Tag:
    """Return the tag of `tag_to_json`; unexpected content raises `KeyError`, `TypeError` or `ValueError`."""
    return Tag(
        name=name,
        commit_id=_text(data["commit_id"]),
        created_us=int(data["created_at"]),
        actor=_text_or_none(data["actor_id"]),
        message=_text_or_none(data["message"]),
        pins=_pins(data),
    )


def row_to_reclaim(row: Row) -> Reclaim:
    """Read the row of a cleanup fence."""
    data = read_metadata(row)
    try:
        tables = {
            _text(folder): None
            if ranges is None
            else frozenset(version for first, last in ranges for version in range(int(first), int(last) + 1))
            for folder, ranges in data["tables"].items()
        }
        return Reclaim(_text(row["object_id"]).removeprefix(RECLAIM_PREFIX), tables)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def row_to_commit(row: Row) -> Commit:
    """Read a `graph_commit` row without its pins."""
    return _commit(row, read_metadata(row))


def row_to_commit_and_pins(row: Row) -> tuple[Commit, tuple[Pin, ...]]:
    """Read a `graph_commit` row with its pins."""
    data = read_metadata(row)
    try:
        return _commit(row, data), _pins(data)
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def _commit(row: Row, data: Mapping[str, Any]) -> Commit:
    """Read a commit. All commits stay in memory, so the texts that many of them repeat are shared."""
    try:
        return Commit(
            id=row["object_id"],
            branch=intern(row["table_branch"] or MAIN),
            manifest_version=int(row["table_version"]),
            parent_id=_text_or_none(data["parent_commit_id"]),
            merged_parent_id=_text_or_none(data["merged_parent_commit_id"]),
            actor=None if data["actor_id"] is None else intern(_text(data["actor_id"])),
            created_us=int(data["created_at"]),
            message=_text_or_none(data["message"]),
            metadata=dict(data["metadata"]),
            kind=intern(_text(data["kind"])),
            changed=tuple(map(intern, data["changed"])),
            schema_hash=intern(_text(data["schema_hash"])),
            since=int(data["since"]),
            fork_commit_id=_text_or_none(data["fork_commit_id"]),
            queries_hash=intern(_text(data.get("queries_hash", ""))),
            aliases_hash=_text(data.get("aliases_hash", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_row(row, str(error)) from error


def row_to_queries(row: Row) -> QueriesRecord:
    """Read a `queries` row."""
    data = read_metadata(row)
    try:
        return QueriesRecord(_text(data["hash"]), _text(data["document"]))
    except (KeyError, TypeError) as error:
        raise damaged_row(row, str(error)) from error


def row_to_alias(row: Row) -> AliasRecord:
    """Read an `aliases` row."""
    data = read_metadata(row)
    try:
        return AliasRecord(_text(data["hash"]), _text(data["document"]))
    except (KeyError, TypeError) as error:
        raise damaged_row(row, str(error)) from error


def row_to_schema(row: Row) -> SchemaRecord:
    """Read a `schema` row."""
    data = read_metadata(row)
    try:
        return SchemaRecord(_text(data["hash"]), _text(data["source"]), _text(data["ir"]))
    except (KeyError, TypeError) as error:
        raise damaged_row(row, str(error)) from error


def pins_to_json(pins: Iterable[Pin]) -> dict[str, Any]:
    """Return the pins, their transactions in the same order, and the embedding spaces of their tables."""
    chosen = list(pins)
    spaces = {
        pin.key: {column: [space.provider, space.model, space.dimensions] for column, space in pin.embeddings}
        for pin in chosen
        if pin.embeddings
    }
    data: dict[str, Any] = {
        "pins": [pin.to_list() for pin in chosen],
        "transactions": [pin.transaction for pin in chosen],
    }
    return {**data, "embeddings": spaces} if spaces else data


def _pins(data: Mapping[str, Any]) -> tuple[Pin, ...]:
    pins = data["pins"]
    # Graphs written by an earlier release do not record transactions.
    transactions = data.get("transactions") or [""] * len(pins)
    spaces: Mapping[str, Any] = data.get("embeddings", {})
    return tuple(
        Pin(
            int(table),
            int(incarnation),
            _text(key),
            int(version),
            int(lance_version),
            int(rows),
            _text(transaction),
            _spaces(spaces.get(key, {})),
        )
        for (table, incarnation, key, version, lance_version, rows), transaction in zip(pins, transactions, strict=True)
    )


def _spaces(columns: Mapping[str, Any]) -> tuple[tuple[str, EmbeddingSpace], ...]:
    return tuple(
        (column, EmbeddingSpace(_text(provider), _text(model), int(dimensions)))
        for column, (provider, model, dimensions) in sorted(columns.items())
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, found {type(value).__name__}")
    return value


def _text_or_none(value: Any) -> str | None:
    return value if value is None else _text(value)
