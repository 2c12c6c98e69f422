"""The four forms of one graph: embedded, over a socket, and the asynchronous form of each.

A body is a function of a graph. It runs on every form, each with a copy of the same graph, and returns what it saw.
`described` replaces what differs between copies, such as ids and times, so that the observations can be compared.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.engine.result.result import Result
from omnigraph.errors import OmniGraphError
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.changeset import ChangeSet
from omnigraph.versioning.model.snapshot_view import SnapshotView
from support.server import serving

ACTOR, GUEST = "ana", "guest"
TOKENS = {ACTOR: "token-of-ana", GUEST: "token-of-guest"}
SECRET = "secret"
"""A branch that the actor may not change, and the only one that the guest may read."""
POLICY = f"""version: 1
groups: {{team: [{ACTOR}], guests: [{GUEST}]}}
protected_branches: [{SECRET}]
rules:
  - id: team-reads
    allow: {{actors: {{group: team}}, actions: [read, export, maintain, tag_delete], branch_scope: any}}
  - id: team-changes
    allow: {{actors: {{group: team}}, actions: [change, tag_create], branch_scope: unprotected}}
  - id: team-makes-branches
    allow:
      actors: {{group: team}}
      actions: [schema_apply, branch_create, branch_delete, branch_merge]
      target_branch_scope: unprotected
  - id: team-purges
    allow: {{actors: {{group: team}}, actions: [purge]}}
  - id: guests-read
    allow: {{actors: {{group: guests}}, actions: [read], branch_scope: protected}}
"""
FORMS = ("embedded", "remote", "async", "async_remote")

Body = Callable[[Any], Any]


class Variants:
    """One graph in four forms."""

    def __init__(self, graphs: Mapping[tuple[str, str], Any], folder: Path) -> None:
        self.graphs = graphs
        self._folder = folder

    def observe(self, form: str, body: Body, actor: str = ACTOR) -> Any:
        """Return the described value of a body on one form."""
        folder = self._folder / form
        folder.mkdir(exist_ok=True)
        graph = self.graphs[form, actor]
        arguments = [graph] if len(inspect.signature(body).parameters) == 1 else [graph, folder]
        return Description(folder).of(body(*arguments))

    def check(self, body: Body, actor: str = ACTOR) -> None:
        """Run a body on every form; every form must give what the embedded graph gives."""
        expected = self.observe("embedded", body, actor)
        for form in FORMS[1:]:
            found = list(differences(expected, self.observe(form, body, actor), form))
            assert not found, "\n".join(found[:10])


@contextmanager
def variants_of(make: Callable[[Path], object], folder: Path, rules: str = POLICY) -> Iterator[Variants]:
    """Make a graph at a path, and open a copy of it in each form, with a policy."""
    make(folder / "origin.omni")
    policy = folder / "policy.yaml"
    policy.write_text(rules, encoding="utf-8")
    uris = {form: str(shutil.copytree(folder / "origin.omni", folder / f"{form}.omni")) for form in FORMS}
    config = folder / "omnigraph.yaml"
    served = {"remote": uris["remote"], "async": uris["async_remote"]}
    config.write_text(
        json.dumps({"graphs": {name: {"uri": uri, "policy": {"file": str(policy)}} for name, uri in served.items()}}),
        encoding="utf-8",
    )
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS)}
    with ExitStack() as stack:
        server = stack.enter_context(serving(config=config, environ=environ))
        loop = asyncio.new_event_loop()
        stack.callback(loop.close)
        graphs = {}
        for actor in TOKENS:
            opened = stack.enter_context(_opened(uris, policy, actor, server.url, loop.run_until_complete))
            graphs |= {(form, actor): graph for form, graph in opened.items()}
        yield Variants(graphs, folder)


@contextmanager
def _opened(
    uris: Mapping[str, str], policy: Path, actor: str, url: str, wait: Callable[[Any], Any]
) -> Iterator[dict[str, Any]]:
    """Open every form of a graph for an actor."""
    with ExitStack() as stack:
        token = TOKENS[actor]
        remote = stack.enter_context(og.connect(f"{url}/graphs/remote", token))
        embedded_async = wait(og.aopen(uris["async"], policy=policy, actor=actor))
        stack.callback(lambda: wait(embedded_async.aclose()))
        remote_async = wait(og.aconnect(f"{url}/graphs/async", token))
        stack.callback(lambda: wait(remote_async.aclose()))
        yield {
            "embedded": og.open(uris["embedded"], policy=policy, actor=actor),
            "remote": remote,
            "async": Awaited(embedded_async, wait),
            "async_remote": Awaited(remote_async, wait),
        }


class Awaited:
    """An object with coroutines as one with ordinary methods; asynchronous iterators become lists."""

    _PROPERTIES = ("schema", "newest_version", "uri")
    """Properties of `Graph` that are awaited."""

    def __init__(self, target: Any, wait: Callable[[Any], Any]) -> None:
        self._target = target
        self._wait = wait

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found
        if name in self._PROPERTIES:
            return self._settle(found())
        return lambda *args, **kwargs: self._settle(found(*args, **kwargs))

    def _settle(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            return self._settle(self._wait(value))
        if isinstance(value, AsyncIterator):
            return iter(self._wait(_listed(value)))
        return Awaited(value, self._wait) if type(value).__name__.startswith("Async") else value


async def _listed(items: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in items]


def differences(expected: Any, actual: Any, path: str) -> Iterator[str]:
    """Yield the places at which two descriptions differ."""
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif isinstance(expected, dict) and isinstance(actual, dict) and expected.keys() == actual.keys():
        for name, one in expected.items():
            yield from differences(one, actual[name], f"{path}.{name}")
    elif expected != actual:
        yield f"{path}: expected {str(expected)[:600]}\n    found {str(actual)[:600]}"


def failure(call: Callable[[], Any]) -> Any:
    """Return the error of a call, or its value if there is none."""
    try:
        return call()
    except OmniGraphError as error:
        return error


_IDS = re.compile(r"\b[0-9A-HJKMNP-TV-Z]{26}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_TIMES = re.compile(r"\b2\d{3}-\d\d-\d\d(?:T\d\d:\d\d:\d\d\.\d{3,6}Z| \d\d:\d\d:\d\d(?= \|))")
"""Times in JSON, and in the column of a printed table."""
_UNEQUAL = frozenset({"created_us", "elapsed_ms", "transaction", "uri"})
"""Attributes that differ between two runs."""
_RECORDED = frozenset({"request_id", "affected"})
"""Metadata of a commit that a server records: its request, and the counts of a write with an idempotency key."""
_TOKENS = frozenset({"next", "cursor", "page", "resume_cursor"})


class Description:
    """Converts values to nested lists that are equal for equal observations. Every value has the name of its type.

    Ids are numbered in the order in which they appear, so that equal ids stay equal.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._numbers: dict[str, int] = {}

    def of(self, value: Any) -> Any:
        """Return the description of a value."""
        match value:
            case None | bool():
                return value
            case int() | float() | bytes() | date():
                return self._scalar(value)
            case str():
                # A table key is a text with methods; the engine uses both.
                return ["str" if isinstance(value, TableKey) else type(value).__name__, self._text(value)]
            case OmniGraphError():
                return [type(value).__name__, self.of(value.args), self._members(_error_members(value))]
            case Mapping():
                return [type(value).__name__, self._members(value)]
            case list() | tuple():
                return [type(value).__name__, *map(self.of, value)]
            case _:
                return self._object(value)

    def _scalar(self, value: Any) -> Any:
        return (
            [type(value).__name__, value.isoformat(), str(value.tzinfo)]
            if isinstance(value, datetime)
            else [
                type(value).__name__,
                repr(value),
            ]
        )

    def _object(self, value: Any) -> Any:
        match value:
            case Result() if not value.columns:
                return ["Result", "no columns"]
            case Result():
                rows = {"columns": value.columns, "rows": value.to_pylist(), "cells": value.to_columns()}
                named = {"query_name": value.query_name, "commit": value.commit_id, "more": value.next is not None}
                return ["Result", _shown(value.schema), self.of({**rows, **named, "text": str(value)})]
            case pa.Table() | pa.RecordBatch():
                return ["rows", _shown(value.schema), self.of(value.to_pylist())]
            case ChangeSet():
                shown = {"steps": value.schema_steps, "commits": value.commits, "next": value.next, "text": repr(value)}
                return ["ChangeSet", self._members({**shown, "counts": value.counts()}), self.of(list(value))]
            case SnapshotView():
                return ["Snapshot", self._members(_snapshot_members(value))]
            case _ if is_dataclass(value):
                return [
                    type(value).__name__,
                    self._members({each.name: getattr(value, each.name) for each in fields(value)}),
                ]
        raise AssertionError(f"a {type(value).__name__} has no description")

    def _members(self, members: Mapping[Any, Any]) -> Any:
        shown = {str(name): value for name, value in members.items() if name not in _RECORDED}
        return {name: self._member(name, shown[name]) for name in sorted(shown)}

    def _member(self, name: str, value: Any) -> Any:
        if name in _UNEQUAL and value is not None:
            return f"<{name}>"
        if name in _TOKENS and isinstance(value, str):
            return f"<{name}>"
        return self.of(value)

    def _text(self, text: str) -> str:
        text = text.replace(self._folder, "<folder>")
        text = _TIMES.sub("<time>", text)
        return _IDS.sub(lambda found: f"<id {self._numbers.setdefault(found[0], len(self._numbers))}>", text)


def _shown(schema: pa.Schema) -> str:
    """Return names and types. The metadata of fields are those of the storage."""
    return str(schema.to_string(show_field_metadata=False, show_schema_metadata=False))


def _error_members(error: OmniGraphError) -> dict[str, Any]:
    hint = error.hint
    variants = {"cli": hint.cli, "shell": hint.shell} if isinstance(hint, og.errors.Hint) else {}
    members = {name: value for name, value in vars(error).items() if name != "idempotency_key"}
    return {**members, "hint": hint and str(hint), "variants": variants, "text": str(error)}


def _snapshot_members(snapshot: SnapshotView) -> dict[str, Any]:
    names = ("branch", "commit_id", "version", "schema_hash", "tables", "commit", "made_on", "schema", "format")
    return {**{name: getattr(snapshot, name) for name in names}, "json": snapshot.to_json(), "text": repr(snapshot)}
