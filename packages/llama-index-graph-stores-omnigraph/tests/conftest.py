"""Fixtures of the tests: copies of graphs that are made once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from llama_index.graph_stores.omnigraph import OmniGraphPropertyGraphStore

import omnigraph as og

ENVIRON = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}

STRICT = """
node Person {
    name: String @key
    born: I64?
    tags: [String]?
    embedding: Vector(4)?
}

node Company {
    name: String @key
    city: String?
}

edge WorksAt: Person -> Company {
    since: I64?
    @unique(src, dst)
}

edge Knows: Person -> Person {
    @unique(src, dst)
}
"""


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("templates")
    og.init(folder / "strict.omni", STRICT, sync=False, environ=ENVIRON)
    og.init(folder / "empty.omni", "// Grown by LlamaIndex.\n", sync=False, environ=ENVIRON)
    return folder


def copy_graph(template: Path, folder: Path) -> og.Graph:
    return og.open(shutil.copytree(template, folder / template.name), sync=False, environ=ENVIRON)


@pytest.fixture
def strict_graph(templates: Path, tmp_path: Path) -> og.Graph:
    return copy_graph(templates / "strict.omni", tmp_path)


@pytest.fixture
def empty_graph(templates: Path, tmp_path: Path) -> og.Graph:
    return copy_graph(templates / "empty.omni", tmp_path)


@pytest.fixture
def strict(strict_graph: og.Graph) -> OmniGraphPropertyGraphStore:
    return OmniGraphPropertyGraphStore(strict_graph)


@pytest.fixture
def grown(empty_graph: og.Graph) -> OmniGraphPropertyGraphStore:
    return OmniGraphPropertyGraphStore(empty_graph, schema="grow")
