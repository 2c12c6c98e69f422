"""Removal of table versions without a race against writers that may be about to publish them.

A version that no commit pins is garbage or belongs to a write in progress; its age does not decide which. The versions
to remove are therefore fenced first: one manifest row lists them, published as a compare-and-swap from a state in which
nothing pins them. From then on, a publish that would pin one of them fails and starts over. Then the versions are
removed, and finally the row. A publish checks two things in this order: the fences of the state that it replaces, and
that its versions exist. So it sees the fence, or finds the version gone, or precedes the fence.

A cleanup that dies leaves its row. The versions in it stay fenced, and the next cleanup removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from omnigraph.errors import OmniGraphError
from omnigraph.storage.failpoints import reach
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import Reclaim
from omnigraph.versioning.model.manifest_rows import reclaim_to_row, row_to_commit_and_pins
from omnigraph.versioning.model.state import State
from omnigraph.versioning.upkeep.parallel import each
from omnigraph.versioning.upkeep.retention import TableId, pinned_versions
from omnigraph.versioning.write.repository import Repository

Remove = Callable[[str, list[int] | None], None]
"""Removes versions of the table in a folder; None stands for the whole folder."""


@dataclass
class Garbage:
    """The garbage of a cleanup, planned on one state of the manifest."""

    planned_on: State
    versions: dict[str, set[int]] = field(default_factory=dict)
    """Folder → versions to remove, for tables in the manifest."""
    folders: set[str] = field(default_factory=set)
    """Folders to remove of tables that are not in the manifest."""
    present: dict[str, set[int]] = field(default_factory=dict)
    """Folder → all existing versions."""
    unknown: set[str] = field(default_factory=set)
    """All folders that are not in the manifest, whatever their age."""


def reclaim(repository: Repository, garbage: Garbage, remove: Remove, at_once: int) -> None:
    """Fence the garbage, remove it, `at_once` tables in parallel, and lift the fence."""
    token = new_ulid(repository.clock())
    fenced: Reclaim = Reclaim(token, {})
    finished: list[str] = []

    def decide(state: State) -> Change | None:
        nonlocal fenced
        fenced, finished[:] = _plan(repository, garbage, state, token)
        if not fenced.tables and not finished:
            return None
        put = (reclaim_to_row(fenced, repository.clock()),) if fenced.tables else ()
        return Change(put=put, drop=tuple(finished))

    repository.publish(decide)
    reach("cleanup.fenced")
    failed: dict[str, frozenset[int] | None] = {}

    def remove_from(folder: str) -> None:
        versions = fenced.tables[folder]
        try:
            remove(folder, None if versions is None else sorted(versions))
        except OmniGraphError:
            # The caller reports the error; versions that could not be removed stay fenced.
            failed[folder] = versions
        reach("cleanup.table")

    each(remove_from, fenced.tables, at_once)
    if fenced.tables:
        rest = Reclaim(token, failed)
        row = reclaim_to_row(rest, repository.clock())
        done = Change(put=(row,)) if failed else Change(drop=(row["object_id"],))
        repository.publish(lambda state: done if state.is_aborted(row["object_id"]) else None)


def _plan(repository: Repository, garbage: Garbage, state: State, token: str) -> tuple[Reclaim, list[str]]:
    """Return the fence for a state, and the rows of dead cleanups that are obsolete."""
    identities: Mapping[str, TableId] = {row.folder: identity for identity, row in state.tables.items()}
    pinned = pinned_versions(state)
    for identity, versions in _pinned_since(repository, garbage.planned_on, state).items():
        pinned.setdefault(identity, set()).update(versions)
    tables: dict[str, frozenset[int] | None] = {}
    for folder, versions in garbage.versions.items():
        # Tables are never removed from the manifest, so the folder is known.
        chosen = versions - pinned.get(identities[folder], set())
        if chosen:
            tables[folder] = frozenset(chosen)
    for folder in garbage.folders.difference(identities):
        tables[folder] = None
    finished: list[str] = []
    for left in state.reclaims():
        if left.token != token and all(_is_covered(garbage, *one) for one in left.tables.items()):
            finished.append(left.object_id)
            for folder, fenced in left.tables.items():
                if fenced is None and folder in garbage.unknown.difference(identities):
                    tables[folder] = None
                elif fenced is not None and (rest := fenced & garbage.present[folder]):
                    tables[folder] = rest | (tables.get(folder) or frozenset())
    return Reclaim(token, tables), finished


def _is_covered(garbage: Garbage, folder: str, fenced: frozenset[int] | None) -> bool:
    """Return True if the listing of a table is newer than the fence of another cleanup.

    The listing then shows what that cleanup left.
    """
    present = garbage.present.get(folder)
    return fenced is None or (bool(present) and max(fenced) < max(present or ()))


def _pinned_since(repository: Repository, before: State, state: State) -> dict[TableId, set[int]]:
    """Return table → versions pinned by commits that were published after a state."""
    if state.version == before.version:
        return {}
    rows = repository.manifest.scan(state.manifest, HistoryFilter("graph_commit", above=before.version))
    found: dict[TableId, set[int]] = {}
    for row in rows:
        for pin in row_to_commit_and_pins(row)[1]:
            found.setdefault((pin.table_id, pin.incarnation), set()).update(pin.versions)
    return found
