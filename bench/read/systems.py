"""The systems: loading from the generated files, opening, and querying. Each runs in a separate process."""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from bench.formulations import Edge, Subject, read_text
from bench.read.graph import DIMENSIONS, Data
from bench.read.workloads import Rows, Workload

SCHEMA = f"""
node Person {{ key: String @key  age: I32  city: String }}
node Company {{ key: String @key  sector: String }}
node Post {{ key: String @key  text: String @index  likes: I32  vec: Vector({DIMENSIONS}) @index }}
edge Knows: Person -> Person {{ weight: F64 }}
edge WorksAt: Person -> Company
edge Wrote: Person -> Post
"""
SUBJECT = Subject(
    {"knows": Edge("Person", "Person"), "worksAt": Edge("Person", "Company"), "wrote": Edge("Person", "Post")}
)


class System(ABC):
    """A system that supports some of the workloads."""

    name: ClassVar[str]
    is_graph: ClassVar[bool] = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def fill(self, data: Data) -> None:
        """Load the graph into an empty folder."""

    @abstractmethod
    def open(self) -> None:
        """Open the loaded graph."""

    @abstractmethod
    def can(self, workload: Workload) -> bool:
        """True if the system supports the workload."""

    @abstractmethod
    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        """Run a workload and return its rows."""

    def version(self) -> str:
        """The version of the system."""
        return str(__import__(self.name).__version__)


class OmniGraph(System):
    """This project."""

    name = "omnigraph"
    is_graph = True

    def fill(self, data: Data) -> None:
        import omnigraph as og  # noqa: PLC0415 (each system is imported in its own process)
        from omnigraph.storage.lance.staging import TableWrite  # noqa: PLC0415

        try:
            from omnigraph.versioning.write.write import write  # noqa: PLC0415
        except ImportError:  # an earlier commit of this project
            from omnigraph.versioning.write.transaction import write  # type: ignore  # noqa: PLC0415

        graph = og.init(self.folder / "graph", SCHEMA, sync=False)
        rows: dict[str, pa.Table] = {}
        for key, names in (("Person", ["key", "age", "city"]), ("Company", ["key", "sector"])):
            nodes = data.read(key.lower())
            rows[f"node:{key}"] = nodes.select(names).add_column(0, "id", nodes["key"])
        posts = data.read("post")
        rows["node:Post"] = posts.select(["key", "text", "likes", "vec"]).add_column(0, "id", posts["key"])
        for key, name in (("Knows", "knows"), ("WorksAt", "works"), ("Wrote", "wrote")):
            edges = data.read(name)
            ids = pa.array([f"{name}{number}" for number in range(edges.num_rows)])
            columns = {"id": ids, "src": edges["from"], "dst": edges["to"]}
            rows[f"edge:{key}"] = pa.table(columns | ({"weight": edges["weight"]} if key == "Knows" else {}))

        def change(transaction: Any) -> None:
            for key, table in rows.items():
                transaction.change(key, TableWrite(append=table))

        write(graph._repository, change)
        graph.ensure_indices()

    def open(self) -> None:
        import omnigraph as og  # noqa: PLC0415

        self.graph = og.open(self.folder / "graph")
        self._texts: dict[str, str] = {}

    def can(self, workload: Workload) -> bool:  # noqa: ARG002
        return True

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        text = self._texts.get(workload.name)
        if text is None:
            text = self._texts[workload.name] = read_text(workload.clauses, workload.rest, params)
        return self.graph.query(text, params=params).to_pylist()


class Sqlite(System):
    """SQLite of the Python standard library, with integer node ids and an index for each direction."""

    name = "sqlite"

    def fill(self, data: Data) -> None:
        db = sqlite3.connect(self.folder / "db")
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("CREATE TABLE person (number INTEGER PRIMARY KEY, key TEXT, age INTEGER, city TEXT)")
        db.execute("CREATE TABLE knows (src INTEGER, dst INTEGER, weight REAL, PRIMARY KEY (src, dst)) WITHOUT ROWID")
        db.execute("CREATE VIRTUAL TABLE post_text USING fts5(text, content='', tokenize='porter unicode61')")
        people, knows, posts = (
            data.read("person"),
            data.read("knows").sort_by([("src", "ascending"), ("dst", "ascending")]),
            data.read("post"),
        )
        db.executemany("INSERT INTO person VALUES (?, ?, ?, ?)", _tuples(people, "number", "key", "age", "city"))
        db.executemany("INSERT INTO knows VALUES (?, ?, ?)", _tuples(knows, "src", "dst", "weight"))
        db.execute("CREATE TABLE company (number INTEGER PRIMARY KEY, key TEXT, sector TEXT)")
        db.execute("CREATE TABLE works (src INTEGER, dst INTEGER, PRIMARY KEY (src, dst)) WITHOUT ROWID")
        company, works = data.read("company"), data.read("works")
        db.executemany("INSERT INTO company VALUES (?, ?, ?)", _tuples(company, "number", "key", "sector"))
        db.executemany("INSERT INTO works VALUES (?, ?)", _tuples(works, "src", "dst"))
        db.executemany("INSERT INTO post_text (rowid, text) VALUES (?, ?)", _tuples(posts, "number", "text"))
        db.executescript(
            "CREATE UNIQUE INDEX by_key ON person (key); CREATE INDEX by_city ON person (city, age, key);"
            "CREATE INDEX back ON knows (dst, src); CREATE UNIQUE INDEX company_key ON company (key);"
            "CREATE INDEX staff ON works (dst, src); ANALYZE;"
        )
        db.commit()
        db.close()

    def open(self) -> None:
        self.db = sqlite3.connect(self.folder / "db")
        self.db.execute("PRAGMA cache_size = -1000000")
        self.db.execute("PRAGMA mmap_size = 4000000000")

    def can(self, workload: Workload) -> bool:
        return workload.sqlite is not None

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        assert workload.sqlite is not None
        return self.db.execute(workload.sqlite, tuple(params.values())).fetchall()

    def version(self) -> str:
        return sqlite3.sqlite_version


class DuckDb(System):
    """DuckDB."""

    name = "duckdb"

    def fill(self, data: Data) -> None:
        db = self._connect()
        db.execute(f"CREATE TABLE person AS SELECT number, key, age, city FROM '{data.path('person')}'")
        db.execute(f"CREATE TABLE knows AS SELECT src, dst, weight FROM '{data.path('knows')}' ORDER BY src, dst")
        db.execute(f"CREATE TABLE company AS SELECT number, key, sector FROM '{data.path('company')}'")
        db.execute(f"CREATE TABLE works AS SELECT src, dst FROM '{data.path('works')}' ORDER BY src")
        db.execute(
            f"CREATE TABLE post AS SELECT number, key, text, likes, vec::FLOAT[{DIMENSIONS}] AS vec "
            f"FROM '{data.path('post')}'"
        )
        db.execute("CREATE UNIQUE INDEX by_key ON person (key)")
        db.close()

    def open(self) -> None:
        self.db = self._connect()

    def can(self, workload: Workload) -> bool:
        return workload.duckdb is not None

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        assert workload.duckdb is not None
        return self.db.execute(workload.duckdb, list(params.values())).fetchall()

    def _connect(self) -> Any:
        import duckdb  # noqa: PLC0415

        db = duckdb.connect(str(self.folder / "db"), config={"memory_limit": "6GB"})
        db.execute("SET enable_progress_bar = false")
        return db


class Ladybug(System):
    """Ladybug, the successor of Kuzu with the same interface. Its search extensions are not part of the wheel."""

    name = "ladybug"
    is_graph = True
    extensions: ClassVar[tuple[str, ...]] = ()
    search_indexes: ClassVar[tuple[str, ...]] = ()

    def fill(self, data: Data) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415

        self._connect()
        for statement in (
            "CREATE NODE TABLE Person (number INT64, key STRING, age INT32, city STRING, PRIMARY KEY (key))",
            "CREATE NODE TABLE Company (number INT64, key STRING, sector STRING, PRIMARY KEY (key))",
            "CREATE NODE TABLE Post (number INT64, key STRING, text STRING, likes INT32, "
            f"vec FLOAT[{DIMENSIONS}], PRIMARY KEY (key))",
            "CREATE REL TABLE Knows (FROM Person TO Person, weight DOUBLE)",
            "CREATE REL TABLE WorksAt (FROM Person TO Company)",
            "CREATE REL TABLE Wrote (FROM Person TO Post)",
            *(f"COPY {name} FROM '{data.path(name.lower())}'" for name in ("Person", "Company", "Post")),
        ):
            self.db.execute(statement)
        for name, table in (("Knows", "knows"), ("WorksAt", "works"), ("Wrote", "wrote")):
            edges = self.folder / f"{table}.parquet"
            pq.write_table(data.read(table).drop_columns(["src", "dst"]), edges)
            self.db.execute(f"COPY {name} FROM '{edges}'")
            edges.unlink()
        for statement in self.search_indexes:
            self.db.execute(statement)

    def open(self) -> None:
        self._connect()

    def _connect(self) -> None:
        module = __import__(self.name)
        self.prepared: dict[str, Any] = {}
        self._database = module.Database(str(self.folder / "db"), buffer_pool_size=6 * 1024**3)
        self.db = module.Connection(self._database, num_threads=2)
        for extension in self.extensions:
            self.db.execute(f"LOAD EXTENSION {extension}")

    def can(self, workload: Workload) -> bool:
        return workload.cypher is not None

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        assert workload.cypher is not None
        return self.rows(workload.cypher, params)

    def rows(self, text: str, params: dict[str, Any]) -> Rows:
        """The rows of a statement, which is prepared once."""
        statement = self.prepared.get(text)
        if statement is None:
            statement = self.prepared[text] = self.db.prepare(text)
        return list(self.db.execute(statement, params).get_all())


class Kuzu(Ladybug):
    """Kuzu with its indexes for vectors and texts."""

    name = "kuzu"
    extensions = ("VECTOR", "FTS")
    search_indexes = (
        "CALL CREATE_VECTOR_INDEX('Post', 'near', 'vec', metric := 'cosine')",
        "CALL CREATE_FTS_INDEX('Post', 'words', ['text'])",
    )

    def can(self, workload: Workload) -> bool:
        return workload.kuzu is not None or super().can(workload)

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        return super().ask(workload, params) if workload.kuzu is None else workload.kuzu(self, params)


class LanceDb(System):
    """LanceDB with the indexes its documentation recommends."""

    name = "lancedb"

    def fill(self, data: Data) -> None:
        db = self._connect()
        person = db.create_table("person", data.read("person"))
        person.create_scalar_index("key")
        person.create_scalar_index("city", index_type="BITMAP")
        post = db.create_table("post", data.read("post"))
        post.create_fts_index("text", stem=True, remove_stop_words=True)
        if data.size.posts >= 20_000:
            post.create_index(metric="cosine", vector_column_name="vec", index_type="IVF_FLAT", num_partitions=48)
        post.create_scalar_index("likes")
        wrote = db.create_table("wrote", data.read("wrote").select(["from", "to"]))
        wrote.create_scalar_index("to")

    def open(self) -> None:
        db = self._connect()
        self.person, self.post, self.wrote = (db.open_table(name) for name in ("person", "post", "wrote"))

    def can(self, workload: Workload) -> bool:
        return workload.lancedb is not None

    def ask(self, workload: Workload, params: dict[str, Any]) -> Rows:
        assert workload.lancedb is not None
        return workload.lancedb(self, params)

    def _connect(self) -> Any:
        os.environ.setdefault("LANCEDB_LOG", "error")  # its hybrid search emits a warning at every query
        import lancedb  # noqa: PLC0415

        return lancedb.connect(str(self.folder / "db"))


SYSTEMS: dict[str, type[System]] = {s.name: s for s in (OmniGraph, Sqlite, DuckDb, Kuzu, Ladybug, LanceDb)}


def _tuples(table: pa.Table, *names: str) -> Any:
    return zip(
        *(
            table[name].to_numpy().tolist() if table[name].type != pa.utf8() else table[name].to_pylist()
            for name in names
        ),
        strict=True,
    )


def normal(rows: Rows, *, ordered: bool) -> Rows:
    """A result in a form comparable between systems."""
    tuples = (row.values() if isinstance(row, dict) else row for row in rows)
    plain = [tuple(_plain(value) for value in row) for row in tuples]
    return plain if ordered else sorted(plain, key=repr)


def _plain(value: Any) -> Any:
    if isinstance(value, float | np.floating):
        return float(f"{float(value):.9g}")
    return int(value) if isinstance(value, np.integer) else value
