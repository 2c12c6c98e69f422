"""`SchemaDraft`: the text of an inferred schema, with the tables it was inferred from and how they are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.engine.ingest.table_columns import normalized_name
from omnigraph.schema.catalog import Catalog
from omnigraph.table_format import PLAIN, TableFormat


@dataclass(frozen=True)
class DraftTable:
    """A table that is loaded as rows of one type; one table can be loaded for several types."""

    name: str
    """The name that the caller gave the table."""
    type_name: str
    columns: Mapping[str, str | None]
    """Column → property, `from` or `to`; None leaves the column out."""
    data: Any = field(repr=False, compare=False, default=None)

    def adapted(self, catalog: Catalog) -> dict[str, str | None] | None:
        """Return the columns for a schema that was edited; None if it has no such type.

        A column whose property is gone is matched by its own name, or left out.
        """
        type_ = catalog.nodes.get(self.type_name) or catalog.edges.get(self.type_name)
        if type_ is None:
            return None
        known = {"from", "to", *type_.properties}
        by_name = {normalized_name(name): name for name in type_.properties}
        mapped = {column: name for column, name in self.columns.items() if name is None or name in known}
        taken = set(mapped.values())
        for column in self.columns:
            name = by_name.get(normalized_name(column))
            if column not in mapped:
                mapped[column] = None if name in taken else name
        return {column: mapped[column] for column in self.columns}


class SchemaDraft(str):
    """The text of an inferred schema, with the reasons as comments; `tables` says how its tables are loaded."""

    tables: tuple[DraftTable, ...]
    table_format: TableFormat
    graph_files: tuple[str, ...]
    """The files with nodes and edges of several types; empty if every table is of one type."""

    def __new__(
        cls,
        text: str,
        tables: tuple[DraftTable, ...] = (),
        format: TableFormat = PLAIN,
        graph_files: tuple[str, ...] = (),
    ) -> SchemaDraft:
        """Create a draft."""
        made = super().__new__(cls, text)
        made.tables = tables
        made.table_format = format
        made.graph_files = graph_files
        return made
