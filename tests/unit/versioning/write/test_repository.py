"""An open graph: created atomically, refused if its format is unknown, readable at any point of its history."""

from __future__ import annotations

import shutil
import tracemalloc
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import lance
import pytest

import omnigraph as og
from omnigraph.errors import (
    BranchNotFound,
    CommitNotFound,
    Damaged,
    GraphExists,
    GraphNotFound,
    IncompatibleFormat,
    InputError,
    OmniGraphError,
    TypeNotFound,
    hint_for,
)
from omnigraph.storage.failpoints import VARIABLE, arm
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest.checkpoint import CheckpointTable
from omnigraph.storage.manifest.manifest_schema import STAMP_KEY
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.version import STORAGE_FORMAT_NEWEST
from omnigraph.versioning.model.manifest_objects import Commit, Commits, GraphSpec, TableSpec
from omnigraph.versioning.model.manifest_rows import head_to_row
from omnigraph.versioning.upkeep.maintenance import cleanup, optimize
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository
from support.graphs import (
    KNOWS,
    PERSON,
    PERSON_SCHEMA,
    SCHEMA,
    SPECS,
    Ticks,
    add_people,
    change,
    files_below,
    ids_of,
    knows,
    new_repository,
    open_repository,
    people,
)
from support.manifests import rewrite_rows


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


def moment(commit):
    return commit.created_at


# -- creating ------------------------------------------------------------------------------------------


def test_a_new_graph(root):
    clock = Ticks()
    repository = Repository.create(root, GraphSpec(SCHEMA, SPECS), clock=clock, actor="ada", sync=False, environ={})
    (commit,) = repository.commits()
    assert (commit.parent_id, commit.actor, commit.kind, commit.manifest_version) == (None, "ada", "init", 1)
    snapshot = repository.snapshot()
    assert (snapshot.branch, snapshot.commit_id, snapshot.version) == ("main", commit.id, 1)
    assert snapshot.schema == SCHEMA
    assert snapshot.commit == commit
    assert {key: (table.pin.table_version, table.pin.row_count) for key, table in snapshot.tables.items()} == {
        KNOWS: (1, 0),
        PERSON: (1, 0),
    }
    assert repository.branches() == ["main"]
    assert verify(repository) == []


def test_the_folder_of_a_new_graph(root):
    new_repository(root)
    top = sorted(path.name for path in root.iterdir())
    assert [name for name in top if name != "__publish_lock"] == ["__log", "__manifest", "_schema.pg", "edges", "nodes"]
    assert (root / "_schema.pg").read_text() == SCHEMA.source
    assert [path.name for path in (root / "nodes").iterdir()] == ["40d76f1f51639ec0"]
    assert [path.name for path in (root / "edges").iterdir()] == ["602a25a3bd0b455b"]


def test_a_location_with_a_graph_is_refused(root):
    new_repository(root)
    before = files_below(root)
    with pytest.raises(GraphExists) as caught:
        new_repository(root)
    assert str(root) in caught.value.message
    assert files_below(root) == before


def test_a_graph_can_be_created_in_a_folder_with_other_files(root):
    root.mkdir()
    (root / "notes.txt").write_text("mine")
    new_repository(root)
    assert (root / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("place", ["init.claimed", "init.tables_created", "init.before_manifest"])
def test_a_failed_creation_leaves_no_graph_and_does_not_block_the_next(root, place):
    with pytest.raises(OmniGraphError), arm(place):
        new_repository(root)
    with pytest.raises(GraphNotFound):
        open_repository(root)
    repository = new_repository(root)
    add_people(repository, "a")
    assert ids_of(open_repository(root).snapshot()) == ["a"]
    assert not (root / "__init_claim.json").exists()
    assert verify(repository) == []


def test_a_creation_that_fails_after_the_manifest_has_created_the_graph(root):
    with pytest.raises(OmniGraphError), arm("init.after_manifest"):
        new_repository(root)
    repository = open_repository(root)
    assert verify(repository) == []
    with pytest.raises(GraphExists):
        new_repository(root)


def test_exactly_one_of_two_creators_wins(root):
    def second():
        rival = Repository.create(root, GraphSpec(SCHEMA, SPECS[:1]), sync=False, environ={})
        add_people(rival, "rival")

    with pytest.raises(GraphExists), arm("init.before_manifest", once(second)):
        new_repository(root)
    repository = open_repository(root)
    assert ids_of(repository.snapshot()) == ["rival"]
    assert verify(repository) == []


def once(action):
    """Run the action the first time only."""
    left = [action]

    def run():
        if left:
            left.pop()()

    return run


# -- opening and refusing ------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [None, "folder", "file in it", "empty manifest folder"])
def test_opening_a_missing_graph_is_refused(root, make):
    if make:
        root.mkdir()
    if make == "file in it":
        (root / "x").write_text("x")
    if make == "empty manifest folder":
        (root / "__manifest").mkdir()
    before = files_below(root) if root.exists() else None
    with pytest.raises(GraphNotFound) as caught:
        open_repository(root)
    assert str(root) in caught.value.message
    assert "omnigraph.init(" in caught.value.hint
    assert "omnigraph init" in hint_for(caught.value.hint, "cli")
    assert (files_below(root) if root.exists() else None) == before


def restamp(root, stamp):
    """Write the first version of the manifest again with another stamp."""
    table = lance.dataset(str(root / "__manifest")).to_table()
    shutil.rmtree(root / "__manifest")
    metadata = {} if stamp is None else {STAMP_KEY: stamp}
    lance.write_dataset(table.replace_schema_metadata(metadata), str(root / "__manifest"), enable_stable_row_ids=True)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    ("stamp", "words", "hints"),
    [
        ("4", ["4", str(STORAGE_FORMAT_NEWEST)], ["omnigraph export", "omnigraph init", "omnigraph load"]),
        ("1000", ["1000", str(STORAGE_FORMAT_NEWEST)], ["history and branches do not"]),
        (
            str(STORAGE_FORMAT_NEWEST + 1),
            [str(STORAGE_FORMAT_NEWEST + 1), str(STORAGE_FORMAT_NEWEST)],
            ["upgrade omnigraph"],
        ),
        ("99999999999999999999", ["99999999999999999999"], ["upgrade omnigraph"]),
        (None, ["no format stamp"], []),
        ("", ["unreadable", "''"], []),
        ("six", ["unreadable", "'six'"], []),
        ("-1", ["unreadable", "'-1'"], []),
    ],
)
def test_an_unknown_stamp_is_refused_without_a_write(root, read_only, stamp, words, hints):
    new_repository(root)
    restamp(root, stamp)
    before = files_below(root)
    with pytest.raises(IncompatibleFormat) as caught:
        open_repository(root, read_only=read_only)
    assert str(root) in caught.value.message
    assert all(word in caught.value.message for word in words)
    assert all(hint in caught.value.hint for hint in hints)
    assert files_below(root) == before


def test_failpoints_of_the_environment_are_armed(root):
    new_repository(root)
    with arm("table.staged"):  # disarms at the end of the block
        repository = Repository.open(root, sync=False, environ={VARIABLE: "table.staged=error"})
        with pytest.raises(OmniGraphError, match=r"table\.staged"):
            add_people(repository, "a")


def test_read_only_reads_and_refuses_to_write(root):
    add_people(new_repository(root), "a")
    repository = open_repository(root, read_only=True)
    before = files_below(root)
    assert ids_of(repository.snapshot()) == ["a"]
    for write in (
        lambda: create_branch(repository, "side"),
        lambda: delete_branch(repository, "side"),
        lambda: add_people(repository, "b"),
        lambda: optimize(repository),
        lambda: cleanup(repository, keep=1, confirm=True),
        lambda: recover(repository),
    ):
        with pytest.raises(InputError, match="read-only"):
            write()
    assert ids_of(repository.snapshot()) == ["a"]
    assert files_below(root) == before, "nothing was staged either"


def test_two_handles_see_each_other_s_commits_and_keep_their_snapshots(root):
    mine = new_repository(root)
    theirs = open_repository(root)
    held = theirs.snapshot()
    add_people(mine, "a")
    assert ids_of(theirs.snapshot()) == ["a"]
    assert ids_of(held) == []
    add_people(theirs, "b")
    assert ids_of(mine.snapshot()) == ["a", "b"]


@pytest.mark.parametrize("how", ["copied", "moved"])
def test_a_moved_folder_opens_completely(tmp_path, root, how):
    repository = new_repository(root)
    first = add_people(repository, "a", "b")
    create_branch(repository, "side")
    changes = {
        PERSON: TableWrite(upsert=people("a", name="new"), delete=["b"]),
        KNOWS: TableWrite(append=knows(("a", "a"))),
    }
    change(repository, changes, branch="side")
    elsewhere = tmp_path / "other place" / "graph"
    elsewhere.parent.mkdir()
    if how == "copied":
        shutil.copytree(root, elsewhere)
        shutil.rmtree(root)
    else:
        root.rename(elsewhere)
    again = open_repository(elsewhere)
    assert verify(again) == []
    assert ids_of(again.snapshot()) == ["a", "b"]
    assert ids_of(again.snapshot("side")) == ["a"]
    assert ids_of(again.snapshot(at=first.id)) == ["a", "b"]
    add_people(again, "c")
    assert verify(again) == []


# -- history -------------------------------------------------------------------------------------------


def test_commits_newest_first(root):
    repository = new_repository(root)
    made = [add_people(repository, id_) for id_ in "abc"]
    listed = repository.commits()
    assert listed[:3] == made[::-1]
    assert [commit.manifest_version for commit in listed] == [4, 3, 2, 1]
    assert [commit.parent_id for commit in listed[:-1]] == [commit.id for commit in listed[1:]]
    assert repository.commits(limit=2) == listed[:2]
    assert repository.commits(limit=0) == []
    assert repository.commits(limit=99) == listed


def test_listed_commits_stay_as_they_were(root):
    repository = new_repository(root)
    add_people(repository, "ada")
    listed = repository.all_commits()
    before = dict(listed)
    iterator = iter(listed)
    next(iterator)
    add_people(repository, "bob")
    newer = repository.all_commits()
    assert [*before][1:] == list(iterator)
    assert dict(listed) == before
    new = repository.state().get_head("main").commit_id
    assert {*newer} - {*listed} == {new}
    assert new not in listed
    assert listed.get(new) is None
    assert dict(newer) == dict(open_repository(root).all_commits())


def test_a_commit_after_many_others_copies_none_of_them():
    blank = Commit("", "main", 0, None, None, None, 0)
    commits = [replace(blank, id=f"c{version}", manifest_version=version) for version in range(1, 5_101)]
    listed = Commits(0, {}, []).extended(commits[:5_000], 5_000)
    tracemalloc.start()
    try:
        all_listed = [listed]
        for commit in commits[5_000:]:
            all_listed.append(all_listed[-1].extended([commit], commit.manifest_version))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20, "a copy of the entries is about 300 KiB"
    assert [len(one) for one in all_listed] == list(range(5_000, 5_101))
    assert all_listed[10]["c5010"] is commits[5_009]
    assert "c5011" not in all_listed[10]


def test_a_branch_lists_inherited_and_own_commits(root):
    repository = new_repository(root)
    shared = add_people(repository, "a")
    create_branch(repository, "side")
    own = add_people(repository, "b", branch="side")
    later = add_people(repository, "c")
    genesis = repository.commits()[-1]
    assert repository.commits("side") == [own, shared, genesis]
    assert repository.commits("main") == [later, shared, genesis]
    assert own.branch == "side"


def test_a_commit_by_its_id(root):
    repository = new_repository(root)
    commit = add_people(repository, "a")
    assert repository.get_commit(commit.id) == commit
    assert open_repository(root).get_commit(commit.id) == commit
    with pytest.raises(CommitNotFound, match="'01ARZ3NDEKTSV4RRFFQ69G5FAV'"):
        repository.get_commit("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(CommitNotFound):
        repository.get_commit("graph_head:main")


# -- snapshots -----------------------------------------------------------------------------------------


def test_every_form_of_a_point_in_time(root):
    clock = Ticks()
    repository = new_repository(root, clock=clock)
    made = {}
    for id_ in "abc":
        clock.sleep(timedelta(hours=1))
        made[id_] = add_people(repository, id_)
    create_branch(repository, "side")
    clock.sleep(timedelta(hours=1))
    own = add_people(repository, "s", branch="side")
    commit = made["b"]
    for repository in (repository, open_repository(root)):  # noqa: B020
        for at in (
            commit.id,
            commit.manifest_version,
            f"manifest:main:v{commit.manifest_version}",
            moment(commit),
            moment(commit) + timedelta(minutes=59),
            moment(commit).replace(tzinfo=None),
        ):
            snapshot = repository.snapshot(at=at)
            assert ids_of(snapshot) == ["a", "b"], at
            assert (snapshot.commit_id, snapshot.version) == (commit.id, commit.manifest_version)
        assert ids_of(repository.snapshot("side", at=own.manifest_version)) == ["a", "b", "c", "s"]
        assert ids_of(repository.snapshot("side", at=own.manifest_version - 1)) == ["a", "b", "c"]
        assert ids_of(repository.snapshot(at=own.manifest_version)) == ["a", "b", "c"], "main was there too"
        assert ids_of(repository.snapshot("side", at=datetime.max)) == ["a", "b", "c", "s"]
        by_id = repository.snapshot(at=own.id)
        assert (by_id.branch, ids_of(by_id)) == ("side", ["a", "b", "c", "s"])


def test_missing_points_in_time_are_refused(root):
    repository = new_repository(root)
    for at, kind, words in (
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", CommitNotFound, "'01ARZ3NDEKTSV4RRFFQ69G5FAV'"),
        (0, CommitNotFound, "branch 'main' has no version 0; its versions are 1 to 1"),
        (-(2**70), CommitNotFound, "its versions are 1 to 1"),
        (2, CommitNotFound, "branch 'main' has no version 2; its versions are 1 to 1"),
        (2**70, CommitNotFound, "its versions are 1 to 1"),
        ("manifest:main:v9999", CommitNotFound, "branch 'main' has no version 9999; its versions are 1 to 1"),
        (datetime(1999, 1, 1, tzinfo=UTC), CommitNotFound, "as old as 1999"),
        (datetime(1, 1, 1, tzinfo=UTC), CommitNotFound, "as old as 0001"),
        (datetime(1999, 1, 1, tzinfo=UTC), CommitNotFound, "its first commit was made at "),
        ("manifest:nope:v1", BranchNotFound, "'nope'"),
        ("manifest:main:1", InputError, "'manifest:main:1'"),
        ("manifest:main:v", InputError, "not a snapshot id"),
        ("manifest:main:vx", InputError, "not a snapshot id"),
    ):
        with pytest.raises(kind) as caught:
            repository.snapshot(at=at)
        assert words in caught.value.message


def test_history_survives_dropped_manifest_versions(root):
    repository = new_repository(root)
    made = [add_people(repository, "first")]
    for number in range(140):
        made.append(change(repository, {PERSON: TableWrite(upsert=people("first", name=str(number)))}))
    versions = list((root / "__manifest" / "_versions").glob("*.manifest"))
    assert len(versions) < 100
    again = open_repository(root)
    assert again.commits()[:-1] == made[::-1]
    for place in (0, 1, 5, 63, 64, 65, 100, 140):
        commit = made[place]
        name = "name of first" if place == 0 else str(place - 1)
        for at in (commit.id, commit.manifest_version, f"manifest:main:v{commit.manifest_version}", moment(commit)):
            assert again.snapshot(at=at).entity(PERSON, "first") == {"id": "first", "name": name}
    assert verify(again) == []


def test_a_row_by_id(root):
    repository = new_repository(root)
    commit = add_people(repository, "o'brien")
    change(repository, {PERSON: TableWrite(delete=["o'brien"])})
    assert repository.snapshot().entity(PERSON, "o'brien") is None
    assert repository.snapshot(at=commit.id).entity(PERSON, "o'brien")["name"] == "name of o'brien"


def test_a_missing_table_suggests_a_name(root):
    snapshot = new_repository(root).snapshot()
    with pytest.raises(TypeNotFound, match="'node:Persn'") as caught:
        snapshot.table("node:Persn")
    assert "node:Person" in caught.value.hint


def test_the_json_form_of_a_snapshot(root):
    repository = new_repository(root)
    commit = add_people(repository, "a")
    assert repository.snapshot().to_json() == {
        "branch": "main",
        "manifest_version": 2,
        "internal_schema_version": 1003,
        "graph_commit_id": commit.id,
        "tables": [
            {
                "table_key": KNOWS,
                "table_path": "edges/602a25a3bd0b455b",
                "table_version": 1,
                "table_branch": None,
                "row_count": 0,
            },
            {
                "table_key": PERSON,
                "table_path": "nodes/40d76f1f51639ec0",
                "table_version": 2,
                "table_branch": None,
                "row_count": 1,
            },
        ],
    }


def test_a_graph_without_tables(root):
    repository = Repository.create(root, GraphSpec(SCHEMA), sync=False, environ={})
    assert repository.snapshot().tables == {}
    create_branch(repository, "side")
    assert verify(open_repository(root)) == []


def test_many_tables(root):
    specs = [TableSpec("node", f"T{number}", number, number, PERSON_SCHEMA) for number in range(1, 41)]
    repository = Repository.create(root, GraphSpec(SCHEMA, tuple(specs)), sync=False, environ={})
    change(repository, {spec.key: TableWrite(append=people("a")) for spec in specs})
    again = open_repository(root)
    assert {key: table.pin.row_count for key, table in again.snapshot().tables.items()} == {s.key: 1 for s in specs}
    assert verify(again) == []


# -- damage --------------------------------------------------------------------------------------------


def test_a_schema_missing_from_the_manifest(root):
    repository = new_repository(root)
    with pytest.raises(Damaged, match="other-hash"):
        repository.schema("other-hash")


def add_internal_head(repository, name, branch="main"):
    """Publish a head whose name belongs to the engine."""
    repository.publish(
        lambda state: Change(put=(head_to_row(replace(state.get_head(branch), branch=name)),)),
    )


def test_internal_heads_are_not_listed(root):
    repository = new_repository(root)
    add_people(repository, "a")
    create_branch(repository, "side")
    add_internal_head(repository, "__operation")
    assert repository.branches() == ["main", "side"]
    assert repository.state().head_names() == ["main", "__operation", "side"]
    assert [head.branch for head in repository.state().heads()] == ["main", "__operation", "side"]
    with pytest.raises(BranchNotFound) as failure:
        repository.snapshot("__operatio")
    assert "__operation" not in (failure.value.hint or "")
    graph = og.open(root)
    assert graph.branches() == ["main", "side"]
    assert "__operation" not in str(graph.branches())
    assert verify(repository) == []


def test_cleanup_keeps_the_versions_of_internal_heads(root):
    repository = new_repository(root)
    add_people(repository, "a")
    add_internal_head(repository, "__operation")
    add_people(repository, "b")
    optimize(repository)
    cleanup(repository, keep=1, confirm=True, grace=timedelta(seconds=-3600))
    assert ids_of(repository.snapshot("__operation")) == ["a"]
    assert ids_of(repository.snapshot()) == ["a", "b"]
    assert verify(repository) == []


def test_an_unreadable_head_is_named_and_the_other_branches_stay_readable(root):
    repository = new_repository(root)
    add_people(repository, "a")
    create_branch(repository, "side")
    damage(root, "graph_head:side", "metadata", "{")
    again = open_repository(root)
    with pytest.raises(Damaged, match="'graph_head:side'"):
        again.snapshot("side")
    assert ids_of(again.snapshot()) == ["a"]
    assert again.branches() == ["main", "side"]
    add_people(again, "b")
    assert ids_of(again.snapshot()) == ["a", "b"]


def test_an_unreadable_commit_is_named_and_the_head_stays_readable(root):
    repository = new_repository(root)
    commit = add_people(repository, "a")
    add_people(repository, "b")
    damage(root, commit.id, "metadata", "nonsense")
    again = open_repository(root)
    with pytest.raises(Damaged, match=commit.id):
        again.snapshot(at=commit.id)
    with pytest.raises(Damaged, match=commit.id):
        again.commits()
    assert ids_of(again.snapshot()) == ["a", "b"]


def damage(root, object_id, column, value):
    """Give a row of the manifest invalid content."""

    def edit(row):
        if row["object_id"] == object_id:
            row[column] = value

    rewrite_rows(root, edit)


def test_all_heads_are_read_by_few_lookups(root, monkeypatch):
    """Branches from many commits: their pins are those of as many fork points."""
    repository = new_repository(root)
    for number in range(12):
        add_people(repository, f"p{number}")
        create_branch(repository, f"side-{number}")
        if number % 2:
            add_people(repository, "mine", branch=f"side-{number}")
    state = repository.state()
    expected = {head.branch: set(head.pins) for head in state.heads()}
    repository.manifest.checkpoint(state.manifest)
    scans = []
    scan = CheckpointTable.scan
    monkeypatch.setattr(CheckpointTable, "scan", lambda *a, **k: (scans.append(1), scan(*a, **k))[1])
    again = open_repository(root)
    assert {head.branch: set(head.pins) for head in again.state().heads()} == expected
    assert len(scans) == 1
    assert {name: set(again.state().get_head(name).pins) for name in expected} == expected
    assert verify(again) == []
