"""A valid request for every row of the route table, made from its path, its input and a table of values by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin
from urllib.parse import quote

import msgspec

from omnigraph.server.app import GRAPH_PREFIX
from omnigraph.server.route import Route
from omnigraph.wire.requests.request import Request
from support.server import Reply, ServerUnderTest

Values = Mapping[str, Any]


@dataclass(frozen=True)
class RouteRequest:
    """A request of one route: path parameters and members of its input by name."""

    route: Route
    path: Values
    members: Values
    headers: Mapping[str, str] = field(default_factory=dict)
    graph: str | None = None

    @property
    def target(self) -> str:
        """The path."""
        prefix = "" if self.graph is None else GRAPH_PREFIX
        names = {"graph_id": self.graph or "", **self.path}
        segments = [quote(str(names[part[1:-1]]), safe="") if part[:1] == "{" else part for part in self._parts(prefix)]
        return "/".join(segments)

    def _parts(self, prefix: str) -> list[str]:
        return (prefix + self.route.path).split("/")

    def with_value(self, name: str, value: Any) -> RouteRequest:
        """Return the request with another value of a path parameter or member."""
        if name in self.path:
            return replace(self, path={**self.path, name: value})
        return replace(self, members={**self.members, name: value})

    def send(self, server: ServerUnderTest, **options: Any) -> Reply:
        """Send the request."""
        headers = {**self.headers, **options.pop("headers", {})}
        method = self.route.method
        if self.route.body == "json":
            return server.request(method, self.target, dict(self.members), headers=headers, **options)
        body: bytes | None = None
        if self.route.body == "stream":
            body = self.members.get("data", "").encode()
            headers.setdefault("Content-Type", self.route.media_types[0])
        members = {name: value for name, value in self.members.items() if name != "data"}
        return server.request(method, self.target, body, params=members, headers=headers, **options)


def request_of(route: Route, values: Values, *, graph: str | None = None) -> RouteRequest:
    """Return a request: required members, and optional ones of which `values` has a value.

    `values` has a value by member name; one for a single route has the name `ROUTE.MEMBER`, and there None leaves the
    member out.
    """
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    path = {name: _value(route, name, values, str) for name in names}
    members = {}
    for member in msgspec.structs.fields(route.input) if route.input is not None else ():
        name = member.encode_name
        given = values.get(f"{route.name}.{name}", values.get(name))
        if member.required or given is not None or (route.body == "stream" and name == "data"):
            members[name] = _value(route, name, values, member.type)
    if route.body == "stream":
        members["data"] = values.get("data", "")
    headers = {}
    if route.conditional:
        headers["Omnigraph-If-Graph-Commit"] = str(values.get("commit_id", "0"))
    return RouteRequest(
        route, path, {name: value for name, value in members.items() if value is not None}, headers, graph
    )


def _value(route: Route, name: str, values: Values, type_: Any) -> Any:
    for key in (f"{route.name}.{name}", name):
        if key in values:
            value = values[key]
            return [value] if isinstance(value, str) and _is_list(type_) else value
    return _any_value(type_)


def _is_list(type_: Any) -> bool:
    origin = get_origin(type_)
    if origin is Annotated:
        return _is_list(get_args(type_)[0])
    if origin in (Union, UnionType):
        return any(map(_is_list, get_args(type_)))
    return origin is list


def _any_value(type_: Any) -> Any:
    """Return some value of a type."""
    origin = get_origin(type_)
    if origin is Annotated:
        return _any_value(get_args(type_)[0])
    if origin is Literal:
        return get_args(type_)[0]
    if origin in (Union, UnionType):
        return _any_value(next(each for each in get_args(type_) if each is not type(None)))
    if origin is list:
        return [_any_value(get_args(type_)[0])]
    if isinstance(type_, type) and issubclass(type_, Request):
        required = [member for member in msgspec.structs.fields(type_) if member.required]
        return {member.encode_name: _any_value(member.type) for member in required}
    return {int: 1, float: 0.5, bool: False, dict: {}}.get(type_, "x")


def text_of(reply: Reply) -> str:
    """Return everything that a client sees of a reply."""
    return json.dumps(dict(reply.headers)) + reply.body.decode("utf-8", "replace")
