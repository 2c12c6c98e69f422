"""The change feed: the commits of a branch along first parents, each with its changes, in pages.

A poll reads the head once (the *cut*) and returns whole commits up to it, within the limits. The result ends with a
*cursor*, which the caller stores and passes to the next poll. Nothing is stored here, so a cursor used twice returns
the same commits twice: delivery is at least once. Only a commit that is too large for one result is split. Such a
result ends with a *page* token instead, which is valid for the rest of that poll alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import ChangeCursorRejected, ChangeFeedGap, Damaged, InputError
from omnigraph.versioning.compare.diff import Columns, Sight
from omnigraph.versioning.compare.rows import ToJson, to_plain
from omnigraph.versioning.feed.commit_changes import (
    ChangeFilter,
    CommitBlock,
    CommitChange,
    commit_images,
    read_changes,
)
from omnigraph.versioning.feed.cursors import check_epoch, is_id, read_token, short_id, write_token
from omnigraph.versioning.model.manifest_objects import Commit, Head
from omnigraph.versioning.model.points import commit_with_prefix
from omnigraph.versioning.model.snapshot import Snapshot, on_branch
from omnigraph.versioning.write.repository import Repository

MIB = 1024 * 1024
FindPoint = Callable[[str], Snapshot | None]
_NOWHERE: list[Any] = []


@dataclass(frozen=True)
class PageLimits:
    """Limits of one result."""

    changes: int = 1_000
    bytes: int = 4 * MIB
    commits: int = 128

    def __post_init__(self) -> None:
        for name, value, most in (
            ("changes", self.changes, 8_192),
            ("bytes", self.bytes, 32 * MIB),
            ("commits", self.commits, 512),
        ):
            if type(value) is not int or not 1 <= value <= most:
                raise InputError(
                    f"a page holds 1 to {most} {name}, not {value!r}",
                    code="bad_page",
                    hint=f"give an integer, {name}=100",
                )


@dataclass(frozen=True)
class ChangePage:
    """One result: commits with their changes, oldest first, and the tokens to continue."""

    blocks: tuple[CommitBlock, ...]
    cut: str
    """The head at the time of the poll; later commits are left for the next poll."""
    cursor: str | None
    """The cursor for the next poll; None while a commit continues on another page."""
    page: str | None
    """Token for the rest of a commit that did not fit."""
    caught_up: bool
    """True if nothing up to the cut is left."""

    def __iter__(self) -> Iterator[CommitBlock]:
        return iter(self.blocks)

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        return {
            "blocks": [block.to_json(value) for block in self.blocks],
            "cut_commit_id": self.cut,
            "cursor": self.cursor,
            "page": self.page,
            "caught_up": self.caught_up,
        }


class Feed:
    """The feed of one branch with one filter.

    With `sight` it contains what the caller may see on the branch. A token contains a digest of what the caller could
    see at its commit and is rejected if that differs today: rows that became visible have no change to report.
    """

    def __init__(
        self,
        repository: Repository,
        columns: Columns,
        branch: str,
        wanted: ChangeFilter,
        sight: Sight | None = None,
    ) -> None:
        self._repository = repository
        self._columns = columns
        self._sight = sight
        self._branch = branch
        self._wanted = wanted
        state = repository.state()
        self._head: Head = state.get_head(branch)
        # Also if a purge happens while a page is read, the next poll refuses its tokens.
        self._epoch = state.purge_epoch
        self._binding = {
            "graph": repository.genesis_id,
            "branch": branch,
            "incarnation": self._head.incarnation,
            "filter": _digest(wanted),
        }

    @property
    def head(self) -> str:
        """The head that this feed read."""
        return self._head.commit_id

    def cursor_at(self, commit_id: str) -> str:
        """Return the cursor after a commit."""
        fields = {**self._binding, "after": commit_id, **self._rights_at(commit_id)}
        return write_token("feed-cursor", self._epoch, fields)

    def _rights_at(self, commit_id: str) -> dict[str, str]:
        """Return the entry of a token for what the caller may see of the branch at a commit; none if everything."""
        if self._sight is None:
            return {}
        rights = self._sight.rights(on_branch(self._repository.snapshot(at=commit_id), self._branch))
        return {} if rights is None else {"rights": rights}

    def _check_rights(self, fields: dict[str, Any], commit_id: str) -> None:
        if fields.get("rights") != self._rights_at(commit_id).get("rights"):
            raise _rights_changed()

    # -- polls -----------------------------------------------------------------------------------

    def start(self, start: str, limits: PageLimits, find_point: FindPoint) -> ChangePage:
        """Run the first poll: from `now`, from the `beginning`, or `after:<commit>`.

        `find_point` returns the point that a name, such as a tag, denotes for the caller.
        """
        if start == "now":
            return ChangePage((), self._head.commit_id, self.cursor_at(self._head.commit_id), None, True)
        check_start(start)
        line = self._line(self._head.commit_id)
        if start == "beginning":
            return self._page(line, limits, None)
        name = start.removeprefix("after:")
        return self._page(self._after_commit(line, _id_in(line, name, find_point), name), limits, None)

    def resume(self, cursor: str, limits: PageLimits) -> ChangePage:
        """Run the next poll from a cursor."""
        fields = read_token(cursor, "feed-cursor", self._binding, {"after": str})
        check_epoch(fields, self._epoch, _purged)
        after = fields["after"]
        line = None if after == self._head.commit_id else self._after_commit(self._line(self._head.commit_id), after)
        self._check_rights(fields, after)
        return ChangePage((), after, cursor, None, True) if line is None else self._page(line, limits, cursor)

    def next_page(self, page: str, limits: PageLimits) -> ChangePage:
        """Return the rest of a poll that stopped inside a commit."""
        fields = read_token(page, "feed-page", self._binding, {"cut": str, "commit": str, "position": list})
        check_epoch(fields, self._epoch, _purged)
        line = self._line(fields["cut"])
        if line[-1].id not in {commit.id for commit in self._line(self._head.commit_id)}:
            raise ChangeCursorRejected("its head is no longer on the branch")
        at = next((position for position, commit in enumerate(line) if commit.id == fields["commit"]), None)
        if at is None:
            raise ChangeCursorRejected("its commit is no longer on the branch")
        self._check_rights(fields, fields["cut"])
        return self._page(line[at:], limits, None, fields["position"])

    def _line(self, head: str) -> list[Commit]:
        """Return the commits from the first one to `head` along first parents."""
        known = self._repository.all_commits()
        line: list[Commit] = []
        commit_id: str | None = head
        while commit_id is not None:
            if commit_id not in known:
                raise ChangeCursorRejected(f"its commit {commit_id} does not exist")
            line.append(known[commit_id])
            commit_id = line[-1].parent_id
        return line[::-1]

    def _after_commit(self, line: list[Commit], after: str, name: str | None = None) -> list[Commit]:
        """Return the commits of a line after one of them; `name` is the name that the caller gave it."""
        for position, commit in enumerate(line):
            if commit.id == after:
                return line[position + 1 :]
        raise ChangeCursorRejected(
            f"commit {(name or after)[:40]} is not on the first-parent line of branch '{self._binding['branch']}'"
        )

    # -- results ---------------------------------------------------------------------------------

    def _page(self, commits: list[Commit], limits: PageLimits, cursor: str | None, position: Any = None) -> ChangePage:
        """Return whole commits within the limits; the first one starts at a position."""
        cut = commits[-1].id if commits else self._head.commit_id
        blocks: list[CommitBlock] = []
        room = _PageBudget(limits)
        seen: str | None = None
        for commit in commits[: limits.commits]:
            try:
                block, rest = self._block(commit, room, position)
            except Damaged as error:
                if error.code != "version_reclaimed":
                    raise
                if seen is None:
                    raise ChangeFeedGap(commit.id, cursor) from error
                break
            position = None
            if rest is not None and seen is not None:
                # A result ends after a whole commit if it can.
                break
            blocks.append(block)
            if rest is not None:
                fields = {**self._binding, "cut": cut, "commit": commit.id, "position": rest, **self._rights_at(cut)}
                return ChangePage(tuple(blocks), cut, None, write_token("feed-page", self._epoch, fields), False)
            seen = commit.id
        last = seen or cut
        return ChangePage(tuple(blocks), cut, self.cursor_at(last), None, last == cut)

    def _block(self, commit: Commit, room: _PageBudget, position: Any) -> tuple[CommitBlock, Any]:
        """Return the changes of a commit that fit, and the position of the last one if more are left."""
        if commit.parent_id is None:
            # A graph is created empty.
            return CommitBlock(commit, ()), None
        images = commit_images(self._repository, commit, self._sight, self._branch)
        changes = _after(read_changes(images, self._columns, self._wanted, _table(position)), position)
        taken, rest = room.take(changes)
        return CommitBlock(commit, taken, images.schema_changed), rest


def _id_in(line: list[Commit], name: str, find_point: FindPoint) -> str:
    """Return the id of the commit of a line that a name denotes; the name itself if there is none.

    A prefix is that of an id of the line: a reader of the branch may list these ids, and perhaps no others.
    """
    ids = [commit.id for commit in line]
    if name in ids:
        return name
    found = find_point(name)
    return found.commit_id if found is not None and found.commit_id in ids else commit_with_prefix(name, ids) or name


def check_start(start: str) -> None:
    """Raise `InputError` if a feed cannot start there."""
    if start not in ("now", "beginning") and not str(start).startswith("after:"):
        raise InputError(
            f"a feed cannot start at '{str(start)[:80]}'", hint="start at 'now', 'beginning' or 'after:<commit>'"
        )


def read_block(
    repository: Repository,
    columns: Columns,
    commit: Commit,
    wanted: ChangeFilter,
    *,
    limits: PageLimits | None = None,
    page: str | None = None,
    sight: Sight | None = None,
) -> CommitBlock:
    """Return the changes of one commit, all of them or one page; `ChangeFeedGap` if a cleanup removed its data.

    With `sight`, they are those that the caller may see on the branch of the commit.
    """
    try:
        return _read_block(repository, columns, commit, wanted, limits, page, sight)
    except Damaged as error:
        if error.code != "version_reclaimed":
            raise
        raise ChangeFeedGap(commit.id, None) from error


def _read_block(
    repository: Repository,
    columns: Columns,
    commit: Commit,
    wanted: ChangeFilter,
    limits: PageLimits | None,
    page: str | None,
    sight: Sight | None,
) -> CommitBlock:
    images = commit_images(repository, commit, sight, commit.branch)
    images.check_schema()
    rights = None if sight is None else both_rights(sight, images.before, images.after)
    binding = {"graph": repository.genesis_id, "commit": commit.id, "filter": _digest(wanted)}
    epoch = min(images.before.purge_epoch, images.after.purge_epoch)
    position = None
    if page is not None:
        fields = read_token(page, "commit-page", binding, {"position": list})
        check_epoch(fields, epoch, _purged_commit)
        if fields.get("rights") != rights:
            raise _rights_changed()
        position = fields["position"]
    if rights is not None:
        binding["rights"] = rights
    changes = _after(read_changes(images, columns, wanted, _table(position)), position)
    if limits is None:
        return CommitBlock(commit, tuple(changes))
    taken, rest = _PageBudget(limits).take(changes)
    token = write_token("commit-page", epoch, {**binding, "position": rest}) if rest is not None else None
    return CommitBlock(commit, taken, page=token)


@dataclass
class _PageBudget:
    """The remaining capacity of a page."""

    limits: PageLimits
    changes: int = field(default=0)
    bytes: int = field(default=0)

    def take(self, changes: Iterator[CommitChange]) -> tuple[tuple[CommitChange, ...], Any]:
        """Return the changes that fit, and the position of the last one if more are left.

        The first change of a page always fits.
        """
        taken: list[CommitChange] = []
        for change in changes:
            size = _size(change)
            full = self.changes >= self.limits.changes or self.bytes + size > self.limits.bytes
            if self.changes and full:
                return tuple(taken), _position(taken[-1]) if taken else _NOWHERE
            taken.append(change)
            self.changes += 1
            self.bytes += size
        return tuple(taken), None


def _position(change: CommitChange) -> list[Any]:
    rank, type_id, id_ = change.sort_key
    return [rank, type_id, short_id(id_)]


def _table(position: Any) -> tuple[int, str] | None:
    if not position:
        return None
    if not (len(position) == len(("rank", "type", "id")) and type(position[0]) is int and type(position[1]) is str):
        raise ChangeCursorRejected("it is not a valid token")
    return position[0], position[1]


def _after(changes: Iterator[CommitChange], position: Any) -> Iterator[CommitChange]:
    """Yield the changes after a position; their order is the same every time."""
    if position:
        for change in changes:
            if change.sort_key[:2] == (position[0], position[1]) and is_id(change.id, position[2]):
                break
        else:
            raise ChangeCursorRejected("its position is not in the commit")
    yield from changes


def _size(change: CommitChange) -> int:
    return len(json.dumps(change.to_json(), ensure_ascii=False).encode())


_BASELINE = "read a baseline: it returns all that you may see and the cursor that continues from it"


def _rights_changed() -> ChangeCursorRejected:
    return ChangeCursorRejected("what you may see has changed since it was issued", hint=_BASELINE)


def _purged(why: str) -> ChangeCursorRejected:
    """Return the error of a token from before a purge: copies of the rows may contain what was removed."""
    return ChangeCursorRejected(why, hint=_BASELINE)


def _purged_commit(why: str) -> ChangeCursorRejected:
    return ChangeCursorRejected(why, hint="read the changes of the commit again from the first page")


def both_rights(sight: Sight, before: Snapshot, after: Snapshot) -> str | None:
    """Return a digest of what may be seen of two snapshots; None if everything is."""
    rights = sight.rights(before), sight.rights(after)
    return None if rights == (None, None) else hashlib.sha256(repr(rights).encode()).hexdigest()[:32]


def _digest(wanted: ChangeFilter) -> str:
    return hashlib.sha256(json.dumps(wanted.to_json()).encode()).hexdigest()[:32]
