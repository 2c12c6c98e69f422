"""Schema routes and the snapshot."""

from __future__ import annotations

from typing import Any

import omnigraph as og
from support.server import ServerUnderTest

NEW = """
node Person {
    name: String @key
    age: I64?
    photo: Blob?
    email: String?
}
edge Knows: Person -> Person { since: I64? }
"""
WITHOUT_AGE = NEW.replace("    age: I64?\n", "")
UNSUPPORTED = NEW.replace("age: I64?", "age: Bool?")


def test_the_schema_as_text_and_as_catalog(server: ServerUnderTest, graph: og.Graph) -> None:
    text = server.get("/schema")
    assert text.status == 200
    assert text.json == {"schema_source": graph.schema}
    assert text.headers["omnigraph-commit"] == graph.commits(limit=1)[0].id
    catalog = server.get("/schema?form=json").json
    person, knows = catalog["nodes"][0], catalog["edges"][0]
    assert (person["name"], person["key"]) == ("Person", ["name"])
    number = person["properties"][0].pop("number")
    assert person["properties"][0] == {"name": "age", "type": "I64?", "optional": True}
    assert person["constraints"] == [{"kind": "key", "columns": ["name"], "text": "@key(name)"}]
    assert (knows["from"], knows["to"], knows["cardinality"]) == ("Person", "Person", "0..")
    renamed = graph.schema.replace("age: I64?", 'years: I64? @rename_from("age")')
    graph.branch_create("other")
    graph.apply_schema(renamed, branch="other")
    other = server.get("/schema", params={"form": "json", "branch": "other"}).json["nodes"][0]
    assert {each["name"]: each["number"] for each in other["properties"]}["years"] == number
    assert catalog["hash"].startswith("sha256:")
    unchanged = server.get("/schema", headers={"If-None-Match": text.headers["etag"]})
    assert (unchanged.status, unchanged.body) == (304, b"")


def test_a_schema_of_the_past(server: ServerUnderTest, graph: og.Graph) -> None:
    first = graph.commits()[-1].id
    graph.apply_schema(NEW)
    assert "email" in server.get("/schema").json["schema_source"]
    assert "email" not in server.get("/schema", params={"at": first}).json["schema_source"]
    assert "email" not in server.get("/schema", params={"at": "1"}).json["schema_source"]
    assert server.get("/schema", params={"branch": "none"}).status == 404
    for point in ("9" * 200, "0001-01-01", "9999-12-31", "../../etc/passwd", "a\x00b", "main..main"):
        assert server.get("/schema", params={"at": point}).status in (200, 400, 404), point


def test_a_plan_writes_nothing(server: ServerUnderTest, graph: og.Graph) -> None:
    head = graph.commits(limit=1)[0].id
    plan = server.post("/schema/plan", {"schema_source": NEW})
    assert plan.status == 200
    assert (plan.json["supported"], plan.json["step_count"]) == (True, 1)
    assert plan.json["descriptions"] == ["add property Person.email: String?"]
    assert server.post("/schema/plan", {"schema_source": UNSUPPORTED}).json["supported"] is False
    assert server.post("/schema/plan", {"schema_source": NEW, "alow_data_loss": True}).status == 400
    assert graph.commits(limit=1)[0].id == head


def test_apply_makes_one_commit_and_repeats_by_its_key(server: ServerUnderTest, graph: og.Graph) -> None:
    body = {"schema_source": NEW, "message": "with email"}
    first = server.post("/schema/apply", body, headers={"Idempotency-Key": "s-1"})
    assert first.status == 200, first.body
    assert first.json["applied"]
    assert first.json["commit"]["message"] == "with email"
    assert first.headers["omnigraph-commit"] == first.json["commit_id"]
    again = server.post("/schema/apply", body, headers={"Idempotency-Key": "s-1"})
    assert again.json["commit_id"] == first.json["commit_id"]
    assert again.json["steps"] == first.json["steps"]
    assert len(graph.commits()) == 3
    other = server.post("/schema/apply", {"schema_source": WITHOUT_AGE}, headers={"Idempotency-Key": "s-1"})
    assert (other.status, other.json["reason"]) == (409, "idempotency_key_reused")
    stale = server.post("/schema/apply", {"schema_source": WITHOUT_AGE}, headers={"If-Match": '"01OLD"'})
    assert stale.status == 412
    assert server.post("/schema/apply", body).json["applied"] is False


WRONG: list[Any] = [
    {},
    {"schema_source": 1},
    {"schema_source": "node"},
    {"schema_source": UNSUPPORTED},
    {"schema_source": "/etc/schema.pg"},
    {"schema_source": NEW, "branch": 3},
    {"schema_source": "node A { b: String }\x00"},
]


def test_a_wrong_schema_is_refused(server: ServerUnderTest, graph: og.Graph) -> None:
    for body in WRONG:
        reply = server.post("/schema/apply", body)
        assert reply.status == 400, (body, reply.body)
    assert len(graph.commits()) == 2


def test_an_unsupported_plan_names_its_reasons(server: ServerUnderTest) -> None:
    reply = server.post("/schema/apply", {"schema_source": UNSUPPORTED})
    assert "age" in reply.json["error"]


def test_the_policy_judges_the_branch(guarded: ServerUnderTest, graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge", branch="draft")
    guest = {"token": "guest-token"}
    assert guarded.get("/schema", **guest).status == 403
    assert guarded.get("/schema?branch=draft", **guest).status == 200
    assert guarded.get("/schema?branch=draft&at=main", **guest).status == 403
    assert guarded.post("/schema/plan", {"schema_source": NEW}, **guest).status == 403
    assert guarded.post("/schema/apply", {"schema_source": NEW, "branch": "draft"}, **guest).status == 403
    assert guarded.post("/schema/apply", {"schema_source": NEW, "branch": "draft"}).status == 200
    assert "email" not in guarded.get("/schema").json["schema_source"]


def test_the_snapshot_lists_tables(server: ServerUnderTest, graph: og.Graph) -> None:
    reply = server.get("/snapshot")
    assert reply.status == 200
    assert reply.json == graph.snapshot().to_json()
    assert [(table["table_key"], table["row_count"]) for table in reply.json["tables"]] == [
        ("edge:Knows", 1),
        ("node:Person", 2),
    ]
    assert server.get("/snapshot", headers={"If-None-Match": reply.headers["etag"]}).status == 304
    graph.load([{"type": "Person", "data": {"name": "cy"}}], mode="merge")
    assert server.get("/snapshot", headers={"If-None-Match": reply.headers["etag"]}).status == 200
    assert server.get("/snapshot?branch=none").status == 404


def test_the_snapshot_obeys_the_policy(guarded: ServerUnderTest) -> None:
    assert guarded.get("/snapshot", token="guest-token").status == 403
    assert guarded.get("/snapshot").status == 200


def test_a_plan_obeys_the_time_limit(server: ServerUnderTest) -> None:
    types = "".join(f"node T{number} {{ name: String @key }}\n" for number in range(3_000))
    plan = server.post("/schema/plan", {"schema_source": NEW + types}, headers={"Omnigraph-Timeout-Ms": "1"})
    assert (plan.status, plan.json["resource_limit"]["resource"]) == (413, "time")


def test_an_explanation_and_a_lint_obey_the_time_limit(server: ServerUnderTest) -> None:
    conditions = "\n".join(f"$p.age > {number}" for number in range(3_000))
    body = {"query": f"query q() {{ match {{ $p: Person {conditions} }} return {{ $p.name }} }}"}
    for path in ("/explain", "/lint"):
        answer = server.post(path, body, headers={"Omnigraph-Timeout-Ms": "1"})
        assert (answer.status, answer.json["resource_limit"]["resource"]) == (413, "time"), path
