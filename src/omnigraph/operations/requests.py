"""Requests: the arguments of a read or a mutation, validated once and passed down as one object.

Requests are named tuples. They are immutable and take a third of the construction time of a frozen dataclass, which is
measurable in a point lookup.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal, NamedTuple

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import NO_LIMITS, Limits
from omnigraph.errors import Hint, InputError
from omnigraph.storage.files.input_files import read_source
from omnigraph.versioning.write.repository import At
from omnigraph.versioning.write.transaction import WriteOptions

Params = Mapping[str, Any]
_MAPPING = (dict, Mapping)
"""A `dict` is tested first: the test of an abstract class takes five times as long."""

Executor = Literal["memory", "pipeline", "spark", "auto"]
"""`memory` takes the fast path for a plan that has one, else the pipeline; `pipeline` never takes the fast path;
`spark` runs the plan as joins of DataFrames; `auto` is `memory` if the match fits the memory budget."""


class ExceedsBudget(Exception):
    """Raised by the executor `auto` if the estimated size of a match exceeds the memory budget."""


class QueryText(NamedTuple):
    """One query of a source text, with its parameters."""

    text: str
    name: str | None = None
    """The name of the query; None if the text holds one query only."""
    params: dict[str, Any] | None = None
    source_name: str = "<query>"
    """The name of the text in messages: a file path, or `<query>`."""

    @classmethod
    def of(cls, source: str | Path, name: str | Params | None, params: Params | None) -> QueryText:
        """Return the query that the arguments of a call describe; a mapping in place of the name is the parameters."""
        if name is not None and not isinstance(name, str):
            name, params = None, _only_params(name, params)
        text, source_name = read_source(source)
        # `bind_params` rejects parameters that are not a mapping.
        return cls(text, name, dict(params) if isinstance(params, _MAPPING) else params, source_name)


class PageRequest(NamedTuple):
    """One page of a result: its size and the cursor it starts after."""

    rows: int
    after: str | None = None

    @classmethod
    def of(cls, rows: int | None, after: str | None) -> PageRequest | None:
        """Return the requested page; None if the whole result is requested."""
        if rows is None and after is None:
            return None
        if type(rows) is not int or rows < 1:
            raise InputError(
                "a cursor needs a page size" if rows is None else f"the page size must be at least 1 (got {rows!r})",
                code="bad_page",
                hint=Hint("give the number of rows: page=100", cli="give the number of rows: --page 100"),
            )
        return cls(rows, after)


class ReadRequest(NamedTuple):
    """One read: query, snapshot, limits, page and executor."""

    query: QueryText
    branch: str
    at: At = None
    limits: Limits = NO_LIMITS
    page: PageRequest | None = None
    executor: Executor = "memory"
    spark: Any = None
    """For the executor `spark`: a session, `omnigraph.spark.SessionOptions`, or None for the active session."""
    watch: Callable[[Any], None] | None = None
    """For the executor `spark`: called with the progress."""


class MutationRequest(NamedTuple):
    """One mutation: query, branch and commit options. A dry run writes nothing."""

    query: QueryText
    options: WriteOptions
    dry_run: bool = False


def _only_params(name: Any, params: Params | None) -> Params:
    """Return the parameters that are given in place of the name."""
    if not isinstance(name, Mapping):
        raise InputError(
            f"the name of a query is a str and its parameters are a mapping, not {type(name).__name__}",
            hint="write query(source, name, params) or query(source, {'id': 1})",
        )
    if params is not None:
        raise InputError(
            "parameters are given twice", hint="write query(source, name, params) or query(source, params)"
        )
    return name


def limits_of(limits: Limits | None, timeout: float | None, cancel: Cancellation | None) -> Limits:
    """Return the limits of a call; arguments of wrong types raise `InputError`.

    `timeout` and `cancel` replace those of `limits`.
    """
    given = NO_LIMITS if limits is None else limits
    if not isinstance(given, Limits):
        raise InputError(
            f"limits takes Limits(rows_max=…, bytes_max=…), not {type(given).__name__}",
            hint="write limits=og.Limits(rows_max=1_000_000), for example; og is the package omnigraph",
        )
    if timeout is None and cancel is None:
        return given
    if timeout is None:
        return replace(given, cancellation=cancel)
    check_seconds(timeout)
    return replace(given, timeout_s=timeout, cancellation=given.cancellation if cancel is None else cancel)


def check_seconds(timeout: Any) -> None:
    """Raise `InputError` if a timeout is not a number of seconds."""
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise InputError(
            f"a timeout is a number of seconds, not {type(timeout).__name__}", hint="write timeout=2.5, for example"
        )
    if timeout != timeout:
        raise InputError("a timeout is a number of seconds, not NaN", hint="omit it for no time limit")


def source_text(text: str) -> str:
    """Return a query or schema text that `Graph` never takes for the name of a file: no name ends in a line feed."""
    return f"{text}\n" if text.endswith((".gq", ".pg")) else text
