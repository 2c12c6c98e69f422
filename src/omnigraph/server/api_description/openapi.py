"""The OpenAPI 3.1 document of the server, made from the route table and the schemas of its documents.

With one graph the paths are flat; with several they are below `/graphs/{graph_id}`. In open mode the document has no
security scheme. `openapi.json` in this folder is the flat form with security; a test compares it with this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from omnigraph.server.messages.content_negotiation import MEDIA_TYPES, Form
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from omnigraph.version import __version__
from omnigraph.wire.component_names import ENUM_NAMES, component_name
from omnigraph.wire.document import Document
from omnigraph.wire.errors import ErrorDocument
from omnigraph.wire.requests.request import Request
from omnigraph.wire.server_state import OperationDocument

Schema = dict[str, Any]

GRAPH_PREFIX = "/graphs/{graph_id}"
SECURITY = "bearer_token"
_REF = "#/components/schemas/"
_PARAMETER = re.compile(r"\{(\w+)\}")
_EVERY_STATUS = (400, 404, 405, 406, 414, 431, 500, 503)
"""Error statuses of every route."""
_PROTECTED_STATUSES = (401, 403, 413, 429)
_BODY_STATUSES = (413, 415)
_REASONS = {
    400: "The request is not valid.",
    401: "The token is missing, unknown or expired.",
    403: "The policy denies the action.",
    404: "The path, graph, branch, commit or row does not exist.",
    405: "The path does not take this method.",
    406: "The route does not answer in the requested form.",
    409: "The request conflicts with the state of the graph.",
    410: "The page or the history is gone.",
    412: "The branch is not at the expected commit.",
    413: "The request or the result exceeds a limit.",
    414: "The URL exceeds its limit.",
    415: "The route does not take this media type.",
    416: "The range is not part of the value.",
    429: "The actor has reached a limit of concurrent work.",
    431: "The headers exceed their limit.",
    500: "The server failed.",
    501: "The server lacks an optional package.",
    503: "The server or the graph is not available now.",
}
_OTHER_ANSWERS = {
    202: "The work continues as an operation.",
    206: "A part of the value.",
    302: "The value is stored elsewhere.",
    304: "The client has the current answer.",
}
_ACCEPTED = 202
_WITHOUT_BODY = frozenset({302, 304})
_PATH_PARAMETERS = {
    "plan_hash": "The hash of a plan.",
    "branch": "The name of a branch, percent-encoded as one segment.",
    "check": "The name of a check, percent-encoded as one segment.",
    "comment": "The id of a comment.",
    "commit_id": "The id of a commit.",
    "file": "The name of a file of the web explorer.",
    "graph_id": "The id of a graph.",
    "id": "The id of a node or edge.",
    "name": "The name of a stored query.",
    "operation_id": "The id of an operation.",
    "proposal": "The id of a proposal.",
    "tag": "The name of a tag.",
    "type": "The name of a node or edge type.",
}
_HEADERS: dict[str, tuple[str, Schema]] = {
    "Idempotency-Key": (
        "A repetition with the same key returns the result of the first request.",
        {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    ),
    "If-Match": (
        "Write only if the branch is at this commit: its id in double quotes.",
        {"type": "string", "pattern": '^"[0-9A-Za-z_-]{1,64}"$'},
    ),
    "Omnigraph-If-Graph-Commit": (
        "Write only if the branch is at this commit.",
        {"type": "string", "pattern": "^[0-9A-Za-z_-]{1,64}$"},
    ),
    "If-None-Match": ("Answer 304 if the client has the current answer: an earlier `ETag`.", {"type": "string"}),
    "Omnigraph-Timeout-Ms": (
        "The largest duration in milliseconds; the server has a limit of its own.",
        {"type": "integer", "minimum": 1, "maximum": 999_999_999_999},
    ),
    "Omnigraph-Min-Commit": (
        "Answer from a state that contains this commit.",
        {"type": "string", "pattern": "^[0-9A-Za-z_-]{1,64}$"},
    ),
}


def openapi_document(*, nested: bool = False, secured: bool = True, routes: Sequence[Route] = ROUTES) -> dict[str, Any]:
    """Return the OpenAPI document of some routes."""
    components = _Components(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        below = nested and route.scope == "graph"
        path = GRAPH_PREFIX + route.path if below else route.path
        paths.setdefault(path, {})[route.method.lower()] = _operation(route, path, components, secured=secured)
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "Omnigraph API",
            "version": __version__,
            "description": "A typed property graph with branches, commits, queries, search and review.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components.schemas},
    }
    if secured:
        scheme = {"type": "http", "scheme": "bearer", "description": "A token of this server."}
        document["components"]["securitySchemes"] = {SECURITY: scheme}
    return document


class _Components:
    """The schemas of all documents and inputs, under their public names."""

    def __init__(self, routes: Sequence[Route]) -> None:
        types: dict[type[Document] | type[Request], None] = {ErrorDocument: None}
        for route in routes:
            used = (route.input, route.answer, *route.other_answers)
            types.update({type_: None for type_ in used if type_ is not None})
        _, found = msgspec.json.schema_components(tuple(types), ref_template=_REF + "{name}")
        self._names = {each.__name__: component_name(each) for each in (*_subclasses(Document), *_subclasses(Request))}
        for request in _subclasses(Request):
            if request.__name__ in found:
                _permit_null(found[request.__name__])
        schemas = {self._names.get(name, name): self._renamed(schema) for name, schema in found.items()}
        for values, name in ENUM_NAMES.items():
            if _contains_enum(schemas, values):
                schemas[name] = {"type": "string", "enum": sorted(values)}
        self.schemas = {name: self._with_enums(schema) for name, schema in sorted(schemas.items())}
        for name in ENUM_NAMES.values():
            if name in schemas:
                self.schemas[name] = schemas[name]
        self.schemas = dict(sorted(self.schemas.items()))

    def ref(self, type_: type[Document] | type[Request]) -> Schema:
        """Return a reference to a type."""
        return {"$ref": _REF + component_name(type_)}

    def properties(self, type_: type[Request]) -> Iterator[tuple[str, Schema, bool]]:
        """Yield name, schema and necessity of each member of an input."""
        schema = self.schemas[component_name(type_)]
        required = schema.get("required", ())
        for name, member in schema["properties"].items():
            yield name, member, name in required

    def _renamed(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._renamed(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        changed = {key: self._renamed(value) for key, value in schema.items()}
        if isinstance(changed.get("$ref"), str):
            name = changed["$ref"].removeprefix(_REF)
            changed["$ref"] = _REF + self._names.get(name, name)
        if isinstance(changed.get("title"), str):
            changed["title"] = self._names.get(changed["title"], changed["title"])
        return changed

    def _with_enums(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._with_enums(item) for item in schema]
        if not isinstance(schema, dict):
            return schema
        name = _enum_name(schema)
        if name is not None:
            return {"$ref": _REF + name}
        return {key: self._with_enums(value) for key, value in schema.items()}


def _permit_null(schema: Schema) -> None:
    """Permit null in every optional member of an input, where it means that the member is absent."""
    for name, member in schema["properties"].items():
        options = member.get("anyOf", [member])
        if name in schema.get("required", ()) or {"type": "null"} in options:
            continue
        if "anyOf" in member:
            member["anyOf"] = [*options, {"type": "null"}]
            continue
        outer = {key: member.pop(key) for key in ("default", "description") if key in member}
        schema["properties"][name] = {"anyOf": [member, {"type": "null"}], **outer}


def _enum_name(schema: dict[str, Any]) -> str | None:
    values = schema.get("enum")
    if not isinstance(values, list) or set(schema) - {"enum", "type", "title"}:
        return None
    return next((name for known, name in ENUM_NAMES.items() if sorted(known) == sorted(map(str, values))), None)


def _contains_enum(schema: Any, values: Sequence[str]) -> bool:
    if isinstance(schema, list):
        return any(_contains_enum(item, values) for item in schema)
    if not isinstance(schema, dict):
        return False
    enum = schema.get("enum")
    if isinstance(enum, list) and sorted(map(str, enum)) == sorted(values):
        return True
    return any(_contains_enum(value, values) for value in schema.values())


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for child in cls.__subclasses__():
        yield child
        yield from _subclasses(child)


def _operation(route: Route, path: str, components: _Components, *, secured: bool) -> dict[str, Any]:
    nested = path != route.path
    operation: dict[str, Any] = {
        "operationId": f"cluster_{route.name}" if nested else route.name,
        "tags": [route.tag],
        "summary": route.summary,
    }
    description = _description(route)
    if description:
        operation["description"] = description
    parameters = [*_path_parameters(path), *_query_parameters(route, components), *_header_parameters(route)]
    if parameters:
        operation["parameters"] = parameters
    if route.body is not None:
        operation["requestBody"] = _request_body(route, components)
    operation["responses"] = {str(status): _response(route, status, components) for status in _statuses(route)}
    if secured and route.scope != "public":
        operation["security"] = [{SECURITY: []}]
    return operation


def _description(route: Route) -> str:
    actions = [f"`{gate.action}`" + (f" with `{gate.given}`" if gate.given else "") for gate in route.gates]
    return f"Requires {' and '.join(actions)}." if actions else ""


def _path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in _PARAMETER.findall(path):
        schema: Schema = {"type": "string", "minLength": 1}
        if name == "graph_id":
            schema = {"type": "string", "pattern": "^[A-Za-z0-9-]{1,64}$"}
        description = _PATH_PARAMETERS[name]
        yield {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def _query_parameters(route: Route, components: _Components) -> Iterator[dict[str, Any]]:
    if route.input is None or route.body == "json":
        return
    for name, member, required in components.properties(route.input):
        schema = _without_null(member)
        parameter: dict[str, Any] = {"name": name, "in": "query", "required": required, "schema": schema}
        described = schema.pop("description", None)
        if described is not None:
            parameter["description"] = described
        yield parameter


def _without_null(schema: Schema) -> Schema:
    """Return the schema of a query parameter, which is absent instead of null."""
    shown = {key: value for key, value in schema.items() if not (key == "default" and value is None)}
    options = [option for option in shown.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1:
        return {**{key: value for key, value in shown.items() if key != "anyOf"}, **options[0]}
    return {**shown, "anyOf": options} if options else shown


def _header_parameters(route: Route) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    if route.conditional:
        names.append("Omnigraph-If-Graph-Commit")
    if route.may_write:
        names += ["Idempotency-Key", "If-Match"]
    if route.etag:
        names.append("If-None-Match")
    if route.scope == "graph":
        names += ["Omnigraph-Min-Commit", "Omnigraph-Timeout-Ms"]
    for name in names:
        description, schema = _HEADERS[name]
        required = name == "Omnigraph-If-Graph-Commit"
        yield {"name": name, "in": "header", "required": required, "description": description, "schema": schema}


def _request_body(route: Route, components: _Components) -> dict[str, Any]:
    if route.body == "json":
        assert route.input is not None
        schema = components.ref(route.input)
        required = bool(components.schemas[component_name(route.input)].get("required"))
        return {"required": required, "content": {"application/json": {"schema": schema}}}
    binary = {"schema": {"type": "string", "contentMediaType": "application/octet-stream"}}
    return {"required": True, "content": dict.fromkeys(route.media_types, binary)}


def _statuses(route: Route) -> list[int]:
    statuses = {route.success, *_EVERY_STATUS, *route.statuses, *route.statuses_without_body}
    if route.scope != "public":
        statuses.update(_PROTECTED_STATUSES)
    if route.body is not None:
        statuses.update(_BODY_STATUSES)
    if route.etag:
        statuses.add(304)
    if route.may_write:
        statuses.update((409, 412))
    return sorted(statuses)


def _response(route: Route, status: int, components: _Components) -> dict[str, Any]:
    if status == route.success:
        return {"description": _OTHER_ANSWERS.get(status, "The answer."), "content": _contents(route, components)}
    if status in route.statuses_without_body:
        return {"description": "There is no answer."}
    if status in _WITHOUT_BODY:
        return {"description": _OTHER_ANSWERS[status]}
    if status == _ACCEPTED:
        content = {"application/json": {"schema": components.ref(OperationDocument)}}
        return {"description": _OTHER_ANSWERS[status], "content": content}
    if status in _OTHER_ANSWERS:
        return {"description": _OTHER_ANSWERS[status], "content": _contents(route, components)}
    if route.name == "ready" and status == 503 and route.answer is not None:
        schema = {"anyOf": [components.ref(route.answer), components.ref(ErrorDocument)]}
    elif route.other_failure is not None:
        schema = {"anyOf": [components.ref(route.other_failure), components.ref(ErrorDocument)]}
    else:
        schema = components.ref(ErrorDocument)
    return {"description": _REASONS[status], "content": {"application/json": {"schema": schema}}}


def _contents(route: Route, components: _Components) -> dict[str, Any]:
    return {MEDIA_TYPES[form]: _content(route, form, components) for form in route.forms}


def _answer(route: Route, components: _Components) -> Schema:
    if route.answer is None:
        return {"type": "object"}
    if route.other_answers:
        return {"anyOf": [components.ref(type_) for type_ in (route.answer, *route.other_answers)]}
    return components.ref(route.answer)


def _content(route: Route, form: Form, components: _Components) -> dict[str, Any]:
    if form == "json":
        return {"schema": _answer(route, components)}
    if form in ("arrow", "octets", "parquet"):
        return {"schema": {"type": "string", "contentMediaType": MEDIA_TYPES[form]}}
    return {"schema": {"type": "string"}}
