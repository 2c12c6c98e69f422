"""The branch of the resolved commit is judged, whatever names the commit, and a denial shows no names."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import (
    BranchNotFound,
    ChangeCursorRejected,
    CommitNotFound,
    Denied,
    InputError,
    OmniGraphError,
    PageCursorRejected,
)
from omnigraph.graph import Graph
from omnigraph.operations.authorization.access import Access, Only
from omnigraph.operations.paging import _Cursor
from omnigraph.policy import Policy, parse_rules
from omnigraph.policy.load import parse_policy_text
from omnigraph.versioning.model.points import PREFIX_MIN
from support.writes import SHELVES, new_graph, shelf

POLICY = """\
version: 1
groups:
  public: [pia]
  drafters: [dan]
  owners: [ola]
  exporters: [exporter]
protected_branches: [main]
rules:
  - id: public
    allow:
      actors: { group: public }
      actions: [read, export, change, tag_create, tag_delete]
      branch_scope: protected
  - id: drafts
    allow:
      actors: { group: drafters }
      actions: [read, export, change, tag_create, tag_delete]
      branch_scope: unprotected
  - id: forks
    allow: { actors: { group: drafters }, actions: [branch_create, branch_delete], target_branch_scope: unprotected }
  - id: list
    allow: { actors: { group: exporters }, actions: [read] }
  - id: export
    allow: { actors: { group: exporters }, actions: [export], branch_scope: protected }
  - id: owners
    allow: { actors: { group: owners }, actions: [read, export, change, tag_create, tag_delete, maintain] }
"""
OTHER = "the action is not allowed on the branch on which the commit was made"
ALL = "match { $s: Shelf } return { $s.code } order { $s.code }"


class Story:
    """A graph with two commits on main, a branch `draft` with its own commit, and a branch `fork` without one."""

    def __init__(self, root: Path) -> None:
        self.raw = new_graph(root, SHELVES, shelf("a"))
        self.main = self.raw.load([shelf("b")], mode="merge").commit_id
        self.main_version = self.raw.snapshot().version
        self.main_time = self.raw.commit(self.main).created_at
        self.raw.branch_create("draft")
        self.draft = self.raw.load([shelf("d")], mode="merge", branch="draft").commit_id
        self.draft_version = self.raw.snapshot("draft").version
        self.raw.branch_create("fork")
        self.raw.tag_create("tag-main", "main")
        self.raw.tag_create("tag-draft", "draft")
        self.policy = Policy(parse_rules(POLICY))

    def as_(self, actor: str | None, branch: str = "main", **limits: Any) -> Graph:
        return self.raw.with_access(Access(self.policy, actor, **limits)).on(branch)


def shared_prefix(graph: Graph) -> str:
    """The prefix of several ids of one branch. An id begins with its time, so commits in quick succession share one."""
    graph.branch_create("many")
    for number in range(100):
        graph.load([shelf("m", cap=number)], mode="merge", branch="many")
        made = (commit.id[:PREFIX_MIN] for commit in graph.commits("many") if commit.branch == "many")
        found, count = Counter(made).most_common(1)[0]
        if count > 1:
            return found
    raise AssertionError("no two commits share a prefix")


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Story:
    return Story(tmp_path_factory.mktemp("story"))


def ways(story: Story) -> dict[str, tuple[dict[str, Any], set[str]]]:
    """Arguments that denote a commit, and the branches that are judged."""
    later = datetime.now(UTC) + timedelta(days=1)
    return {
        "head": ({"branch": "main"}, {"main"}),
        "head as a point": ({"at": "main"}, {"main"}),
        "commit": ({"at": story.main}, {"main"}),
        "commit with another branch": ({"branch": "draft", "at": story.main}, {"main"}),
        "prefix": ({"at": story.main[:20]}, {"main"}),
        "tag": ({"at": "tag-main"}, {"main"}),
        "snapshot id": ({"at": f"manifest:main:v{story.main_version}"}, {"main"}),
        "version before the fork": ({"branch": "draft", "at": story.main_version}, {"draft", "main"}),
        "time before the fork": ({"branch": "draft", "at": story.main_time}, {"draft", "main"}),
        "snapshot id before the fork": ({"at": f"manifest:draft:v{story.main_version}"}, {"draft", "main"}),
        "branch without commits": ({"branch": "fork"}, {"fork", "main"}),
        "branch without commits as a point": ({"at": "fork"}, {"fork", "main"}),
        "draft": ({"branch": "draft"}, {"draft"}),
        "draft as a point": ({"at": "draft"}, {"draft"}),
        "commit of draft": ({"at": story.draft}, {"draft"}),
        "commit of draft with another branch": ({"branch": "main", "at": story.draft}, {"draft"}),
        "prefix of draft": ({"at": story.draft[:20]}, {"draft"}),
        "tag of draft": ({"at": "tag-draft"}, {"draft"}),
        "version of draft": ({"branch": "draft", "at": story.draft_version}, {"draft"}),
        "time of draft": ({"branch": "draft", "at": later}, {"draft"}),
        "snapshot id of draft": ({"at": f"manifest:draft:v{story.draft_version}"}, {"draft"}),
    }


MAY_USE = {"pia": {"main"}, "dan": {"draft", "fork"}, "ola": {"main", "draft", "fork"}, None: set()}


@pytest.mark.parametrize("actor", MAY_USE)
@pytest.mark.parametrize("method", ["query", "export"])
def test_every_way_to_a_commit_is_judged_by_its_branch(story, actor, method):
    graph = story.as_(actor)
    for way, (point, judged) in ways(story).items():
        if judged <= MAY_USE[actor]:
            assert graph.query(ALL, **point) if method == "query" else list(graph.export(**point)), way
        else:
            with pytest.raises(Denied):
                graph.query(ALL, **point) if method == "query" else graph.export(**point)


def test_a_branch_without_commits_needs_both_branches(story):
    for actor in ("pia", "dan"):
        with pytest.raises(Denied):
            story.as_(actor).query(ALL, branch="fork")
    assert len(story.as_("ola").query(ALL, branch="fork")) == 2


# -- cursors ------------------------------------------------------------------------------------------


def test_a_page_cursor_is_no_authority(story):
    dan = story.as_("dan", "draft")
    first = dan.query(ALL, page=1)
    assert [row["s.code"] for row in dan.query(ALL, page=9, after=first.next)] == ["b", "d"]
    with pytest.raises(Denied):
        story.as_("pia", "draft").query(ALL, page=9, after=first.next)
    cursor = _Cursor.read(first.next, "draft")
    forged = _Cursor("draft", story.main, 0, cursor.now_ms, cursor.digest, cursor.epoch).write()
    assert len(story.as_("ola", "draft").query(ALL, page=9, after=forged)) == 2
    with pytest.raises(Denied, match=OTHER):
        dan.query(ALL, page=9, after=forged)
    unknown = _Cursor("draft", "01M7GTMNTYSFMWAXAP0WCRX2Y4", 0, cursor.now_ms, cursor.digest, cursor.epoch).write()
    with pytest.raises(PageCursorRejected):
        dan.query(ALL, page=9, after=unknown)


def test_a_feed_is_judged_by_the_branches_of_its_commits(story):
    dan = story.as_("dan", "draft")
    with pytest.raises(Denied, match=OTHER):
        dan.changes(start="beginning")
    page = dan.changes(start=f"after:{story.main}")
    assert page.blocks[0].commit.id == story.draft  # other tests write later commits
    assert {block.commit.branch for block in page.blocks} == {"draft"}
    resumed = story.raw.changes(branch="draft", start="beginning", commits_max=1)
    with pytest.raises(Denied, match=OTHER):
        dan.changes(resumed.cursor)
    with pytest.raises(Denied):
        story.as_("pia").changes(page.cursor, branch="draft")
    assert len(story.as_("ola").changes(start="beginning", branch="draft").blocks) >= 3


# -- existence ----------------------------------------------------------------------------------------


def test_a_denied_commit_does_not_differ_from_an_unknown_one(story):
    def failure(graph: Graph, id_: str) -> tuple[Any, ...]:
        with pytest.raises(CommitNotFound) as caught:
            graph.commit_changes(id_)
        error = caught.value
        return type(error), error.code, error.message.replace(id_, "ID"), error.hint, error.__cause__

    unknown = "01M7GTMNTYSFMWAXAP0WCRX2Y4"
    for actor, hidden in (("pia", [story.draft, "tag-draft", "draft"]), ("dan", [story.main, "tag-main", "main"])):
        graph = story.as_(actor)
        for id_ in (*hidden, "fork"):
            assert failure(graph, id_) == failure(graph, unknown)
        assert failure(story.as_(None), story.main) == failure(story.as_(None), unknown)
    prefix = shared_prefix(story.raw)
    assert failure(story.as_("dan"), prefix) == failure(story.as_("dan"), unknown)
    with pytest.raises(InputError, match="is the prefix of"):
        story.as_("ola").commit_changes(prefix)
    assert story.as_("dan").commit_changes(story.draft).commit.id == story.draft
    assert story.as_("pia").commit_changes(story.main).commit.id == story.main


def named_ids(error: OmniGraphError) -> set[str]:
    return set(re.findall(r"01[0-9A-Z]{24}", f"{error.message} {error.hint}"))


def test_a_prefix_denotes_only_commits_that_the_caller_may_use(tmp_path):
    """Ids of commits of other branches do not make a prefix ambiguous and are in no error."""
    raw = new_graph(tmp_path, SHELVES, shelf("a"))
    raw.branch_create("private")
    raw.branch_create("proposed")
    raw.load([shelf("p")], mode="merge", branch="proposed")
    raw.propose("proposed", title="A trial has a commit, too")
    for attempt in range(100):
        single = f"single{attempt}"
        raw.branch_create(single)
        names = ("main", "private", "main", "private", single)
        made = [raw.load([shelf("x", cap=n)], mode="merge", branch=name).commit_id for n, name in enumerate(names)]
        prefix = made[-1][:PREFIX_MIN]
        # Ids begin with their time, so commits in quick succession share a prefix.
        if all(id_.startswith(prefix) for id_ in made):
            break
    else:
        raise AssertionError("no five commits share a prefix")
    mine = {commit.id for commit in raw.commits() if commit.id.startswith(prefix)}
    readable = {commit.id for commit in raw.commits("*") if commit.id.startswith(prefix)}
    readable -= {commit.id for commit in raw.commits("private") if commit.branch == "private"}
    unknown = "01M7GTMNTYSFMWAXAP0WCRX2Y4"
    rules = f"""version: 2
groups: {{ staff: [sam], guests: [una] }}
rules:
  - {{ id: all, allow: {{ actors: {{ group: staff }}, actions: [read] }} }}
  - {{ id: private, deny: {{ actors: {{ group: staff }}, actions: [read], branches: [private] }} }}
  - {{ id: one, allow: {{ actors: {{ group: guests }}, actions: [read], branches: [{single}] }} }}
"""
    sam, una = (raw.with_access(Access(Policy(parse_policy_text(rules)), actor)) for actor in ("sam", "una"))
    assert una.commit_changes(prefix).commit.id == made[-1]
    pia = raw.with_access(Access(Policy(parse_rules(POLICY)), "pia"))
    for call in (lambda graph, point: graph.query(ALL, at=point), lambda graph, point: graph.commit_changes(point)):
        with pytest.raises(InputError, match=f"is the prefix of {len(readable)} commit ids") as caught:
            call(sam, prefix)
        assert named_ids(caught.value) <= readable
    for graph in (sam, pia):
        with pytest.raises(InputError, match=f"is the prefix of {len(mine)} commit ids") as caught:
            graph.changes(start=f"after:{prefix}")
        assert named_ids(caught.value) <= mine
    head, hidden = raw.snapshot().commit_id, raw.snapshot("private").commit_id
    assert pia.changes(start=f"after:{head[:25]}").caught_up
    for graph in (sam, pia):
        for name in (hidden, hidden[:25], "private", unknown):
            with pytest.raises(ChangeCursorRejected) as rejected:
                graph.changes(start=f"after:{name}")
            assert rejected.value.message.replace(name, "ID") == (
                "change cursor rejected: commit ID is not on the first-parent line of branch 'main'"
            )
    with pytest.raises(Denied):
        sam.query(ALL, at=hidden[:25])


def test_names_of_a_feed_start_are_judged(story):
    """A branch without commits, and a tag, denote a commit of the feed only for callers who may read them."""
    head = story.raw.snapshot().commit_id
    story.raw.branch_create("unread")
    for name in ("unread", "fork"):
        with pytest.raises(ChangeCursorRejected, match=f"commit {name} is not on the first-parent line"):
            story.as_("pia").changes(start=f"after:{name}")
        assert story.as_("ola").changes(start=f"after:{name}").cut == head
    assert story.as_("pia").changes(start="after:tag-main").cut == head
    with pytest.raises(ChangeCursorRejected):
        story.as_("dan", "draft").changes(start="after:tag-main")
    story.raw.branch_delete("unread")


@pytest.mark.parametrize("call", ["snapshot", "commits", "mutate", "branch_delete", "on", "merge_preview", "changes"])
def test_a_denial_does_not_show_whether_a_branch_exists(story, call):
    def failure(name: str) -> str:
        graph = story.as_("pia")
        calls = {
            "snapshot": lambda: graph.snapshot(name),
            "commits": lambda: graph.commits(name),
            "mutate": lambda: graph.mutate('delete Shelf where code = "a"', branch=name),
            "branch_delete": lambda: graph.branch_delete(name),
            "on": lambda: graph.on(name).query(ALL),
            "merge_preview": lambda: graph.merge_preview(name),
            "changes": lambda: graph.changes(branch=name),
        }
        with pytest.raises(Denied) as caught:
            calls[call]()
        return str(caught.value).replace(name, "NAME")

    assert failure("draft") == failure("missing")


@pytest.mark.parametrize(("actor", "named"), [("pia", False), ("dan", False), (None, False), ("exporter", True)])
def test_a_denial_names_a_branch_only_to_callers_who_may_list_them(story, actor, named):
    hidden = {"pia": "draft", "dan": "main", None: "main", "exporter": "draft"}[actor]
    ways = {"main": [story.main, story.main[:20], "tag-main"], "draft": [story.draft, story.draft[:20], "tag-draft"]}
    for at in ways[hidden]:
        graph = story.as_(actor)
        with pytest.raises(Denied) as caught:
            graph.export(at=at)
        assert (f"branch '{hidden}'" in str(caught.value)) == named
        access = graph._context.access
        assert access is not None
        assert access.decisions[-1].branch == hidden, "the audit record has the branch"


def test_an_error_suggests_names_only_to_callers_who_may_list_them(story):
    for at in (None, "drafft"):
        where = {"branch": "drafft"} if at is None else {"at": at}
        with pytest.raises((BranchNotFound, CommitNotFound)) as caught:
            story.as_("ola").snapshot(**where)
        assert "'draft'" in str(caught.value.hint)
        with pytest.raises((BranchNotFound, CommitNotFound)) as caught:
            story.as_("dan").snapshot(**where)
        assert caught.value.hint is None


# -- names, actors and handles ------------------------------------------------------------------------


def test_names_are_trimmed_before_the_decision_and_used_trimmed(story):
    dan, pia = story.as_("dan", "draft"), story.as_("pia")
    with pytest.raises(Denied, match="on branch 'main'"):
        dan.load([shelf("x")], mode="merge", branch=" main ")
    with pytest.raises(Denied, match="target branch 'main'"):
        dan.branch_delete(" main\t")
    assert len(pia.query(ALL, branch=" main ")) == 2
    assert dan.branch_create(" trimmed ", " draft ").branch == "trimmed"
    assert dan.load([shelf("x")], mode="merge", branch=" trimmed ").branch == "trimmed"
    dan.ingest([shelf("y")], branch=" trimmed\n", from_branch=" draft ")
    assert [row["s.code"] for row in dan.query(ALL, branch="\ttrimmed")][-2:] == ["x", "y"]
    dan.branch_delete(" trimmed", force=True)
    with pytest.raises(InputError, match="blank"):
        dan.snapshot("  ")


def test_a_call_cannot_act_as_someone_else(story):
    dan = story.as_("dan", "draft")
    for call in (
        lambda **k: dan.mutate('delete Shelf where code = "none"', **k),
        lambda **k: dan.load([shelf("d")], mode="merge", **k),
        lambda **k: dan.tag_create("by-another", **k),
        lambda **k: dan.revert("draft", **k),
    ):
        with pytest.raises(Denied, match="cannot name another actor"):
            call(actor="ola")
    made = dan.load([shelf("e")], mode="merge", actor="dan").commit_id
    assert dan.commit(made).actor == "dan"
    dan.revert(made)
    assert dan.commit("draft").actor == "dan"


def test_a_handle_keeps_its_access(story):
    dan = story.as_("dan", "draft")
    assert dan.actor == "dan"
    with pytest.raises(Denied):
        dan.on("main").query(ALL)
    with pytest.raises(BranchNotFound):
        dan.on("missing")
    with pytest.raises(InputError, match="has an access already"):
        dan.with_access(Access(None, None, default="allow"))


# -- writes -------------------------------------------------------------------------------------------


def test_ingest_creates_a_branch_only_with_the_right_to(story):
    pia, dan = story.as_("pia"), story.as_("dan")
    with pytest.raises(Denied, match="branch_create"):
        story.as_("ola").ingest([shelf("i")], branch="new", from_branch="draft")
    assert "new" not in story.raw.branches()
    done = dan.ingest([shelf("i")], branch="new", from_branch="draft")
    assert (done.branch_created, done.base_branch) == (True, "draft")
    again = story.as_("ola").ingest([shelf("i")], branch="new", from_branch="draft")
    assert (again.branch_created, again.base_branch) == (False, "draft")
    with pytest.raises(Denied, match="'change'"):
        pia.ingest([shelf("i")], branch="new", from_branch="main")
    dan.branch_delete("new", force=True)


def test_tags_are_judged_by_the_branch_of_their_commit(story):
    pia, dan = story.as_("pia"), story.as_("dan")
    for actor, own, other in ((pia, "main", "draft"), (dan, "draft", "main")):
        with pytest.raises(Denied):
            actor.tag_create("new-tag", other)
        with pytest.raises(Denied):
            actor.tag_delete(f"tag-{other}")
        actor.tag_create("new-tag", own)
        actor.tag_delete(" new-tag ")
        with pytest.raises(Denied):
            actor.tag_delete("missing")


def test_a_revert_requires_the_commit_to_be_readable(story):
    dan = story.as_("dan", "draft")
    with pytest.raises(Denied, match=OTHER):
        dan.revert(story.main)
    with pytest.raises(Denied, match=OTHER):
        dan.revert_preview(story.main)


def test_both_points_and_the_base_of_a_diff_are_judged(story):
    dan, ola = story.as_("dan", "draft"), story.as_("ola")
    for points in (("main", "draft"), ("draft", "main"), ("draft..main",), ("fork...draft",)):
        with pytest.raises(Denied, match=OTHER):
            dan.diff(*points)
        assert list(ola.diff(*points))
    list(dan.diff("draft", "tag-draft"))


def test_a_token_that_is_limited_to_branches_cannot_fork_others(story):
    limited = story.as_("dan", "draft", only=Only(branches=("draft", "mcp/*")))
    assert limited.branch_create("mcp/a", at=story.draft).branch == "mcp/a"
    for start in ({"from_branch": "main"}, {"at": story.main}, {"at": "tag-main"}, {"from_branch": "fork"}):
        with pytest.raises(Denied, match="the token is limited"):
            limited.branch_create("mcp/b", **start)
    with pytest.raises(Denied, match="the token is limited"):
        limited.branch_create("other")
    limited.branch_delete("mcp/a")
