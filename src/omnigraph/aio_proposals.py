"""`AsyncProposal`: the methods of `Proposal` as coroutines."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from omnigraph.graph_proposals import Proposal
from omnigraph.proposal_fields import ProposalFields

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Threads(Protocol):
    """Runs calls in the threads of an opened graph."""

    async def read(self, call: Callable[[], T]) -> T:
        """Return the result of a read."""

    async def write(self, name: str, call: Callable[[], T]) -> T:
        """Return the result of a write."""

    def items(self, call: Callable[[], Iterable[T]]) -> AsyncIterator[T]:
        """Return an asynchronous iterator of the items of a call."""


def _read(
    method: Callable[Concatenate[Proposal, P], R],
) -> Callable[Concatenate[AsyncProposal, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a method that reads."""

    @functools.wraps(method)
    async def call(self: AsyncProposal, /, *args: P.args, **kwargs: P.kwargs) -> R:
        found = await self._threads.read(lambda: method(self.proposal, *args, **kwargs))
        self.info = self.proposal.info
        return found

    return call


def _write(
    method: Callable[Concatenate[Proposal, P], R],
) -> Callable[Concatenate[AsyncProposal, P], Coroutine[Any, Any, R]]:
    """Make a coroutine of a method that writes."""

    @functools.wraps(method)
    async def call(self: AsyncProposal, /, *args: P.args, **kwargs: P.kwargs) -> R:
        done = await self._threads.write(method.__name__, lambda: method(self.proposal, *args, **kwargs))
        self.info = self.proposal.info
        return done

    return call


def _change(
    method: Callable[Concatenate[Proposal, P], Proposal],
) -> Callable[Concatenate[AsyncProposal, P], Coroutine[Any, Any, AsyncProposal]]:
    """Make a coroutine of a method that returns the proposal."""
    write = _write(method)

    @functools.wraps(method)
    async def call(self: AsyncProposal, /, *args: P.args, **kwargs: P.kwargs) -> AsyncProposal:
        await write(self, *args, **kwargs)
        return self

    return call


def _items(
    method: Callable[Concatenate[Proposal, P], Iterable[T]],
) -> Callable[Concatenate[AsyncProposal, P], AsyncIterator[T]]:
    """Make an asynchronous iterator of a method; the method is called when the first item is fetched."""

    @functools.wraps(method)
    def call(self: AsyncProposal, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        return self._threads.items(lambda: method(self.proposal, *args, **kwargs))

    return call


class AsyncProposal(ProposalFields):
    """A proposal with the methods of `Proposal`, which run in the threads of its graph.

    Methods are awaited; `diff` and `events` return asynchronous iterators without `await`.
    """

    def __init__(self, proposal: Proposal, threads: Threads) -> None:
        super().__init__(proposal.info)
        self.proposal = proposal
        self._threads = threads

    @property
    def actor(self) -> str | None:
        """The author of the changes that are made by this handle."""
        return self.proposal.actor

    refresh = _change(Proposal.refresh)
    diff = _items(Proposal.diff)
    conflicts = _read(Proposal.conflicts)
    checks = _read(Proposal.checks)
    check_rows = _read(Proposal.check_rows)
    comments = _read(Proposal.comments)
    events = _items(Proposal.events)
    edit = _change(Proposal.edit)
    comment = _write(Proposal.comment)
    edit_comment = _write(Proposal.edit_comment)
    approve = _change(Proposal.approve)
    request_changes = _change(Proposal.request_changes)
    retract = _change(Proposal.retract)
    resolve = _change(Proposal.resolve)
    check = _change(Proposal.check)
    report_check = _change(Proposal.report_check)
    land = _write(Proposal.land)
    close = _change(Proposal.close)
    reopen = _change(Proposal.reopen)
