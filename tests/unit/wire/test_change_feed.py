"""The change feed in the form of the HTTP interface."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.wire.change_feed import changes_document, commit_changes_document
from omnigraph.wire.changes import CommitChangesDocument, FeedPageDocument

CAUSE = {
    "graph_commit_id": "01B",
    "parent_commit_id": "01A",
    "merged_parent_commit_id": None,
    "authored_branch": "main",
    "actor_id": None,
    "authored_at": 1,
    "message": None,
    "schema_changed": False,
}
NODE = {
    "kind": "node",
    "type": {"id": "0a", "name": "Person"},
    "id": "ana",
    "op": "insert",
    "after": {"id": "ana", "src": 1},
}
EDGE = {
    "kind": "edge",
    "type": {"id": "0b", "name": "Knows"},
    "id": "e",
    "op": "update",
    "before": {"id": "e", "src": "ana", "dst": "bo", "since": 1},
    "after": {"id": "e", "src": "ana", "dst": "bo", "since": 2},
}
IMAGES = [
    {**NODE, "after": {"properties": {"src": 1}}},
    {
        **EDGE,
        "before": {"properties": {"since": 1}, "endpoints": {"from": "ana", "to": "bo"}},
        "after": {"properties": {"since": 2}, "endpoints": {"from": "ana", "to": "bo"}},
    },
]


def poll(**members: object) -> FeedPageDocument:
    block = {"cause": CAUSE, "changes": [NODE, EDGE]}
    return FeedPageDocument.of({"blocks": [block], "cut_commit_id": None, "caught_up": True, **members})


def test_last_page_has_a_cursor() -> None:
    assert changes_document(poll(cursor="c", page=None)).to_json() == {
        "blocks": [{"cause": CAUSE, "changes": IMAGES}],
        "cursor": "c",
        "caught_up": True,
    }


def test_other_pages_have_a_token_and_no_cursor() -> None:
    document = changes_document(poll(cursor="c", page="p"))
    assert (document.next_page_token, document.cursor) == ("p", UNSET)


def test_changes_of_a_commit() -> None:
    page = CommitChangesDocument.of({"cause": CAUSE, "changes": [NODE, EDGE], "page": "p"})
    assert commit_changes_document(page).to_json() == {"cause": CAUSE, "changes": IMAGES, "next_page_token": "p"}
