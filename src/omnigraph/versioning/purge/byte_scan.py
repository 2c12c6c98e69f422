"""Search of everything that a graph stores for values: the proof that a purge is complete.

Three searches complement each other:

- The bytes of every object of the graph: intents, proposals, caches, large values, names of files.
- The decoded content: the text of log entries, and the columns of every Lance file, whether a version refers to it or
  not. Deleted rows are included.
- The digests of purged ids: every id in the tables of the type and every end of its edges is compared with them. This
  needs no values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from omnigraph.checkpoints import checked, checkpoint
from omnigraph.errors import Damaged
from omnigraph.storage.files import layout
from omnigraph.storage.lance.file_values import NotDecodable, TableFiles, decoded_columns
from omnigraph.storage.manifest.commit_log import entry_text, first_version_of
from omnigraph.versioning.model.purge_results import PurgeFinding, PurgeScan
from omnigraph.versioning.model.purges import PurgedIds, PurgeRecord
from omnigraph.versioning.purge.value_search import ValueSearch
from omnigraph.versioning.write.repository import Repository

_LANCE = ".lance"


Report = Callable[[int, int], None]
"""Is called with the bytes that were searched and those of the whole store."""


def scan(repository: Repository, values: Sequence[str | bytes], report: Report | None = None) -> PurgeScan:
    """Search every object of a graph for values, and every table of a purged type for purged ids."""
    search = ValueSearch(values)
    conditions = _conditions(repository)
    tables: dict[str, TableFiles] = {}
    sizes = repository.objects.sizes()
    total = sum(sizes.values())
    findings: dict[PurgeFinding, None] = {}
    undecodable: list[str] = []
    done = 0
    for name, size in sizes.items():
        checkpoint()
        try:
            for place, value in _findings(repository, name, search, conditions, tables):
                findings[PurgeFinding(name, place, value)] = None
        except FileNotFoundError:
            # A file that was removed since the listing is no finding.
            pass
        except (NotDecodable, Damaged):
            if repository.objects.size(name):
                undecodable.append(name)
        done += size
        if report is not None:
            report(done, total)
    return PurgeScan(tuple(findings), len(sizes), total, tuple(undecodable))


def _conditions(repository: Repository) -> Mapping[str, list[PurgedIds]]:
    """Return folder of a table → the purged ids that its columns must not contain."""
    state = repository.state()
    records: dict[tuple[str, tuple[str, ...]], list[PurgeRecord]] = {}
    for record in state.purges:
        for target in record.targets if record.digests else ():
            records.setdefault((state.tables[target.table].folder, target.columns), []).append(record)
    found: dict[str, list[PurgedIds]] = {}
    for (folder, columns), some in records.items():
        found.setdefault(folder, []).append(PurgedIds(columns, some))
    return found


def _findings(
    repository: Repository,
    name: str,
    search: ValueSearch,
    conditions: Mapping[str, list[PurgedIds]],
    tables: dict[str, TableFiles],
) -> Iterator[tuple[str, str]]:
    """Yield the places of values in an object: its name, its bytes and its decoded content."""
    if search:
        yield from (("name", value) for value in sorted(search.found_in(name.encode())))
        found = search.found_in_chunks(checked(repository.objects.chunks(name)))
        yield from (("bytes", value) for value in sorted(found))
    yield from _decoded(repository, name, search, conditions, tables)


def _decoded(
    repository: Repository,
    name: str,
    search: ValueSearch,
    conditions: Mapping[str, list[PurgedIds]],
    tables: dict[str, TableFiles],
) -> Iterator[tuple[str, str]]:
    """Yield the places of values in the decoded content of an object."""
    if search and name.startswith(f"{layout.LOG}/") and first_version_of(name) is not None:
        data = repository.objects.read(name)
        if data is not None:
            yield from (("text", value) for value in sorted(search.found_in(entry_text(name, data))))
    if not name.endswith(_LANCE):
        return
    folder = "/".join(name.split("/")[:2])
    ids = conditions.get(folder, []) if f"{folder}/data/" in name else []
    wanted = None if search else {column for condition in ids for column in condition.columns}
    if wanted is not None and not wanted:
        return
    for column, values in _columns(repository, folder, name, tables, wanted):
        yield from ((column, value) for value in sorted(search.found_in_array(values)))
        for condition in ids:
            if column in condition.columns and condition.any_in(values):
                yield column, "purged id"


def _columns(
    repository: Repository, folder: str, name: str, tables: dict[str, TableFiles], wanted: Collection[str] | None
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the decoded columns of a Lance file: alone, or through a version if it contains large values."""
    try:
        yield from decoded_columns(repository.location, name, wanted)
    except NotDecodable:
        if not layout.is_table_folder(folder):
            raise
        known = tables.get(folder) or tables.setdefault(folder, TableFiles(repository.tables, folder))
        yield from known.columns(name)
