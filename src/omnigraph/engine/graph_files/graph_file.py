"""Files with nodes and edges of several types: their formats, and their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.engine.graph_files.graphml_rows import elements, read_graphml
from omnigraph.engine.graph_files.neo4j_files import group_files, is_neo4j_file, read_header
from omnigraph.engine.graph_files.neo4j_rows import read_neo4j
from omnigraph.engine.ingest.records import Faults, Records
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.files.input_files import DataFile, FileGroup
from omnigraph.table_format import GraphFileFormat


def is_graphml_name(name: str) -> bool:
    """Return True if the name of a file says that it is GraphML."""
    return name.lower().removesuffix(".gz").endswith(".graphml")


def is_graph_file_name(name: str, format: GraphFileFormat) -> bool:
    """Return True if a file of a folder can be a file of a format."""
    if format == "neo4j":
        return is_neo4j_file(name)
    return is_graphml_name(name) or name.lower().removesuffix(".gz").endswith(".xml")


def graph_format_of(file: DataFile) -> GraphFileFormat | None:
    """Return the format of a file with several types; None for a file of another kind."""
    if file.format.graph_format is not None:
        return file.format.graph_format
    return "graphml" if is_graphml_name(file.base) else None


def group_graph_files(files: Sequence[DataFile]) -> list[DataFile]:
    """Return the files of an input; each file with several types has the files that it is read with."""
    if files and files[0].format.graph_format == "neo4j":
        return group_files(files)
    return [
        replace(file, group=FileGroup(nodes=(file,))) if graph_format_of(file) == "graphml" else file for file in files
    ]


def read_graph_file(file: DataFile, catalog: Catalog, faults: Faults) -> Iterator[tuple[str, Records]]:
    """Yield (table key, records) of a file with several types in batches."""
    read = read_neo4j if graph_format_of(file) == "neo4j" else read_graphml
    return read(file, catalog, faults)


def graph_file_columns(file: DataFile) -> list[str]:
    """Return the names of the values in a file with several types."""
    if graph_format_of(file) == "neo4j":
        return [column.name for column in read_header(file).columns if column.name]
    first = next(elements(file), None)
    return [] if first is None else [key.name for key in first[0].keys.values()]
