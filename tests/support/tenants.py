"""A server with two graphs of two tenants, and an actor for every action.

Graph `a` is the default graph. `ana` may read and export its branch `public`, and nothing else. `ben` owns graph `b`.
`root` may do everything. `do-ACTION` may do one action everywhere, `none` nothing. Data that `ana` must not see
contains `SECRET`.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Send

import omnigraph as og
from omnigraph.policy.rules import GRAPH_ACTIONS, SERVER_ACTIONS
from omnigraph.server.auth.failed_tries import FailedTries
from omnigraph.server.auth.tokens import new_token, token_digest
from omnigraph.server.messages.responses import EventResponse
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from omnigraph.wire.requests.queries import ChangeRequest
from support.server import ServerUnderTest, serving

SECRET = "canary-7f3e"
SCHEMA = """
interface Named { name: String @index }
node Person implements Named {
    name: String @key
    age: I32?
    height: F32?
    wage: F64?
    big: U64?
    far: I64?
    active: Bool?
    born: Date?
    seen: DateTime?
    tags: [String]?
    marks: [I64]?
    mood: enum(good, bad)?
    vec: Vector(2)?
    photo: Blob?
}
edge Knows: Person -> Person { since: I64? }
"""
READ = "query people() { match { $p: Person } return { $p.name, $p.age, $p.tags } order { $p.name } }"
WRITE = "query add($name: String) { upsert Person { name: $name } new { age: 1 } existing { age: 2 } }"
CHANGE = {"query": WRITE, "params": {"name": "new"}}
GRAPH_ROLES = {action: f"do-{action}" for action in GRAPH_ACTIONS}
SERVER_ROLES = {action: f"do-{action}" for action in SERVER_ACTIONS}
ACTORS = ("ana", "ben", "root", "none", *dict.fromkeys((*GRAPH_ROLES.values(), *SERVER_ROLES.values())))


@dataclass(frozen=True)
class Tenants:
    """The running server, the folder of its files, and what the tests know of its graphs."""

    server: ServerUnderTest
    folder: Path
    tokens: Mapping[str, str]
    mine: Mapping[str, Any]
    """Values of request members that `ana` may use."""
    foreign: Mapping[str, tuple[str, ...]]
    """Values by member name that belong to others."""

    @property
    def audit_text(self) -> str:
        """All audit files."""
        return "".join(path.read_text(encoding="utf-8") for path in sorted(self.audit_files))

    @property
    def audit_files(self) -> list[Path]:
        """The audit files."""
        return [path for path in (self.folder / "audit").rglob("*") if path.is_file()]


@contextmanager
def tenants(folder: Path, **flags: Any) -> Iterator[Tenants]:
    """Serve both graphs; `flags` are settings, with `__` for `.`."""
    graphs = {name: make_graph(folder / f"{name}.omni") for name in "ab"}
    tokens = {actor: new_token() for actor in ACTORS}
    _write_files(folder, tokens)
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    given = {name.replace("__", "."): value for name, value in flags.items()}
    with short_event_streams(), serving(config=folder / "omnigraph.yaml", environ=environ, flags=given) as server:
        server.app.server.failed_tries = UnlimitedTries()
        yield Tenants(server, folder, tokens, _mine(graphs["a"]), _foreign(graphs))


class UnlimitedTries(FailedTries):
    """Delays no refusal, so no test is slowed down by the failed tries of another."""

    def delay_for(self, peer: str) -> float:  # noqa: ARG002
        return 0.0


@contextmanager
def short_event_streams() -> Iterator[None]:
    """End every event stream soon; otherwise it would last as long as its client."""
    endless = EventResponse._poll

    async def _poll(self: EventResponse, send: Send) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.02):
                await endless(self, send)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EventResponse, "_poll", _poll)
        yield


def make_graph(path: Path) -> og.Graph:
    """Create a graph: the branch `public` holds one person; other branches also hold persons with secret names."""
    graph = og.init(path, SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": "pia", "age": 1}}], mode="merge", message="first")
    graph.branch_create("public")
    public = graph.on("public")
    public.load([make_person("pia"), make_person("pat"), _edge("pia", "pat")], mode="merge", message="public")
    public.load([{"type": "Person", "data": {"name": "pat", "age": 7}}], mode="merge", message="again")
    public.tag_create("shown")
    secrets = [make_person("hid-1", SECRET), make_person(f"{SECRET}-2", SECRET), _edge("hid-1", f"{SECRET}-2")]
    graph.load(secrets, mode="merge", message=f"{SECRET} of main")
    graph.branch_create("hidden")
    graph.on("hidden").load([make_person("hid-3", SECRET)], mode="merge", message=f"{SECRET} of hidden")
    graph.on("hidden").tag_create("kept")
    graph.branch_create("spare")
    graph.tag_create("release")
    return graph


def make_person(name: str, tag: str = "x") -> dict[str, Any]:
    """Return the record of a person with a value of every property; `tag` is in its texts."""
    data = {
        "name": name,
        "age": 30,
        "height": 1.5,
        "wage": 2.5,
        "big": 2**63,
        "far": -(2**60),
        "active": True,
        "born": "2020-02-29",
        "seen": "2020-01-01T10:20:30Z",
        "tags": [name, tag],
        "marks": [1, 2],
        "mood": "good",
        "vec": [1.0, 0.0],
        "photo": "base64:" + base64.b64encode(tag.encode()).decode(),
    }
    return {"type": "Person", "data": data}


def _edge(source: str, target: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target, "data": {"since": 2020}}


def _write_files(folder: Path, tokens: Mapping[str, str]) -> None:
    entries = [
        {"actor": actor, "sha256": token_digest(token).hex(), "name": f"token of {actor}"}
        for actor, token in tokens.items()
    ]
    (folder / "tokens.json").write_text(json.dumps({"tokens": entries}), encoding="utf-8")
    roles = _rules(GRAPH_ROLES)
    owner = {"id": "own", "allow": {"actors": {"group": "owners"}, "actions": ["read", "export", "change"]}}
    shown = {"actors": {"group": "readers"}, "actions": ["read", "export"], "branch_scope": "protected"}
    policies = {
        "a.yaml": {
            "version": 1,
            "groups": {**_groups(GRAPH_ROLES), "readers": ["ana"]},
            "protected_branches": ["public"],
            "rules": [*roles, {"id": "public", "allow": shown}],
        },
        "b.yaml": {
            "version": 1,
            "groups": {**_groups(GRAPH_ROLES), "owners": ["ben"]},
            "rules": [*roles, owner],
        },
        "server.yaml": {"version": 1, "groups": _groups(SERVER_ROLES), "rules": _rules(SERVER_ROLES)},
        "omnigraph.yaml": {
            "graphs": {name: {"uri": f"./{name}.omni", "policy": {"file": f"{name}.yaml"}} for name in "ab"},
            "server": {
                "graphs": ["a", "b"],
                "default_graph": "a",
                "policy": {"file": "server.yaml"},
                "audit": {"dir": "audit"},
            },
        },
    }
    for name, content in policies.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def _groups(roles: Mapping[str, str]) -> dict[str, list[str]]:
    return {f"g-{action}": [role, "root"] for action, role in roles.items()}


def _rules(roles: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"id": f"allow-{action}", "allow": {"actors": {"group": f"g-{action}"}, "actions": [action]}}
        for action in roles
    ]


def _mine(graph: og.Graph) -> dict[str, Any]:
    public = graph.on("public")
    commits = public.commits()
    return {
        "branch": "public",
        "commit_id": commits[0].id,
        "tag": "shown",
        "type": "Person",
        "id": "pat",
        "entity": "node",
        "property": "photo",
        "project.property": "vec",
        "query": READ,
        "source": "public",
        "target": "public",
        "schema_source": SCHEMA,
        "data": json.dumps(make_person("new")),
        "action": "read",
        "actor": "ana",
        "algorithm": "degrees",
        "operation_id": "none",
        "diff.from": "public",
        "diff.to": "public",
        # A decision on a branch; rows are explained to callers whose rows no rule limits.
        **dict.fromkeys(("explainPolicy.type", "explainPolicy.data", "explainPolicy.id")),
        **{f"{route.name}.{name}": value for route in ROUTES if _is_change(route) for name, value in CHANGE.items()},
    }


def _is_change(route: Route) -> bool:
    return route.input is not None and issubclass(route.input, ChangeRequest)


def _foreign(graphs: Mapping[str, og.Graph]) -> dict[str, tuple[str, ...]]:
    a, b = graphs["a"], graphs["b"]
    commits = (a.commits()[0].id, a.on("hidden").commits()[0].id, b.commits()[0].id)
    branches = ("main", "hidden")
    page = a.query(READ, page=1).next
    hidden_page = a.query(READ, branch="hidden", page=1).next
    assert page is not None
    assert hidden_page is not None
    proposal = graphs["a"].propose("hidden", "main", title=f"{SECRET} of a proposal", labels=[SECRET])
    proposal.comment(f"{SECRET} of a comment")
    return {
        "branch": branches,
        "source": branches,
        "target": branches,
        "compare": branches,
        "commit_id": commits,
        "snapshot": commits,
        "at": (*branches, *commits, "release", "kept"),
        "from": (*branches, *commits, "release", "kept"),
        "to": (*branches, *commits, "release", "kept"),
        "after": (page, hidden_page, *commits),
        "before": commits,
        "cursor": (page, *commits),
        "page_token": (page, *commits),
        "start": tuple(f"after:{commit}" for commit in commits),
        "tag": ("release", "kept"),
        "id": ("hid-1", "hid-3"),
        "proposal": (proposal.id,),
    }
