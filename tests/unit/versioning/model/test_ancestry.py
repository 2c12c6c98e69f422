"""Ancestors and merge bases: hand-made histories, and random ones against a simple oracle."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.versioning.model.ancestry import meeting_points, merge_bases, only_reachable, reachable
from omnigraph.versioning.model.manifest_objects import Commit

DRAWN = {  # each commit and its parents
    "the same": ({"a": ""}, "a", "a", {"a"}),
    "linear": ({"a": "", "b": "a", "c": "b"}, "b", "c", {"b"}),
    "fork": ({"a": "", "b": "a", "c": "a"}, "b", "c", {"a"}),
    "deep fork": ({"a": "", "b": "a", "c": "b", "d": "b", "e": "d"}, "c", "e", {"b"}),
    "unrelated": ({"a": "", "b": ""}, "a", "b", set()),
    "merged before": ({"a": "", "b": "a", "c": "a", "d": "bc", "e": "c"}, "d", "e", {"c"}),
    "merged twice": ({"a": "", "b": "a", "c": "a", "d": "bc", "e": "c", "f": "de", "g": "e"}, "f", "g", {"e"}),
    "criss-cross": ({"a": "", "b": "a", "c": "a", "d": "bc", "e": "cb"}, "d", "e", {"b", "c"}),
    "criss-cross, edited": (
        {"a": "", "b": "a", "c": "a", "d": "bc", "e": "cb", "f": "d", "g": "e"},
        "f",
        "g",
        {"b", "c"},
    ),
    "via a third branch": (
        # s merged into t, t into u: u contains s, so merging s into u has s itself as its base.
        {"a": "", "s": "a", "t": "a", "u": "a", "v": "ts", "w": "uv"},
        "s",
        "w",
        {"s"},
    ),
    "two roots joined": ({"a": "", "b": "", "c": "ab", "d": "b"}, "c", "d", {"b"}),
    "octopus of criss-crosses": (
        {"a": "", "b": "a", "c": "a", "d": "bc", "e": "cb", "f": "de", "g": "ed"},
        "f",
        "g",
        {"d", "e"},
    ),
}


def commits_of(parents):
    """Return commits by id; each is newer than those before it."""
    return {
        id_: Commit(id_, "main", version, *[*parents[id_], None, None][:2], None, 0)
        for version, id_ in enumerate(parents)
    }


@pytest.mark.parametrize(("parents", "ours", "theirs", "expected"), DRAWN.values(), ids=DRAWN)
def test_merge_bases_of_hand_made_histories(parents, ours, theirs, expected):
    assert merge_bases(ours, theirs, commits_of(parents)) == expected
    assert merge_bases(theirs, ours, commits_of(parents)) == expected


@pytest.mark.parametrize(("parents", "ours", "theirs", "expected"), DRAWN.values(), ids=DRAWN)
def test_meeting_points_of_two_heads_are_their_merge_bases(parents, ours, theirs, expected):
    assert meeting_points([ours, theirs], parents.__getitem__) == expected - ({ours} if ours == theirs else set())


def test_a_linear_history_has_no_meeting_points():
    assert meeting_points([5_000], lambda commit: [commit - 1] if commit else []) == frozenset()
    assert meeting_points([], lambda _: []) == frozenset()


def test_every_ancestor_is_visited_once():
    parents = {"a": "", "b": "a", "c": "a", "d": "bc", "e": "d"}
    found = list(reachable("d", parents.__getitem__))
    assert sorted(found) == ["a", "b", "c", "d"]


def test_a_ladder_of_merges_takes_linear_time():
    # Every commit has the two previous commits as parents: the number of paths doubles with each step, that of commits
    # does not.
    parents = {0: [], 1: [0], **{n: [n - 1, n - 2] for n in range(2, 5_000)}}
    asked = []

    def look(commit):
        asked.append(commit)
        return parents[commit]

    assert len(list(reachable(4_999, look))) == 5_000
    assert len(asked) == 5_000


def test_a_long_history_does_not_exhaust_the_stack():
    assert len(list(reachable(20_000, lambda commit: [commit - 1] if commit else []))) == 20_001


class Visited(dict):
    """Commits by id, and the ids that were looked up."""

    def __init__(self, commits):
        super().__init__(commits)
        self.ids = set()

    def __getitem__(self, id_):
        self.ids.add(id_)
        return super().__getitem__(id_)


def test_the_history_before_a_fork_point_is_not_visited():
    # Two branches with ten commits each, even and odd ones, after a long common past.
    parents = {n: [n - 1] if n <= 1_000 else [n - 2] for n in range(1, 1_020)}
    parents |= {0: [], 1_000: [999]}
    commits = Visited(commits_of(dict(sorted(parents.items()))))
    assert merge_bases(1_018, 1_019, commits) == {999}
    assert only_reachable(1_018, [1_019, 500], commits) == set(range(1_000, 1_019, 2))
    assert len(commits.ids) < 30


@st.composite
def histories(draw):
    """Return commits by number, each with up to two earlier ones as parents."""
    parents = {0: ()}
    for commit in range(1, draw(st.integers(1, 14))):
        parents[commit] = tuple(draw(st.lists(st.integers(0, commit - 1), max_size=2, unique=True)))
    commits = st.integers(0, len(parents) - 1)
    return parents, draw(commits), draw(commits)


@given(histories(), st.data())
def test_meeting_points_include_all_merge_bases(case, data):
    parents, *two = case
    heads = [*two, *data.draw(st.lists(st.sampled_from(sorted(parents)), max_size=3))]
    bases = {base for a in heads for b in heads if a != b for base in merge_bases(a, b, commits_of(parents))}
    found = meeting_points(heads, parents.__getitem__)
    assert bases <= found
    assert all(sum(commit in ancestors_of(head, parents) for head in {*heads}) > 1 for commit in found)


def ancestors_of(commit, parents):
    """The literal definition: the commit itself and the ancestors of its parents."""
    found = {commit}
    for parent in parents[commit]:
        found |= ancestors_of(parent, parents)
    return found


@given(histories())
def test_random_histories_against_the_definition(case):
    parents, ours, theirs = case
    common = ancestors_of(ours, parents) & ancestors_of(theirs, parents)
    best = {one for one in common if not any(one != other and one in ancestors_of(other, parents) for other in common)}
    assert merge_bases(ours, theirs, commits_of(parents)) == best
    assert set(reachable(ours, parents.__getitem__)) == ancestors_of(ours, parents)


@given(histories(), st.data())
def test_what_only_one_head_reaches_is_a_set_difference(case, data):
    parents, start, _ = case
    others = data.draw(st.lists(st.sampled_from(sorted(parents)), max_size=3))
    shared = set().union(*(ancestors_of(other, parents) for other in others))
    assert only_reachable(start, others, commits_of(parents)) == ancestors_of(start, parents) - shared
