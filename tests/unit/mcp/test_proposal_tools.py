"""Tools for proposals, and an agent's way from a branch to main."""

from __future__ import annotations

import pytest

from omnigraph.mcp.endpoint import UnknownName


def test_from_a_change_to_a_landing(endpoint, graph):
    agent = endpoint(write=True)
    agent.call("change", {"query": 'insert Person { name: "cy" }'})
    made = agent.call("propose", {"title": "Add cy", "body": "Cy joined."}).structured
    assert (made["source"], made["target"], made["title"]) == ("mcp/ana/draft", "main", "Add cy")
    (listed,) = agent.call("proposal_status", {}).structured["proposals"]
    assert listed["id"] == made["id"]
    comment = agent.call("comment", {"id": made["id"], "text": "Checked by hand."})
    assert not comment.is_error
    status = agent.call("proposal_status", {"id": made["id"]}).structured
    assert status["comments"] == 1
    assert graph.get("Person", "cy") is None
    graph.proposal(made["id"]).land()
    assert agent.call("proposal_status", {"id": made["id"]}).structured["state"] == "landed"
    assert graph.get("Person", "cy") is not None


@pytest.mark.parametrize("branch", ["main", "other"])
def test_only_own_branches_are_proposed(endpoint, graph, branch):
    graph.branch_create("other")
    answer = endpoint(write=True).call("propose", {"title": "x", "branch": branch})
    assert answer.structured["reason"] == "denied"


def test_wrong_proposals(endpoint):
    agent = endpoint(write=True)
    assert agent.call("propose", {"title": "nothing yet"}).structured["reason"] == "branch_not_found"
    assert agent.call("proposal_status", {"id": "nope"}).is_error
    assert agent.call("comment", {"id": "nope", "text": "x"}).is_error


def test_proposals_need_write(endpoint):
    for name in ("propose", "proposal_status", "comment"):
        with pytest.raises(UnknownName):
            endpoint().call(name, {})
    assert {tool.name for tool in endpoint(write=True).tools()} >= {"propose", "proposal_status", "comment"}
