"""Runs writes: until they land, once per idempotency key, and small ones in groups.

A write is a function that records changes on a transaction. If the branch moved since the snapshot, the transaction is
abandoned and the function is called again on a new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple

from omnigraph.cancellation import check_cancelled, ignore_cancellation
from omnigraph.errors import Cancelled, Damaged, HeadMoved, OmniGraphError, OutcomeUnknown
from omnigraph.observer import current
from omnigraph.storage.backoff import pause
from omnigraph.storage.failpoints import reach
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.write.group_commit import GroupMember, GroupTransaction
from omnigraph.versioning.write.idempotency import Earlier, find_earlier, once
from omnigraph.versioning.write.queue import Leader, QueuedWrite
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions

WRITE_TRIES = 64

Prepare = Callable[[Transaction], None]


class Written(NamedTuple):
    """The outcome of a write."""

    commit: Commit | None
    """The commit; None if nothing changed."""
    earlier: Earlier | None = None
    """What an earlier request with the same idempotency key did, if its result is returned instead of a new one."""


def write(repository: Repository, prepare: Prepare, options: WriteOptions | None = None) -> Commit | None:
    """Run a write until it lands, and return its commit; `prepare` records the changes on each new snapshot.

    If the branch moved, the write starts over on a new snapshot, except with `if_commit` or `expected_versions`. A
    request whose idempotency key was used before returns the commit that it made then.
    """
    return write_once(repository, prepare, options or WriteOptions()).commit


def write_once(repository: Repository, prepare: Prepare, options: WriteOptions) -> Written:
    """Run a write as `write` does, and also return what an earlier request with the same idempotency key did."""

    def restore(earlier: Earlier) -> Written:
        return Written(earlier.commit, earlier)

    return once(
        repository,
        options.request_key,
        lambda: _in_turn(repository, prepare, options),
        restore,
        lambda written: written.commit is not None,
    )


@dataclass
class _Work:
    """A write in the queue."""

    prepare: Prepare
    options: WriteOptions
    alone: bool
    """True if the write must not be published together with others."""
    written: Written | None = None


def _in_turn(repository: Repository, prepare: Prepare, options: WriteOptions) -> Written:
    if not options.queued:
        return _write(repository, prepare, options)
    work = _Work(prepare, options, alone=options.is_bound)

    def alone() -> None:
        work.written = _write(repository, prepare, options)

    repository.queue.run(options.branch, work, lambda leader: _lead(repository, leader), alone)
    assert work.written is not None, "a write that was run has an outcome"
    return work.written


def _write(repository: Repository, prepare: Prepare, options: WriteOptions) -> Written:
    for attempt in range(WRITE_TRIES):
        transaction: Transaction | None = None
        try:
            with _attempt(repository, options.branch, attempt):
                transaction = Transaction(repository, options)
                prepare(transaction)
                check_cancelled()
                return _committed(transaction)
        except (HeadMoved, Damaged) as error:
            _start_over(repository, transaction, error, attempt, bound=options.is_bound)
    raise AssertionError("the loop returns or raises")


@contextmanager
def _attempt(repository: Repository, branch: str, number: int) -> Iterator[None]:
    """Hold the lock of contended writers, if the branch is contended, for one attempt of a write."""
    contended = number or repository.is_contended(branch)
    with repository.manifest.locks.retry_lock(branch) if contended else nullcontext():
        check_cancelled()
        yield


def _start_over(
    repository: Repository,
    transaction: Transaction | None,
    error: HeadMoved | Damaged,
    attempt: int,
    *,
    bound: bool = False,
) -> None:
    """Pause before the next attempt of a write that lost a race; raise the error if there is none."""
    if isinstance(error, Damaged) and not _is_outdated(transaction, error):
        raise error
    branch = transaction.options.branch if transaction is not None else None
    if branch is not None:
        repository.record_lost_race(branch)
    if bound or attempt == WRITE_TRIES - 1:
        raise error
    observer = current()
    if observer is not None:
        observer.retried()
    pause(attempt)


def _committed(transaction: Transaction) -> Written:
    """Commit a transaction and report its commit."""
    started = time.perf_counter()
    commit = transaction.commit()
    if commit is not None and transaction.earlier is None:
        _report(commit, started)
    return Written(commit, transaction.earlier)


def _report(commit: Commit, started: float) -> None:
    observer = current()
    if observer is not None:
        observer.committed(commit.kind, time.perf_counter() - started)


def _is_outdated(transaction: Transaction | None, error: Damaged) -> bool:
    """Return True if files are missing because the branch moved and a cleanup removed the write's base version."""
    if transaction is None or error.code not in ("missing_file", "version_reclaimed"):
        return False
    snapshot = transaction.snapshot
    head = transaction.repository.state().find_head(transaction.options.branch)
    if head is None:
        return False
    is_purged = transaction.repository.state().purge_epoch != transaction.state.purge_epoch
    return is_purged or head.commit_id != snapshot.commit_id


# -- groups ------------------------------------------------------------------------------------------


@dataclass
class _Taken:
    """A write that the leader runs: its outcome is delivered after the publish."""

    queued: QueuedWrite[_Work]
    member: GroupMember | None = None
    error: BaseException | None = None
    earlier: Earlier | None = None


def _lead(repository: Repository, leader: Leader[_Work]) -> None:
    """Run the first write of the queue, together with those that wait behind it and can join it."""
    first = leader.first.work
    if first.alone:
        first.written = _write(repository, first.prepare, first.options)
        return
    group = _Group(repository, leader)
    try:
        group.run()
    finally:
        group.put_back()


class _Group:
    """The writes of one group, over all attempts to publish it."""

    def __init__(self, repository: Repository, leader: Leader[_Work]) -> None:
        self._repository = repository
        self._leader = leader
        self._branch = leader.first.work.options.branch
        self._taken: list[_Taken] = [_Taken(leader.first)]

    def run(self) -> None:
        """Publish the group. If that fails, the leader runs alone, and the others wait for another turn."""
        first = self._taken[0].queued.work
        try:
            self._publish()
        except (Cancelled, OutcomeUnknown):
            raise
        except Exception:
            if len(self._taken) == 1:
                raise
            # One of the writes may be the cause: each is run on its own and gets its own error.
            for taken in self._taken:
                taken.queued.work.alone = True
            self.put_back()
            first.written = _write(self._repository, first.prepare, first.options)

    def _publish(self) -> None:
        for attempt in range(WRITE_TRIES):
            transaction: Transaction | None = None
            try:
                with _attempt(self._repository, self._branch, attempt):
                    state = self._repository.state()
                    transaction = GroupTransaction(self._repository, self._branch, state)
                    single = self._prepare(transaction, attempt)
                    check_cancelled()
                    self._commit(transaction, single)
                    return
            except (HeadMoved, Damaged) as error:
                _start_over(self._repository, transaction, error, attempt)
        raise AssertionError("the loop returns or raises")

    def _prepare(self, transaction: GroupTransaction, attempt: int) -> Transaction | None:
        """Prepare the writes in order, then further ones from the queue.

        Return the transaction of the first write if it is published on its own.
        """
        position = 0
        first: Transaction | None = None
        while position < len(self._taken) or self._take(transaction):
            taken = self._taken[position]
            taken.member = taken.error = taken.earlier = None
            work = taken.queued.work
            one = Transaction(
                self._repository,
                work.options,
                state=transaction.state,
                pending=transaction.pending,
                based_on=transaction.based_on,
            )
            first = first or one
            try:
                if attempt:
                    # A concurrent request with the same key may have won the race.
                    taken.earlier = find_earlier(self._repository, work.options.request_key, transaction.state)
                if taken.earlier is None:
                    taken.queued.context.run(_prepare_one, work.prepare, one)
                    taken.member = transaction.admit(one)
                    if taken.member is None:
                        self.put_back(after=max(position, 1))
                        break
            except (HeadMoved, Damaged, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:
                if len(self._taken) == 1:
                    raise
                taken.error = error
            position += 1
        alone = len(self._taken) == 1 and self._taken[0].error is None and self._taken[0].earlier is None
        return first if alone else None

    def _take(self, transaction: GroupTransaction) -> bool:
        """Take the next write of the queue, if it can join."""
        if transaction.is_full:
            return False
        queued = self._leader.take()
        if queued is None:
            return False
        if queued.work.alone:
            self._leader.put_back([queued])
            return False
        self._taken.append(_Taken(queued))
        return True

    def _commit(self, transaction: GroupTransaction, single: Transaction | None) -> None:
        """Publish the prepared writes and deliver the outcomes."""
        started = time.perf_counter()
        first = self._taken[0]
        if single is not None:
            first.queued.work.written = _committed(single)
            return
        if len(self._taken) > 1:
            reach("group.prepared")
        try:
            transaction.commit()
        except BaseException as error:
            if transaction.is_published:
                self._deliver_all(self._taken[1:], started)
            elif isinstance(error, OutcomeUnknown) or (
                transaction.is_attempted and not isinstance(error, OmniGraphError)
            ):
                # The publish was interrupted: none of the writes may be made again.
                for taken in self._taken[1:]:
                    taken.error = taken.error or _unknown(error, taken)
                self._deliver_all(self._taken[1:], started)
                if isinstance(error, OutcomeUnknown):
                    raise first.error or _unknown(error, first) from error
            raise
        self._deliver_all(self._taken, started)

    def _deliver_all(self, taken: Sequence[_Taken], started: float) -> None:
        """Give writes their outcomes. They are not put back any more."""
        self._taken = self._taken[:1]
        try:
            for one in taken:
                self._deliver(one, started)
        except BaseException:
            # An interrupt of this thread must not leave others waiting.
            for one in taken:
                self._deliver(one, started)
            raise

    def _deliver(self, taken: _Taken, started: float) -> None:
        """Give a write its outcome, in the thread that waits for it."""
        commit = taken.member.commit if taken.member is not None else None
        error, work = taken.error, taken.queued.work
        work.written = Written(taken.earlier.commit if taken.earlier is not None else commit, taken.earlier)

        def finish() -> None:
            if error is not None:
                raise error
            if commit is not None:
                ignore_cancellation()
                _report(commit, started)

        taken.queued.deliver(finish)

    def put_back(self, *, after: int = 1) -> None:
        """Let the writes from position `after` on wait again."""
        self._leader.put_back([taken.queued for taken in self._taken[after:]])
        del self._taken[after:]


def _prepare_one(prepare: Prepare, transaction: Transaction) -> None:
    check_cancelled()
    prepare(transaction)


def _unknown(error: BaseException, taken: _Taken) -> OutcomeUnknown:
    """Return the error of a group as the error of one of its writes."""
    commit_id = (taken.member.commit_id or None) if taken.member is not None else None
    if isinstance(error, OutcomeUnknown):
        return OutcomeUnknown(error.message, commit_id=commit_id, code=error.code, hint=error.hint)
    return OutcomeUnknown(
        "the publish was interrupted; the commit may exist", commit_id=commit_id, hint="read the head before retrying"
    )
