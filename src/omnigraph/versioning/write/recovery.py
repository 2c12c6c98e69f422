"""Recovery from crashed writers.

The graph is correct without intent files. Each intent is resolved by one question to the current manifest: does its
commit exist? If so, the write succeeded, and the file is deleted. If not, and its writer is dead, the write did not
happen and must not happen later. The commit id is fenced by an abort row, so that even a writer that was only suspended
fails at its publish. Then the versions it made are removed, and finally the file. Every intent that was acted on has
exactly one row in the recovery log.

An intent that cannot be read is reported and blocks nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from omnigraph.errors import OmniGraphError
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.failpoints import reach
from omnigraph.storage.files import layout
from omnigraph.storage.lance.garbage import remove_versions, versions_of_commit
from omnigraph.storage.manifest.recovery_log import RecoveryLog
from omnigraph.versioning.write.fencing import fence, is_operation_id
from omnigraph.versioning.write.leases import is_alive
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import COMMIT_PROPERTY

Outcome = Literal["rolled_forward", "rolled_back", "in_progress", "unreadable"]
_GENERATIONS = (1, 2)
_OPTIONAL_TEXT = str | None
_INTENT_FIELDS = {
    "operation_id": str,
    "graph_commit_id": str,
    "branch": str,
    "tables": list,
    "actor_id": _OPTIONAL_TEXT,
    "writer_kind": _OPTIONAL_TEXT,
    "writer": dict | None,
}
_WRITER_FIELDS = {"pid": int | None}
_TABLE_FIELDS = {"table_key": str, "table_path": str, "expected_version": int}


@dataclass(frozen=True)
class Recovered:
    """The result for one intent."""

    intent: str
    outcome: Outcome
    commit_id: str | None = None
    branch: str | None = None
    actor: str | None = None
    tables: tuple[Mapping[str, Any], ...] = ()
    detail: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "intent": self.intent,
            "outcome": self.outcome,
            "graph_commit_id": self.commit_id,
            "branch": self.branch,
            "actor_id": self.actor,
            "tables": [dict(table) for table in self.tables],
            "detail": self.detail,
        }


def recover(repository: Repository) -> list[Recovered]:
    """Examine every intent, oldest first, and recover those whose writer is dead."""
    repository.check_writable()
    names = repository.intents()
    reach("recovery.listed")
    return [outcome for name in names if (outcome := _recover_one(repository, name)) is not None]


def pending(repository: Repository) -> list[Recovered]:
    """Return the existing intents; changes nothing."""
    found: list[Recovered] = []
    for name in repository.objects.list(layout.RECOVERY):
        intent = _read(repository, name)
        if isinstance(intent, Recovered):
            found.append(intent)
        elif intent is not None:
            found.append(_outcome(name, intent, "in_progress"))
    return found


def recovery_log(repository: Repository) -> list[dict[str, Any]]:
    """Return all rows of the recovery log, oldest first."""
    return RecoveryLog(repository.location, sync=repository.tables.sync).rows()


def _recover_one(repository: Repository, name: str) -> Recovered | None:
    intent = _read(repository, name)
    if intent is None or isinstance(intent, Recovered):
        return intent
    commit_id = intent["graph_commit_id"]
    if repository.find_commit(commit_id) is not None:
        return _finish(repository, name, intent, "rolled_forward", [])
    written_at = repository.objects.written_at(name)
    if written_at is None:
        return None
    if is_alive(intent, written_at, repository.objects.now()):
        return _outcome(name, intent, "in_progress")
    if not fence(repository, commit_id, intent["operation_id"]):
        return _finish(repository, name, intent, "rolled_forward", [])
    reach("recovery.fenced")
    removed: list[dict[str, Any]] = []
    known = {row.folder for row in repository.state().tables.values()}
    unknown = sorted({table["table_path"] for table in intent["tables"]} - known)
    for table in intent["tables"]:
        if table["table_path"] in unknown:
            continue
        # In a group, the last commit that changes a table made its version.
        made_by = table.get("graph_commit_id", commit_id)
        versions = versions_of_commit(
            repository.tables, table["table_path"], table["expected_version"], COMMIT_PROPERTY, made_by
        )
        gone = remove_versions(repository.tables, table["table_path"], versions)
        for version in gone:
            removed.append(
                {"table_key": table["table_key"], "from_version": version, "to_version": table["expected_version"]}
            )
    reach("recovery.collected")
    done = _finish(repository, name, intent, "rolled_back", removed)
    if unknown:
        return replace(done, detail=f"ignored tables that the manifest does not list: {', '.join(unknown)[:200]}")
    return done


def _finish(
    repository: Repository, name: str, intent: Mapping[str, Any], outcome: Outcome, removed: list[dict[str, Any]]
) -> Recovered:
    audit = RecoveryLog(repository.location, sync=repository.tables.sync)
    audit.add_once(
        operation_id=intent["operation_id"],
        commit_id=intent["graph_commit_id"],
        kind="RolledForward" if outcome == "rolled_forward" else "RolledBack",
        actor=intent.get("actor_id"),
        writer_kind=intent.get("writer_kind") or "write",
        outcomes=json.dumps(removed),
        at=repository.clock(),
    )
    reach("recovery.audited")
    repository.objects.delete(name)
    return _outcome(name, intent, outcome, tuple(removed))


def _outcome(
    name: str, intent: Mapping[str, Any], outcome: Outcome, tables: tuple[Mapping[str, Any], ...] = ()
) -> Recovered:
    return Recovered(
        name,
        outcome,
        intent["graph_commit_id"],
        intent["branch"],
        intent.get("actor_id"),
        tables or tuple(intent["tables"]),
    )


def _read(repository: Repository, name: str) -> dict[str, Any] | Recovered | None:
    """Return an intent; None if it was deleted in the meantime; the reason if it cannot be read."""
    try:
        data = repository.objects.read(name)
        if data is None:
            return None
        intent = json.loads(data)
        # Text with an unpaired surrogate cannot be stored in the recovery log.
        json.dumps(intent, ensure_ascii=False).encode()
        if intent["schema_version"] not in _GENERATIONS:
            return Recovered(
                name,
                "unreadable",
                detail=f"written by a newer release (generation {str(intent['schema_version'])[:40]})",
            )
        _check(intent, _INTENT_FIELDS)
        for field in ("operation_id", "graph_commit_id"):
            if not is_operation_id(intent[field]):
                raise ValueError(f"'{field}' is not an id")
        _check(intent.get("writer") or {}, _WRITER_FIELDS)
        for table in intent["tables"]:
            _check(table, _TABLE_FIELDS)
    except OmniGraphError as error:
        return Recovered(name, "unreadable", detail=error.message)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        return Recovered(name, "unreadable", detail=f"not an intent: {error}")
    assert isinstance(intent, dict)
    return intent


def _check(document: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    """Refuse a document in which a field is missing or has the wrong type."""
    for field, kind in fields.items():
        value = document.get(field)
        if not isinstance(value, kind):
            raise TypeError(f"'{field}' is {'missing' if value is None else type(value).__name__}")
