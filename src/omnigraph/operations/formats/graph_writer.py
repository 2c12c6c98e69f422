"""`GraphWriter`: writes records to a file or folder while they arrive, in constant memory.

The nodes come first, because the formats declare a node before its edges. The files are written beside each other in a
temporary folder and moved to their place at the end, so that a failed export leaves nothing.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Literal, Self, get_args

from omnigraph.errors import InputError
from omnigraph.operations.export import chosen_types
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.files.fsync import sync_files, sync_folders_of
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.files.objects import object_store

GraphFormat = Literal["neo4j", "graphml", "gexf"]
GRAPH_FORMATS: tuple[GraphFormat, ...] = get_args(GraphFormat)
_BUFFER_BYTES = 1 << 20


class GraphWriter(ABC):
    """Writes the records of an export. Records of nodes precede those of edges."""

    def __init__(self, out: str, catalog: Catalog, types: Sequence[str] | None, environ: Mapping[str, str]) -> None:
        self.catalog = catalog
        chosen = chosen_types(catalog, types)
        self.nodes = [type_ for type_ in chosen if isinstance(type_, NodeType)]
        self.edges = [type_ for type_ in chosen if isinstance(type_, EdgeType)]
        self.rows: dict[str, int] = {type_.table_key: 0 for type_ in chosen}
        self._out = locate(out, environ)
        self._shown = out
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._files: list[tuple[str, IO[str]]] = []
        _check_ends(self.nodes, self.edges)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            target = self.target
            self._store = self.open_target(target)
            near = None if self._out.path is None else _existing(self._out.path.parent)
            try:
                self._folder = Path(
                    stack.enter_context(tempfile.TemporaryDirectory(prefix=".omnigraph-export-", dir=near))
                )
                self.begin()
            except OSError as error:
                raise self._unwritable(error) from None
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._stack:
            try:
                if kind is None:
                    self.finish()
                for _, file in self._files:
                    file.close()
                if kind is None:
                    self._place()
            except OSError as failure:
                raise self._unwritable(failure) from None

    def add(self, record: Mapping[str, Any]) -> None:
        """Write a record of `Graph.export`."""
        try:
            if "edge" in record:
                self.rows[f"edge:{record['edge']}"] += 1
                self.add_edge(record["edge"], record["from"], record["to"], record["data"])
            else:
                self.rows[f"node:{record['type']}"] += 1
                self.add_node(record["type"], record["data"])
        except OSError as error:
            raise self._unwritable(error) from None

    @property
    def types(self) -> list[NodeType | EdgeType]:
        """The types of the export; nodes come first."""
        return [*self.nodes, *self.edges]

    @property
    def row_count(self) -> int:
        """The number of records that were written."""
        return sum(self.rows.values())

    @property
    def location(self) -> Location:
        """The file or folder of the export."""
        return self._out

    @property
    @abstractmethod
    def target(self) -> Location:
        """The folder that the files are moved to."""

    @abstractmethod
    def open_target(self, target: Location) -> ObjectStore:
        """Open the folder of the files; raise `InputError` if it cannot take the export."""

    @abstractmethod
    def begin(self) -> None:
        """Open the files and write their heads."""

    @abstractmethod
    def add_node(self, type_name: str, data: Mapping[str, Any]) -> None:
        """Write a node."""

    @abstractmethod
    def add_edge(self, type_name: str, src: str, dst: str, data: Mapping[str, Any]) -> None:
        """Write an edge."""

    @abstractmethod
    def finish(self) -> None:
        """Write the ends of the files."""

    def open_file(self, name: str) -> IO[str]:
        """Create a file of the export."""
        assert self._folder is not None, "the writer is entered"
        file = (self._folder / name).open("w", encoding="utf-8", newline="\n", buffering=_BUFFER_BYTES)
        self._files.append((name, file))
        return file

    def _place(self) -> None:
        """Move the files to their place, in the order in which they were created."""
        assert self._folder is not None, "the writer is entered"
        folder = self.target.path
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        placed: list[str] = []
        try:
            for name, _ in self._files:
                if folder is not None:
                    sync_files([self._folder / name])
                    (self._folder / name).replace(folder / name)
                else:
                    self._store.write_file(name, self._folder / name)
                placed.append(name)
        except BaseException:
            self._store.delete_all(placed)
            raise
        if folder is not None:
            sync_folders_of(folder / name for name in placed)

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"'{self._shown}' cannot be written: {error.strerror}", code="unwritable_file")


class GraphFileWriter(GraphWriter):
    """Writes one file, which replaces an existing one."""

    @property
    def target(self) -> Location:
        """The folder of the file."""
        path = self._out.path
        if path is None:
            raise InputError(
                f"'{self._shown}' is not a file of this machine", hint="write a local file, and copy it to the bucket"
            )
        if path.is_dir():
            raise InputError(f"'{self._shown}' is a folder", code="unwritable_file", hint="name a file")
        return Location(str(path.parent), path.parent)

    def open_target(self, target: Location) -> ObjectStore:
        """Open the folder of the file."""
        return object_store(target)

    @property
    def file_name(self) -> str:
        """The name of the file."""
        assert self._out.path is not None, "`target` was checked"
        return self._out.path.name


class GraphFolderWriter(GraphWriter):
    """Writes a new folder."""

    @property
    def target(self) -> Location:
        """The folder itself."""
        return self._out

    def open_target(self, target: Location) -> ObjectStore:
        """Open the folder, which must be empty or absent."""
        files = object_store(target)
        if not files.is_empty():
            raise InputError(f"'{self._shown}' is not empty", code="not_empty", hint="export to a new folder")
        return files


def open_writer(
    format: GraphFormat, out: str, catalog: Catalog, types: Sequence[str] | None, environ: Mapping[str, str]
) -> GraphWriter:
    """Return the writer of a format; it writes within its `with` block."""
    from omnigraph.operations.formats.gexf_writer import GexfWriter  # noqa: PLC0415 (one of them is used)
    from omnigraph.operations.formats.graphml_writer import GraphmlWriter  # noqa: PLC0415
    from omnigraph.operations.formats.neo4j_writer import Neo4jWriter  # noqa: PLC0415

    writers: dict[GraphFormat, type[GraphWriter]] = {
        "neo4j": Neo4jWriter,
        "graphml": GraphmlWriter,
        "gexf": GexfWriter,
    }
    return writers[format](out, catalog, types, environ)


def _check_ends(nodes: Sequence[NodeType], edges: Sequence[EdgeType]) -> None:
    """Raise `InputError` if the nodes of an edge are not part of the export."""
    known = {type_.name for type_ in nodes}
    for edge in edges:
        for end in (edge.from_type, edge.to_type):
            if end not in known:
                raise InputError(
                    f"the edges '{edge.name}' are exported without their nodes '{end}'",
                    hint=f"export the type '{end}' as well; this format declares the nodes of its edges",
                )


def _existing(path: Path) -> Path:
    """Return the nearest folder above a path that exists, or the path itself."""
    return next((one for one in (path, *path.parents) if one.is_dir()), Path())
