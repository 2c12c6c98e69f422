"""As-of lookup: random branch histories, compared with a traversal of parents."""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from omnigraph.errors import CommitNotFound
from omnigraph.versioning.model.as_of import commit_as_of
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.transaction import WriteOptions
from omnigraph.versioning.write.write import write
from support.graphs import Ticks, new_repository


def step(repository, branch="main"):
    commit = write(repository, lambda _: None, WriteOptions(branch=branch, always_commit=True))
    assert commit is not None
    return commit


def first_parents(repository, branch):
    """The definition: follow first parents from the head."""
    known = repository.all_commits()
    commit = known[repository.state().get_head(branch).commit_id]
    while commit is not None:
        yield commit
        commit = known.get(commit.parent_id)


def find(repository, branch, at):
    try:
        return commit_as_of(repository.manifest, repository.state(), branch, at).id
    except CommitNotFound:
        return None


def time_of(commit):
    return commit.created_at


def check_everywhere(repository):
    line_of = {branch: list(first_parents(repository, branch)) for branch in repository.branches()}
    known = repository.all_commits()
    for branch, line in line_of.items():
        for version in range(repository.state().version + 2):
            wanted = next((commit.id for commit in line if commit.manifest_version <= version), None)
            wanted = wanted if version <= repository.state().version else None
            assert find(repository, branch, version) == wanted, (branch, version)
        for other in known.values():
            for late_us in (-1, 0, 1):
                limit = other.created_us + late_us
                wanted = next((commit.id for commit in line if commit.created_us <= limit), None)
                assert find(repository, branch, time_of(other) + timedelta(microseconds=late_us)) == wanted


@pytest.mark.parametrize("seed", range(4))
def test_any_point_of_any_branch_is_found(tmp_path, seed):
    random = Random(seed)
    clock = Ticks()
    repository = new_repository(tmp_path / "g", clock=clock)
    for _ in range(40):
        branches = repository.branches()
        match random.choice(["step", "step", "step", "fork", "fork at", "delete", "clock"]):
            case "step":
                step(repository, random.choice(branches))
            case "fork" if len(branches) < 4:
                free = [name for name in ("a", "b", "c") if name not in branches]
                create_branch(repository, random.choice(free), from_branch=random.choice(branches))
            case "fork at" if len(branches) < 4:
                # Also at commits of deleted branches.
                free = [name for name in ("a", "b", "c") if name not in branches]
                create_branch(repository, random.choice(free), at=random.choice(sorted(repository.all_commits())))
            case "delete" if len(branches) > 1:
                delete_branch(repository, random.choice(branches[1:]))
            case "clock":
                # The clocks of machines differ.
                clock.sleep(timedelta(milliseconds=random.choice((-1500, -1, 1, 700))))
    check_everywhere(repository)


def test_a_reused_branch_name(tmp_path):
    repository = new_repository(tmp_path / "g")
    start = step(repository)
    create_branch(repository, "side")
    first = step(repository, "side")
    delete_branch(repository, "side")
    create_branch(repository, "side", at=start.id)
    second = step(repository, "side")
    assert find(repository, "side", first.manifest_version) == start.id
    assert find(repository, "side", second.manifest_version) == second.id
    create_branch(repository, "heir", at=first.id)
    delete_branch(repository, "side")
    assert find(repository, "heir", second.manifest_version) == first.id
    assert find(repository, "heir", first.manifest_version - 1) == start.id
