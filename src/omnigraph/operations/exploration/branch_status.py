"""`BranchStatus`: a branch compared with another one."""

from __future__ import annotations

from omnigraph.fast_dataclass import dataclass
from omnigraph.versioning.model.manifest_objects import Commit, Head

EVERY_BRANCH = "*"
"""In place of the name of a branch: all branches that the caller may read."""


@dataclass(frozen=True)
class BranchStatus:
    """A branch, its newest commit, and the numbers of commits that only one of it and its base has."""

    head: Head
    commit: Commit
    base: str
    ahead: int
    """Commits that only the branch has."""
    behind: int
    """Commits that only the base has."""

    @property
    def name(self) -> str:
        """The name of the branch."""
        return self.head.branch
