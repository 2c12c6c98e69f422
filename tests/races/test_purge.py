"""Writers beside a purge: none brings the purged row back, and no other write is lost."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.operations.purge.purge_rows import purge_request
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.garbage import referenced_files
from omnigraph.storage.manifest import manifest_table
from omnigraph.versioning.purge import sweep
from omnigraph.versioning.purge.plan import PurgePlan
from omnigraph.versioning.purge.purge import _freeze, begin
from omnigraph.versioning.write import repository as repositories
from support.store import repository_of

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\n\nedge Knows: Person -> Person\n"
SUBJECT = "the-purged-subject"
WRITES = 12


def person(name: str, age: int = 0) -> dict:
    return {"type": "Person", "data": {"name": name, "age": age}}


def seeded(root: Path) -> og.Graph:
    graph = og.init(root, SCHEMA, sync=False)
    graph.load([person(SUBJECT), person("other")], mode="append")
    graph.load([{"edge": "Knows", "from": SUBJECT, "to": "other", "data": {}}], mode="append")
    return graph


class Writer(threading.Thread):
    """Writes rows of its own and the subject in turn, on its own handle."""

    def __init__(self, root: Path, number: int) -> None:
        super().__init__(daemon=True)
        self.graph = og.open(root, sync=False)
        self.number = number
        self.wrote: list[str] = []
        self.refused = 0
        self.failed: list[BaseException] = []

    def run(self) -> None:
        for step in range(WRITES):
            name = f"w{self.number}-{step}"
            self.write(name)
            self.write(SUBJECT)

    def write(self, name: str) -> None:
        try:
            self.graph.mutate(f'query q() {{ upsert Person {{ name: "{name}", age: {self.number} }} }}')
            self.wrote.append(name)
        except OmniGraphError as error:
            if error.code == "purged_id" and name == SUBJECT:
                self.refused += 1
            else:
                self.failed.append(error)


def test_writers_beside_a_purge(tmp_path):
    root = tmp_path / "graph"
    graph = seeded(root)
    writers = [Writer(root, number) for number in range(2)]
    for writer in writers:
        writer.start()
    certificate = graph.purge("Person", [SUBJECT], edges=True, reason="test")
    for writer in writers:
        writer.join(120)
        assert not writer.is_alive()
        assert writer.failed == []
    assert certificate.rows["node:Person"] == 1
    again = og.open(root)
    names = set(again.to_arrow("Person")["name"].to_pylist())
    assert names == {"other", *(name for writer in writers for name in writer.wrote if name != SUBJECT)}
    for commit in again.commits():
        assert SUBJECT not in again.to_arrow("Person", at=commit.id)["name"].to_pylist()
    assert again.verify(deep=True) == []
    found = again.purge_verify([SUBJECT])
    assert found.findings == ()


def test_a_write_prepared_before_the_switch_starts_over(tmp_path, monkeypatch):
    """The base version of the write vanishes between its staging and its publish."""
    monkeypatch.setattr(sweep, "_WRITERS_S", 0.05)
    root = tmp_path / "graph"
    graph = seeded(root)
    writer = og.open(root, sync=False)
    switched: list[bool] = []

    def purge() -> None:
        if not switched:
            switched.append(True)
            graph.purge("Person", [SUBJECT], edges=True, reason="test")

    def run() -> None:
        with arm("publish.before_commit", once_in(threading.get_ident(), purge)):
            writer.load([person("late", 7), person("other", 8)], mode="merge")

    run()
    again = og.open(root)
    assert {row["name"]: row["age"] for row in again.to_arrow("Person").to_pylist()} == {"late": 7, "other": 8}
    assert again.purge_verify([SUBJECT]).is_clean
    assert again.verify(deep=True) == []


def once_in(thread: int, action):
    """Return an action that a thread runs once, not within itself."""
    ran: list[bool] = []

    def act() -> None:
        if threading.get_ident() == thread and not ran:
            ran.append(True)
            action()

    return act


def test_open_handles_read_the_new_history(tmp_path):
    root = tmp_path / "graph"
    graph = seeded(root)
    reader = og.open(root, read_only=True)
    old = reader.commits()[0].id
    assert reader.get("Person", SUBJECT, at=old) is not None
    graph.purge("Person", [SUBJECT], edges=True, reason="test")
    assert reader.get("Person", SUBJECT, at=old) is None
    assert reader.get("Person", SUBJECT) is None
    assert reader.query("match { $p: Person } return { $p.name }").to_rows() == [{"p.name": "other"}]


def test_a_dead_freeze_does_not_stop_writers(tmp_path, monkeypatch):
    """A purge that died while it asked others to wait is ignored after a while."""
    monkeypatch.setattr(repositories, "_FREEZE_S", 0.05)
    graph = seeded(tmp_path / "graph")
    context = graph._context
    request = purge_request(context, "Person", [SUBJECT], edges=True, reason="test", actor=None)
    record = begin(repository_of(graph), request)
    _freeze(repository_of(graph), record)
    assert repository_of(graph).state().is_frozen
    graph.load([person("next")], mode="append")
    assert not repository_of(graph).state().is_frozen
    graph.purge_resume()
    assert graph.purge_verify([SUBJECT]).is_clean


def test_a_purge_does_not_end_while_a_replaced_file_is_used(tmp_path):
    graph = seeded(tmp_path / "graph")
    repository = repository_of(graph)
    folder = next(table.folder for table in repository.state().tables.values() if table.folder.startswith("nodes/"))
    used = next(name for name in sorted(referenced_files(repository.tables, folder)) if name.startswith("data/"))
    sweep._check_replaced(repository, folder, PurgePlan(replaced={folder: {"data/gone.lance": None}}))
    with pytest.raises(OmniGraphError, match=used) as raised:
        sweep._check_replaced(repository, folder, PurgePlan(replaced={folder: {used: None}}))
    assert raised.value.code == "purge_incomplete"


def test_checkpoint_in_the_publish_of_the_switch_has_the_new_pins(tmp_path, monkeypatch):
    """The record of a long history is so large that the publish itself writes a checkpoint."""
    graph = seeded(tmp_path / "graph")
    graph.branch_create("draft")
    monkeypatch.setattr(manifest_table, "_CHECKPOINT_BYTES", 1)
    graph.purge("Person", [SUBJECT], edges=True, reason="test")
    for handle in (graph, og.open(tmp_path / "graph")):
        assert handle.get("Person", SUBJECT) is None
        assert handle.get("Person", SUBJECT, branch="draft") is None
        assert handle.purge_verify([SUBJECT]).is_clean
        assert handle.verify(deep=True) == []


def test_pins_of_an_earlier_state_are_not_those_of_the_new_history(tmp_path):
    """A thread that still reads the state before the purge does not pass its pins on to the next checkpoint."""
    graph = seeded(tmp_path / "graph")
    before = repository_of(graph).state()
    old: list[object] = []
    with arm("purge.switched", lambda: old.extend(before.heads()[0].pins)):
        graph.purge("Person", [SUBJECT], edges=True, reason="test")
    again = og.open(tmp_path / "graph")
    assert old
    assert not {*old} & {*repository_of(again).state().heads()[0].pins}
    assert again.get("Person", SUBJECT) is None
    assert again.purge_verify([SUBJECT]).is_clean
    assert again.verify(deep=True) == []
