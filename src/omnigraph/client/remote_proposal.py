"""`RemoteProposal` and `AsyncRemoteProposal`: a proposal of a server, with the methods of `Proposal`."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, TypeVar

from omnigraph.client.call import Call
from omnigraph.client.calls.diffs import Difference
from omnigraph.client.calls.handle import CallHandle
from omnigraph.client.calls.proposals import OneProposalCalls
from omnigraph.client.transport.async_loop import AsyncLoop
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.operations.proposals.proposal_events import ProposalEvent
from omnigraph.operations.proposals.proposal_info import ProposalInfo
from omnigraph.proposal_fields import ProposalFields
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.compare.diff import RowChange

P = ParamSpec("P")
R = TypeVar("R")


class _RemoteFields(ProposalFields):
    def __init__(self, handle: CallHandle, info: ProposalInfo) -> None:
        super().__init__(info)
        self._calls = OneProposalCalls(handle, info.id)

    @property
    def actor(self) -> str | None:
        """The actor of the token."""
        return self._calls.actor


def _run(method: Callable[Concatenate[OneProposalCalls, P], Call[R]]) -> Callable[Concatenate[RemoteProposal, P], R]:
    """Make a method of a call that returns a value; a call that changes the proposal is followed by a refresh."""
    reads = method.__name__ in _READS

    @functools.wraps(method)
    def run(self: RemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> R:
        found = self._loop.run(method(self._calls, *args, **kwargs))
        if not reads:
            self.refresh()
        return found

    return run


def _change(
    method: Callable[Concatenate[OneProposalCalls, P], Call[ProposalInfo]],
) -> Callable[Concatenate[RemoteProposal, P], RemoteProposal]:
    """Make a method of a call that returns the state of the proposal."""

    @functools.wraps(method)
    def change(self: RemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> RemoteProposal:
        self.info = self._loop.run(method(self._calls, *args, **kwargs))
        return self

    return change


def _change_set(
    method: Callable[Concatenate[OneProposalCalls, P], Call[Difference]],
) -> Callable[Concatenate[RemoteProposal, P], ChangeSet]:
    """Make a method that returns a change set."""

    @functools.wraps(method)
    def diff(self: RemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> ChangeSet:
        return self._loop.run(method(self._calls, *args, **kwargs)).change_set(self._loop.iterate)

    return diff


_READS = ("conflicts", "checks", "check_rows", "comments")


class RemoteProposal(_RemoteFields):
    """A proposal of a server, with the attributes and methods of `Proposal`."""

    def __init__(self, loop: SyncLoop, handle: CallHandle, info: ProposalInfo) -> None:
        super().__init__(handle, info)
        self._loop = loop

    refresh = _change(OneProposalCalls.refresh)
    diff = _change_set(OneProposalCalls.diff)
    conflicts = _run(OneProposalCalls.conflicts)
    checks = _run(OneProposalCalls.checks)
    check_rows = _run(OneProposalCalls.check_rows)
    comments = _run(OneProposalCalls.comments)

    def events(self, after: int = 0) -> Iterator[ProposalEvent]:
        """Yield the events with numbers above `after`."""
        yield from self._loop.run(self._calls.events(after))

    edit = _change(OneProposalCalls.edit)
    comment = _run(OneProposalCalls.comment)
    edit_comment = _run(OneProposalCalls.edit_comment)
    approve = _change(OneProposalCalls.approve)
    request_changes = _change(OneProposalCalls.request_changes)
    retract = _change(OneProposalCalls.retract)
    resolve = _change(OneProposalCalls.resolve)
    check = _change(OneProposalCalls.check)
    report_check = _change(OneProposalCalls.report_check)
    land = _run(OneProposalCalls.land)
    close = _change(OneProposalCalls.close)
    reopen = _change(OneProposalCalls.reopen)


def _await(
    method: Callable[Concatenate[OneProposalCalls, P], Call[R]],
) -> Callable[Concatenate[AsyncRemoteProposal, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a call that returns a value; a call that changes the proposal is followed by a refresh."""
    reads = method.__name__ in _READS

    @functools.wraps(method)
    async def run(self: AsyncRemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> R:
        found = await self._loop.run(method(self._calls, *args, **kwargs))
        if not reads:
            await self.refresh()
        return found

    return run


def _await_change(
    method: Callable[Concatenate[OneProposalCalls, P], Call[ProposalInfo]],
) -> Callable[Concatenate[AsyncRemoteProposal, P], Coroutine[Any, Any, AsyncRemoteProposal]]:
    """Make a coroutine of a call that returns the state of the proposal."""

    @functools.wraps(method)
    async def change(self: AsyncRemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRemoteProposal:
        self.info = await self._loop.run(method(self._calls, *args, **kwargs))
        return self

    return change


def _changes(
    method: Callable[Concatenate[OneProposalCalls, P], Call[Difference]],
) -> Callable[Concatenate[AsyncRemoteProposal, P], AsyncIterator[RowChange]]:
    """Make an asynchronous iterator of the changes of a proposal."""

    @functools.wraps(method)
    async def diff(self: AsyncRemoteProposal, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[RowChange]:
        for change in (await self._loop.run(method(self._calls, *args, **kwargs))).rows():
            yield change

    return diff


class AsyncRemoteProposal(_RemoteFields):
    """A proposal of a server, with the attributes and methods of `AsyncProposal`."""

    def __init__(self, loop: AsyncLoop, handle: CallHandle, info: ProposalInfo) -> None:
        super().__init__(handle, info)
        self._loop = loop

    refresh = _await_change(OneProposalCalls.refresh)
    diff = _changes(OneProposalCalls.diff)
    conflicts = _await(OneProposalCalls.conflicts)
    checks = _await(OneProposalCalls.checks)
    check_rows = _await(OneProposalCalls.check_rows)
    comments = _await(OneProposalCalls.comments)

    async def events(self, after: int = 0) -> AsyncIterator[ProposalEvent]:
        """Yield the events with numbers above `after`."""
        for event in await self._loop.run(self._calls.events(after)):
            yield event

    edit = _await_change(OneProposalCalls.edit)
    comment = _await(OneProposalCalls.comment)
    edit_comment = _await(OneProposalCalls.edit_comment)
    approve = _await_change(OneProposalCalls.approve)
    request_changes = _await_change(OneProposalCalls.request_changes)
    retract = _await_change(OneProposalCalls.retract)
    resolve = _await_change(OneProposalCalls.resolve)
    check = _await_change(OneProposalCalls.check)
    report_check = _await_change(OneProposalCalls.report_check)
    land = _await(OneProposalCalls.land)
    close = _await_change(OneProposalCalls.close)
    reopen = _await_change(OneProposalCalls.reopen)
