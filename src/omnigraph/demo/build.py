"""Builds the demonstration: a folder with schema, queries, records, configuration, and a graph with a history."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.demo.records import NOTES, make_records
from omnigraph.errors import Conflict, InputError
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import MAIN

HERE = Path(__file__).parent
SCHEMA, QUERIES, DATA, GRAPH = "station.pg", "station.gq", "station.jsonl", "station.omni"
BRANCH = "review/spring"
CONTESTED = "harbour-watch"
"""The project that both branches change."""

CONFIG = """\
project:
  name: field-station

graphs:
  station:
    uri: {uri}

cli:
  graph: station
  branch: main

aliases:
  recall: {{ command: read, query: station.gq, name: recall, args: [question] }}
  colleagues: {{ command: read, query: station.gq, name: colleagues, args: [handle] }}
  circle: {{ command: read, query: station.gq, name: circle, args: [handle] }}
  busiest: {{ command: read, query: station.gq, name: busiest }}
  project: {{ command: read, query: station.gq, name: project, args: [code], format: kv }}

# Embeddings are computed locally from the words; to use a model, set its API key in this file.
auth:
  env_file: ./station.env
"""
ENVIRONMENT = "OMNIGRAPH_EMBED_PROVIDER=local\n"


@dataclass(frozen=True)
class Demo:
    """The result of a build."""

    folder: Path
    graph: Graph
    nodes: int
    edges: int


def write_files(folder: Path, *, notes: int = NOTES, uri: str | None = None) -> None:
    """Write schema, queries, records and configuration to an empty or new folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise Conflict(
                f"'{folder}' is not empty", code="folder_not_empty", hint="choose another folder, or remove it"
            )
        for name in (SCHEMA, QUERIES):
            (folder / name).write_bytes((HERE / name).read_bytes())
        with (folder / DATA).open("w", encoding="utf-8") as file:
            for record in make_records(notes=notes):
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        (folder / "omnigraph.yaml").write_text(CONFIG.format(uri=json.dumps(uri or f"./{GRAPH}")), encoding="utf-8")
        (folder / "station.env").write_text(ENVIRONMENT, encoding="utf-8")
    except OSError as error:
        raise InputError(f"'{folder}' cannot be written: {error.strerror}", code="unwritable_file") from None


def build_demo(
    folder: Path,
    *,
    notes: int = NOTES,
    uri: str | None = None,
    environ: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Demo:
    """Write the files and build the graph, in the folder or at `uri`; `progress` receives one line per step."""
    write_files(folder, notes=notes, uri=uri)
    environ = {**(os.environ if environ is None else environ), "OMNIGRAPH_EMBED_PROVIDER": "local"}
    progress("creating and loading the graph")
    graph = init(uri or folder / GRAPH, folder / SCHEMA, actor="maren-friis", environ=environ)
    loaded = graph.load(folder / DATA, mode="merge", message="the station's notes")
    progress("building indexes")
    graph.optimize()
    progress(f"creating branch {BRANCH} with a conflict")
    _branch(graph, folder / QUERIES)
    counts = {"node": 0, "edge": 0}
    for key, rows in loaded.tables:
        counts[TableKey.parse(key).kind] += rows
    return Demo(folder, graph, counts["node"], counts["edge"])


def _branch(graph: Graph, queries: Path) -> None:
    """Create a branch that is ahead of main, and change one row on both."""
    graph.branch_create(BRANCH)
    review = graph.on(BRANCH)
    project = {"handle": "ana-abt", "code": "ferry-timetable", "title": "Ferry timetable"}
    review.mutate(queries, "start", project, actor="ana-abt", message="a new project for the ferry")
    review.mutate(
        queries, "set_status", {"code": CONTESTED, "status": "done"}, actor="ana-abt", message="harbour: done"
    )
    review.mutate(queries, "leave", {"handle": "yuna-meents"}, actor="ana-abt", message="Yuna moves away")
    graph.mutate(
        queries,
        "set_status",
        {"code": CONTESTED, "status": "paused"},
        branch=MAIN,
        message="harbour: paused for the winter",
    )
