"""Ahead and behind of all branches in one pass, compared with set differences."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.versioning.model.ancestry import ahead_and_behind, reachable
from omnigraph.versioning.model.manifest_objects import Commit

BLANK = Commit("", "main", 0, None, None, None, 0, None, {}, "load", (), "", 0, None)


@st.composite
def histories(draw):
    """Commits, each with up to two earlier parents; some of one group share a manifest version."""
    commits: list[Commit] = []
    for number in range(draw(st.integers(1, 25))):
        parents = draw(st.lists(st.integers(0, number - 1), max_size=2, unique=True)) if number else []
        ids = [f"c{parent:02}" for parent in parents] + [None, None]
        version = max((commit.manifest_version for commit in commits), default=0) + draw(st.integers(0, 1))
        commits.append(
            replace(
                BLANK,
                id=f"c{number:02}",
                manifest_version=version,
                created_us=number,
                parent_id=ids[0],
                merged_parent_id=ids[1],
            )
        )
    heads = draw(st.lists(st.integers(0, len(commits) - 1), min_size=1, max_size=6))
    return commits, {f"b{at}": f"c{head:02}" for at, head in enumerate(heads)}, f"c{draw(st.sampled_from(heads)):02}"


@given(histories())
def test_counts_are_set_differences(history):
    commits, heads, base = history
    parents = {commit.id: commit.parents for commit in commits}
    past = {id_: set(reachable(id_, parents.__getitem__)) for id_ in parents}
    assert ahead_and_behind(heads, base, commits) == {
        name: (len(past[head] - past[base]), len(past[base] - past[head])) for name, head in heads.items()
    }
