"""Fixtures of the tests: copies of graphs that are made once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import omnigraph as og
from note_graphs import make_graph, make_notes, open_graph


@pytest.fixture(scope="session")
def empty_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_graph(tmp_path_factory.mktemp("empty")).uri)


@pytest.fixture(scope="session")
def notes_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(make_notes(tmp_path_factory.mktemp("notes")).uri)


@pytest.fixture
def empty(empty_template: Path, tmp_path: Path) -> og.Graph:
    return open_graph(shutil.copytree(empty_template, tmp_path / "empty.omni"))


@pytest.fixture
def notes(notes_template: Path, tmp_path: Path) -> og.Graph:
    return open_graph(shutil.copytree(notes_template, tmp_path / "notes.omni"))
