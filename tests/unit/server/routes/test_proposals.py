"""Proposals over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import omnigraph as og
from support.event_streams import stream
from support.guarded_server import guarded
from support.server import ServerUnderTest

BO = "token-of-bo"
POLICY = """version: 2
groups: { staff: [ana, bo], leads: [ana] }
proposals: { main: { approvals: 1 } }
rules:
  - id: staff
    allow: { actors: { group: staff }, role: editor }
  - id: leads
    allow: { actors: { group: leads }, role: maintainer }
"""


@pytest.fixture
def review(graph: og.Graph) -> Iterator[ServerUnderTest]:
    graph.branch_create("feature")
    graph.mutate('insert Person { name: "zoe" }', branch="feature")
    with guarded(graph, POLICY) as running:
        yield running


def opened(server: ServerUnderTest, **more: object) -> dict[str, object]:
    reply = server.post("/proposals", {"source": "feature", "title": "Add Zoe", **more})
    assert reply.status == 200, reply.body
    found: dict[str, object] = reply.json
    return found


def test_a_proposal_is_reviewed_and_landed(review: ServerUnderTest, graph: og.Graph) -> None:
    made = opened(review, labels=["people"])
    path = f"/proposals/{made['id']}"
    assert (made["state"], made["actor_id"]) == ("blocked", "ana")
    assert [one["id"] for one in review.get("/proposals").json["proposals"]] == [made["id"]]
    assert review.get("/proposals", params={"label": "none"}).json["proposals"] == []
    found = review.get(f"{path}/diff").json
    assert [(change["op"], change["id"]) for change in found["changes"]] == [("insert", "zoe")]
    place = {"table_key": "node:Person", "row_id": "zoe"}
    comment = review.post(f"{path}/comments", {"text": "Who?", "on": place}, token=BO).json
    assert comment["on"]["row_id"] == "zoe"
    edited = review.request("PATCH", f"{path}/comments/{comment['id']}", {"resolved": True}).json
    assert edited["resolved"] is True
    assert review.get(f"{path}/comments").json["hidden_comments"] == 0
    blocked = review.post(f"{path}/land", {})
    assert (blocked.status, blocked.json["reason"]) == (409, "proposal_blocked")
    assert blocked.json["proposal_block"]["reasons"] == ["1 approval needed, 0 given"]
    own = review.post(f"{path}/review", {"verdict": "approve"})
    assert (own.status, own.json["reason"]) == (409, "self_review")
    moved = review.post(f"{path}/review", {"verdict": "approve", "commit": "other"}, token=BO)
    assert moved.status == 412, moved.body
    assert review.post(f"{path}/review", {"verdict": "approve"}, token=BO).json["approvals"] == ["bo"]
    assert review.post(f"{path}/land", {}, token=BO).status == 403
    assert review.post(f"{path}/land", {}, headers={"If-Match": '"none"'}).status == 412
    landed = review.post(f"{path}/land", {"message": "with care"}).json
    assert (landed["proposal"]["state"], landed["commit"]["message"]) == ("landed", "with care")
    assert landed["commit"]["metadata"]["approvers"] == ["bo"]
    assert graph.get("Person", "zoe") is not None
    kinds = [event["kind"] for event in review.get(f"{path}/events").json["events"]]
    assert kinds[0] == "opened"
    assert kinds[-1] == "landed"
    assert review.get(f"{path}/events", params={"after": len(kinds) - 1}).json["events"][0]["kind"] == "landed"
    assert review.get(f"{path}/events").json["events"][0]["request_id"]


def test_a_merge_cannot_pass_the_rules(review: ServerUnderTest, graph: og.Graph) -> None:
    before = graph.head().commit_id
    refused = review.post("/branches/merge", {"source": "feature", "target": "main"})
    assert (refused.status, refused.json["reason"]) == (409, "proposal_required")
    forced = review.post("/branches/merge", {"source": "feature", "target": "main", "force": True})
    assert forced.status == 403, forced.body
    assert graph.head().commit_id == before


def test_requests_are_recorded_and_repeated_once(review: ServerUnderTest) -> None:
    headers = {"Idempotency-Key": "k"}
    body = {"source": "feature", "title": "Once"}
    first = review.post("/proposals", body, headers=headers).json["id"]
    assert review.post("/proposals", body, headers=headers).json["id"] == first
    other = review.post("/proposals", {**body, "title": "Twice"}, headers=headers)
    assert (other.status, other.json["reason"]) == (409, "idempotency_key_reused")


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/proposals/none", None, 404),
        ("GET", "/proposals?state=done", None, 400),
        ("POST", "/proposals", {"source": "feature"}, 400),
        ("POST", "/proposals", {"source": "nowhere", "title": "x"}, 404),
        ("POST", "/proposals/none/land", {}, 404),
        ("POST", "/proposals/none/review", {"verdict": "maybe"}, 400),
    ],
)
def test_wrong_requests(review: ServerUnderTest, method: str, path: str, body: object, status: int) -> None:
    assert review.request(method, path, body).status == status  # type: ignore[arg-type]


def test_edits_checks_and_ends(review: ServerUnderTest) -> None:
    path = f"/proposals/{opened(review, draft=True)['id']}"
    assert review.post(f"{path}/check", {}).json["state"] == "draft"
    edited = review.request("PATCH", path, {"draft": False, "title": "Zoe", "labels": ["x"]}).json
    assert (edited["title"], edited["labels"], edited["state"]) == ("Zoe", ["x"], "blocked")
    commit = edited["trial"]["commit"]
    reported = review.post(
        f"{path}/checks/ci%2Flint", {"state": "fail", "commit": commit, "details": "3 warnings"}
    ).json
    assert [(one["name"], one["state"]) for one in reported["checks"]][-1] == ("ci/lint", "fail")
    assert review.post(f"{path}/checks/ci", {"state": "pass", "commit": "other"}).status == 412
    assert review.get(f"{path}/checks/none").status == 400
    assert review.get(f"{path}/conflicts").json["conflicts"] == []
    assert review.post(f"{path}/resolve", {"resolve": "theirs"}).status == 200
    assert review.post(f"{path}/close", {"why": "later"}).json["closed_why"] == "later"
    closed = review.request("PATCH", path, {"title": "x"})
    assert (closed.status, closed.json["reason"]) == (409, "proposal_closed")
    assert [one["state"] for one in review.get("/proposals", params={"state": "closed"}).json["proposals"]] == [
        "closed"
    ]
    assert review.post(f"{path}/reopen", {}).json["state"] == "checking"


def test_events_arrive_and_a_stream_resumes_after_the_last_one(review: ServerUnderTest, graph: og.Graph) -> None:
    proposal = graph.propose("feature", title="Streamed", actor="ana")
    with stream(review, path="/proposals/stream") as events:
        blocks = events.blocks()
        next(blocks)
        proposal.edit(labels=["new"])
        event = next(blocks)
        assert event["event"] == "proposal.edited"
        found = json.loads(event["data"])
        assert (found["proposal"], found["event"]["data"]) == (proposal.id, {"labels": ["new"]})
    proposal.close("enough")
    with stream(review, path="/proposals/stream", Last_Event_ID=event["id"]) as events:
        assert next(events.blocks())["event"] == "proposal.closed"
