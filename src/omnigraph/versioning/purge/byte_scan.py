"""Search of everything that a graph stores for values: the proof that a purge is complete.

Three searches complement each other:

- The bytes of every object of the graph: intents, proposals, caches, large values, names of files.
- The decoded content: the text of log entries, and the columns of every Lance file, whether a version refers to it or
  not. Deleted rows are included.
- The digests of purged ids: every id in the tables of the type and every end of its edges is compared with them. This
  needs no values.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.checkpoints import checkpoint
from omnigraph.errors import Damaged, InputError
from omnigraph.storage.files import layout
from omnigraph.storage.lance.file_values import NotDecodable, TableFiles, decoded_columns
from omnigraph.storage.manifest.commit_log import entry_text, first_version_of
from omnigraph.versioning.model.purges import IdCondition
from omnigraph.versioning.write.repository import Repository

_VALUE_BYTES_MIN = 4
_LANCE = ".lance"


@dataclass(frozen=True)
class PurgeFinding:
    """A place where a searched value, or a purged id, is stored."""

    object: str
    """The name of the object in the graph."""
    place: str
    """`bytes`, `name`, `text` of a log entry, or the name of a column."""
    value: str
    """The searched value; `purged id` if only its digest is known."""

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {"object": self.object, "place": self.place, "value": self.value}


@dataclass(frozen=True)
class PurgeScan:
    """The result of a search."""

    findings: tuple[PurgeFinding, ...]
    objects: int
    bytes: int
    undecodable: tuple[str, ...]
    """Lance files that could not be decoded: incomplete files of writes in progress or of dead writers."""

    @property
    def is_clean(self) -> bool:
        """True if nothing was found and every file was decoded."""
        return not self.findings and not self.undecodable


class _Needles:
    """The searched values and the bytes that represent them."""

    def __init__(self, values: Sequence[str | bytes]) -> None:
        self._bytes: dict[bytes, str] = {}
        for value in values:
            shown = value if isinstance(value, str) else value.hex()
            forms = [value] if isinstance(value, bytes) else [value.encode(), json.dumps(value)[1:-1].encode()]
            for form in forms:
                if len(form) < _VALUE_BYTES_MIN:
                    raise InputError(
                        f"the value '{shown}' is too short to be searched",
                        code="bad_purge_value",
                        hint=f"give values of at least {_VALUE_BYTES_MIN} bytes; ids are compared by their digests",
                    )
                self._bytes[form] = shown
        self.longest = max(map(len, self._bytes), default=0)

    def __bool__(self) -> bool:
        return bool(self._bytes)

    def found_in(self, data: bytes | memoryview) -> set[str]:
        """Return the values that occur in some bytes."""
        held = bytes(data)
        return {value for form, value in self._bytes.items() if form in held}

    def found_in_array(self, array: pa.Array) -> set[str]:
        """Return the values that occur in a value of a column."""
        found: set[str] = set()
        for leaf in _leaves(array):
            if pa.types.is_string(leaf.type) or pa.types.is_large_string(leaf.type):
                # A match in the buffer may span two values.
                texts = {shown: form for form, shown in self._bytes.items() if _is_text(form)}
                suspected = self.found_in(leaf.buffers()[2] or b"") & texts.keys()
                found |= {s for s in suspected if pc.any(pc.match_substring(leaf, texts[s].decode())).as_py()}
            else:
                for buffer in leaf.buffers():
                    found |= self.found_in(buffer) if buffer is not None else set()
        return found


def _is_text(form: bytes) -> bool:
    try:
        form.decode()
    except UnicodeDecodeError:
        return False
    return True


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """Yield the arrays without members that an array consists of."""
    kind = array.type
    if pa.types.is_struct(kind):
        for number in range(kind.num_fields):
            yield from _leaves(array.field(number))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _leaves(array.flatten())
    elif pa.types.is_dictionary(kind):
        yield from _leaves(array.dictionary)
    else:
        yield array


def scan(repository: Repository, values: Sequence[str | bytes]) -> PurgeScan:
    """Search every object of a graph for values, and every table of a purged type for purged ids."""
    needles = _Needles(values)
    conditions = _conditions(repository)
    tables: dict[str, TableFiles] = {}
    sizes = repository.objects.sizes()
    findings: dict[PurgeFinding, None] = {}
    undecodable: list[str] = []
    for name in sizes:
        checkpoint()
        for value in needles.found_in(name.encode()):
            findings[PurgeFinding(name, "name", value)] = None
        for value in _in_bytes(repository, name, needles):
            findings[PurgeFinding(name, "bytes", value)] = None
        try:
            for place, value in _decoded(repository, name, needles, conditions, tables):
                findings[PurgeFinding(name, place, value)] = None
        except FileNotFoundError:
            continue
        except (NotDecodable, Damaged):
            # A file that was removed since the listing is no finding.
            if repository.objects.size(name):
                undecodable.append(name)
    return PurgeScan(tuple(findings), len(sizes), sum(sizes.values()), tuple(undecodable))


def _conditions(repository: Repository) -> Mapping[str, list[IdCondition]]:
    """Return folder of a table → the conditions of purges that search it."""
    state = repository.state()
    found: dict[str, list[IdCondition]] = {}
    for record in state.purges:
        for target in record.targets if record.digests else ():
            folder = state.tables[target.table].folder
            found.setdefault(folder, []).append(IdCondition(target.columns, record))
    return found


def _in_bytes(repository: Repository, name: str, needles: _Needles) -> set[str]:
    found: set[str] = set()
    if not needles:
        return found
    tail = b""
    try:
        for chunk in repository.objects.chunks(name):
            data = tail + chunk
            found |= needles.found_in(data)
            tail = data[-(needles.longest - 1) :] if needles.longest > 1 else b""
    except FileNotFoundError:
        return found
    return found


def _decoded(
    repository: Repository,
    name: str,
    needles: _Needles,
    conditions: Mapping[str, list[IdCondition]],
    tables: dict[str, TableFiles],
) -> Iterator[tuple[str, str]]:
    """Yield the places of values in the decoded content of an object."""
    if name.startswith(f"{layout.LOG}/") and first_version_of(name) is not None:
        data = repository.objects.read(name)
        if data is not None:
            yield from (("text", value) for value in needles.found_in(entry_text(name, data)))
    if not name.endswith(_LANCE):
        return
    folder = "/".join(name.split("/")[:2])
    ids = conditions.get(folder, []) if f"{folder}/data/" in name else []
    for column, values in _columns(repository, folder, name, tables):
        yield from ((column, value) for value in needles.found_in_array(values))
        for condition in ids:
            if column in condition.columns and pc.any(condition.selects(values)).as_py():
                yield column, "purged id"


def _columns(
    repository: Repository, folder: str, name: str, tables: dict[str, TableFiles]
) -> Iterator[tuple[str, pa.Array]]:
    """Yield the decoded columns of a Lance file: alone, or through a version if it contains large values."""
    try:
        yield from decoded_columns(repository.location, name)
    except NotDecodable:
        if not layout.is_table_folder(folder):
            raise
        known = tables.get(folder) or tables.setdefault(folder, TableFiles(repository.tables, folder))
        yield from known.columns(name)
