"""The systems that answer the workload. Each runs in a process of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import omnigraph as og
from bench.snb import oracle
from bench.snb.generate import Data
from bench.snb.updates import Update, apply, apply_to_oracle
from bench.snb.workload import SCHEMA, Params, Query
from omnigraph.config_keys import parse_memory

MEMORY = "6GiB"
"""The memory of each system."""
THREADS = 2


def load(data: Data, folder: Path, memory: str = MEMORY) -> og.Graph:
    """A new graph with all rows, as one commit. The files are read in parts: a large network exceeds the memory."""
    graph = og.init(folder, SCHEMA, sync=False, memory=memory)
    graph.load({name: str(data.path(name)) for name in data.names}, mode="append", engine="memory")
    return graph


class System(ABC):
    """A system with the network in a folder."""

    name: ClassVar[str]

    def __init__(self, folder: Path, memory: str = MEMORY) -> None:
        self.folder = folder
        self.memory = memory

    @abstractmethod
    def fill(self, data: Data) -> None:
        """Load the network into the empty folder."""

    @abstractmethod
    def open(self) -> None:
        """Open the loaded network."""

    @abstractmethod
    def can(self, query: Query) -> bool:
        """True if there is a statement for the system."""

    @abstractmethod
    def ask(self, query: Query, params: Params) -> list[Any]:
        """Run a query and return its rows."""

    def change(self, update: Update) -> None:
        """Make an insert or a delete, durably."""
        raise NotImplementedError(f"{self.name} has no statements for {update.name}")

    def version(self) -> str:
        """The version of the system."""
        return str(__import__(self.name).__version__)


class OmniGraph(System):
    """This project."""

    name = "omnigraph"

    def fill(self, data: Data) -> None:
        load(data, self.folder / "graph", self.memory).optimize()

    def open(self) -> None:
        self.graph = og.open(self.folder / "graph", memory=self.memory)

    def can(self, query: Query) -> bool:
        return bool(query.ours)

    def ask(self, query: Query, params: Params) -> list[Any]:
        return self.graph.query(query.ours, params).to_pylist()

    def change(self, update: Update) -> None:
        apply(self.graph, update)


class DuckDb(System):
    """DuckDB: the tables of the oracle."""

    name = "duckdb"

    def fill(self, data: Data) -> None:
        self.open()
        oracle.fill(self.db, data)
        self.db.close()

    def open(self) -> None:
        import duckdb  # noqa: PLC0415 (each system is imported in its own process)

        config: dict[str, Any] = {"memory_limit": self.memory, "threads": THREADS}
        self.db = duckdb.connect(str(self.folder / "db"), config=config)
        self.db.execute("SET enable_progress_bar = false")

    def can(self, query: Query) -> bool:
        return bool(query.sql)

    def ask(self, query: Query, params: Params) -> list[Any]:
        return list(self.db.execute(query.sql, params).fetchall())

    def change(self, update: Update) -> None:
        self.db.begin()
        apply_to_oracle(self.db, update)
        self.db.commit()


class Ladybug(System):
    """Ladybug: posts and comments are one node table, so that every edge has one relationship table."""

    name = "ladybug"

    def fill(self, data: Data) -> None:
        import duckdb  # noqa: PLC0415

        self.open()
        config: dict[str, Any] = {"memory_limit": self.memory, "temp_directory": str(self.folder / "spilled")}
        source = duckdb.connect(config=config)
        source.execute("SET enable_progress_bar = false")
        oracle.fill(source, data)
        for definition, select in TABLES.items():
            kind, name = definition.split(" ", 1)[0], definition.split(" ", 1)[1].partition("(")[0]
            file = self.folder / f"{name}.parquet"
            source.execute(f"COPY ({select}) TO '{file}'")
            self.db.execute(f"CREATE {kind} TABLE {definition.split(' ', 1)[1]}")
            self.db.execute(f"COPY {name} FROM '{file}'")
            file.unlink()

    def open(self) -> None:
        import ladybug  # noqa: PLC0415

        self._database = ladybug.Database(str(self.folder / "db"), buffer_pool_size=parse_memory(self.memory))
        self.db = ladybug.Connection(self._database, num_threads=THREADS)
        self._prepared: dict[str, Any] = {}

    def can(self, query: Query) -> bool:
        return query.cypher is not None

    def ask(self, query: Query, params: Params) -> list[Any]:
        assert query.cypher is not None
        statement = self._prepared.get(query.name)
        if statement is None:
            statement = self._prepared[query.name] = self.db.prepare(query.cypher)
        result: Any = self.db.execute(statement, params)
        return list(result.get_all())


_MESSAGE = "creationDate TIMESTAMP, locationIP STRING, browserUsed STRING, content STRING, imageFile STRING, "
TABLES = {
    "NODE Place(number INT64, name STRING, kind STRING, PRIMARY KEY (number))": "SELECT number, name, kind FROM place",
    "NODE TagClass(number INT64, name STRING, PRIMARY KEY (number))": "SELECT number, name FROM tagclass",
    "NODE Tag(number INT64, name STRING, PRIMARY KEY (number))": "SELECT number, name FROM tag",
    "NODE Organisation(number INT64, name STRING, kind STRING, PRIMARY KEY (number))": "SELECT number, name, kind "
    "FROM organisation",
    "NODE Person(number INT64, firstName STRING, lastName STRING, gender STRING, birthday DATE, "
    "creationDate TIMESTAMP, locationIP STRING, browserUsed STRING, speaks STRING[], email STRING[], "
    "PRIMARY KEY (number))": "SELECT number, firstName, lastName, gender, birthday, creationDate::TIMESTAMP, "
    "locationIP, browserUsed, speaks, email FROM person",
    "NODE Forum(number INT64, title STRING, creationDate TIMESTAMP, PRIMARY KEY (number))": "SELECT number, title, "
    "creationDate::TIMESTAMP FROM forum",
    f"NODE Message(number INT64, {_MESSAGE}language STRING, length INT32, isPost BOOLEAN, PRIMARY KEY (number))": ""
    "SELECT number, creationDate::TIMESTAMP, locationIP, browserUsed, content, imageFile, language, length, is_post "
    "FROM message ORDER BY number",
    "REL IsPartOf(FROM Place TO Place)": "SELECT number, part_of FROM place WHERE part_of IS NOT NULL",
    "REL HasType(FROM Tag TO TagClass)": "SELECT number, class FROM tag",
    "REL IsSubclassOf(FROM TagClass TO TagClass)": "SELECT number, subclass_of FROM tagclass "
    "WHERE subclass_of IS NOT NULL",
    "REL OrganisationIsLocatedIn(FROM Organisation TO Place)": "SELECT number, place FROM organisation",
    "REL PersonIsLocatedIn(FROM Person TO Place)": "SELECT number, city FROM person",
    "REL Knows(FROM Person TO Person, creationDate TIMESTAMP)": "SELECT a, b, creationDate::TIMESTAMP FROM knows "
    "WHERE a < b",
    "REL HasInterest(FROM Person TO Tag)": "SELECT person, tag FROM interest",
    "REL StudyAt(FROM Person TO Organisation, classYear INT32)": "SELECT person, organisation, classYear FROM study",
    "REL WorkAt(FROM Person TO Organisation, workFrom INT32)": "SELECT person, organisation, workFrom FROM work",
    "REL HasModerator(FROM Forum TO Person)": "SELECT number, moderator FROM forum",
    "REL HasMember(FROM Forum TO Person, joinDate TIMESTAMP)": "SELECT forum, person, joinDate::TIMESTAMP FROM member",
    "REL ContainerOf(FROM Forum TO Message)": "SELECT forum, number FROM message",
    "REL HasCreator(FROM Message TO Person)": "SELECT number, creator FROM message",
    "REL HasTag(FROM Message TO Tag)": "SELECT message, tag FROM message_tag",
    "REL MessageIsLocatedIn(FROM Message TO Place)": "SELECT number, place FROM message",
    "REL ReplyOf(FROM Message TO Message)": "SELECT number, reply_of FROM message WHERE reply_of IS NOT NULL",
    "REL RootPost(FROM Message TO Message)": "SELECT number, root FROM message",
    "REL Likes(FROM Person TO Message, creationDate TIMESTAMP)": "SELECT person, message, creationDate::TIMESTAMP "
    "FROM likes",
}
"""Statements of Ladybug's schema, and the rows of each table."""

SYSTEMS: dict[str, type[System]] = {system.name: system for system in (OmniGraph, DuckDb, Ladybug)}
