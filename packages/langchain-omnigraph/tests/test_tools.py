"""Tools of agents: stored queries, changes on a branch, proposals."""

from __future__ import annotations

import json

import pytest
from langchain_core.messages import ToolCall
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_omnigraph import OmniGraphTools

from omnigraph.errors import InputError

NEW = {"slug": "n5", "text": "Herons nest on the dyke.", "author": "Ana"}


def tools_of(graph, **options):
    return {tool.name: tool for tool in OmniGraphTools(graph, **options).get_tools()}


def test_exposed_queries_are_typed_tools(notes):
    assert tools_of(notes).keys() == {"recall"}
    tools = tools_of(notes, branch="agent/7")
    assert tools.keys() == {"recall", "write_note", "propose"}
    function = convert_to_openai_tool(tools["write_note"])["function"]
    assert function["parameters"]["properties"]["year"] == {"type": "integer", "description": "I32?"}
    assert function["parameters"]["required"] == ["slug", "text", "author"]
    assert function["description"].startswith(
        "Add a note of an author. Write one sentence. It changes your own branch."
    )


def test_reads_return_rows_and_their_commit(notes):
    answer = json.loads(tools_of(notes)["recall"].invoke({"question": "flooding"}))
    assert answer["commit"] == notes.commits()[0].id
    assert answer["rows"][0]["note"]["slug"] == "n3"
    assert "meaning" not in answer["rows"][0]["note"]  # vectors are left out
    call = ToolCall(name="recall", args={"question": "flooding"}, id="1", type="tool_call")
    message = tools_of(notes, rows_max=1)["recall"].invoke(call)
    assert message.artifact["left_out"] == 3
    assert len(message.artifact["rows"]) == 1


def test_changes_stay_on_the_branch_until_a_proposal_lands(notes):
    tools = tools_of(notes, branch="agent/7")
    changed = json.loads(tools["write_note"].invoke(NEW))
    assert (changed["branch"], changed["affected_nodes"]) == ("agent/7", 1)
    assert notes.get("Note", "n5") is None
    assert notes.get("Note", "n5", branch="agent/7") is not None
    found = json.loads(tools["recall"].invoke({"question": "herons"}))  # the agent reads its own branch
    assert found["rows"][0]["note"]["slug"] == "n5"
    proposed = json.loads(tools["propose"].invoke({"title": "Herons"}))
    assert (proposed["source"], proposed["target"]) == ("agent/7", "main")
    notes.proposal(proposed["proposal"]).land()
    assert notes.get("Note", "n5") is not None


def test_errors_are_answers_that_the_model_can_correct(notes):
    tools = tools_of(notes, branch="agent/7")
    assert "is missing" in tools["recall"].invoke({})
    assert "no argument 'txt'" in tools["write_note"].invoke({**NEW, "txt": "x"})
    assert "'year'" in tools["write_note"].invoke({**NEW, "year": "soon"})
    assert "Author" in tools["write_note"].invoke({**NEW, "author": "Cleo"})
    assert "agent/8" in tools_of(notes, branch="agent/8")["propose"].invoke({"title": "nothing yet"})


async def test_tools_run_asynchronously(notes):
    answer = await tools_of(notes)["recall"].ainvoke({"question": "flooding"})
    assert json.loads(answer)["rows"]


def test_the_target_itself_and_equal_names_are_refused(notes):
    with pytest.raises(InputError, match="cannot change 'main' directly"):
        OmniGraphTools(notes, branch="main")
    notes.store_query("query propose() { match { $n: Note } return { count($n) as n } }")
    with pytest.raises(InputError, match="two tools are called 'propose'"):
        OmniGraphTools(notes, branch="agent/7").get_tools()
