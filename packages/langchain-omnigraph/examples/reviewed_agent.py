"""A langgraph agent whose changes are reviewed: it reads, writes on a branch of its own, and proposes.

`python examples/reviewed_agent.py` runs the whole story in a temporary folder, without a network: the model follows a
script, and embeddings are computed locally. Replace `ScriptedModel` by a chat model of a provider.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_omnigraph import OmniGraphRetriever, OmniGraphTools
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import omnigraph as og

LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "local-hashed-ngrams-v1"}

SCHEMA = """
node Fact {
    slug: String @key
    text: String @index
    source: String?
    meaning: Vector(64)? @embed("text")
}

edge Supersedes: Fact -> Fact {
    @unique(src, dst)
}
"""

QUERIES = """
query recall($question: String)
    @description("The facts that answer a question best, without superseded ones")
    @instruction("Use it first")
{
    match {
        $f: Fact
        not { $_ supersedes $f }
    }
    return { $f.slug as fact, $f.text as text, $f.source as source }
    order { rrf(nearest($f.meaning, $question), bm25($f.text, $question)) }
    limit 3
}

query correct($old: String, $slug: String, $text: String, $source: String)
    @description("Replace a fact by a new one; the old one stays in the graph")
{
    insert Fact { slug: $slug, text: $text, source: $source }
    insert Supersedes { from: $slug, to: $old }
}

query without_source() @expose(false) @check(empty, required) {
    match {
        $f: Fact
        $f.source is null
    }
    return { $f.slug as fact }
    order { fact }
}
"""


class ScriptedModel(GenericFakeChatModel):
    """A chat model that returns prepared messages."""

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> ScriptedModel:
        """Return the model itself: the script contains the tool calls."""
        assert tools
        return self


def create_memory(folder: Path) -> og.Graph:
    """Create a graph with one fact and the queries of the agent."""
    graph = og.init(folder, SCHEMA, actor="scout", environ={**os.environ, **LOCAL})
    graph.store_query(QUERIES, message="questions of agents")
    fact = {"slug": "deploy", "text": "The billing service is deployed on Fridays.", "source": "the runbook"}
    graph.load([{"type": "Fact", "data": fact}], mode="merge", message="the runbook")
    return graph


def build_agent(model: BaseChatModel, tools: OmniGraphTools) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return an agent that calls its model and its tools in turn."""
    offered = tools.get_tools()
    bound = model.bind_tools(offered)

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    steps = StateGraph(MessagesState)
    steps.add_node("model", ask)
    steps.add_node("tools", ToolNode(offered))
    steps.add_edge(START, "model")
    steps.add_conditional_edges("model", tools_condition)
    steps.add_edge("tools", "model")
    return steps.compile()


def script() -> Iterator[AIMessage]:
    """Yield what a model answers: it recalls, corrects, proposes and reports."""
    correction = {
        "old": "deploy",
        "slug": "deploy-tuesday",
        "text": "The billing service is deployed on Tuesdays.",
        "source": "a conversation with operations",
    }
    for number, (name, arguments) in enumerate(
        [
            ("recall", {"question": "When is the billing service deployed?"}),
            ("correct", correction),
            ("propose", {"title": "Deployments moved to Tuesday"}),
        ]
    ):
        yield AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{number}", "type": "tool_call"}])
    yield AIMessage("I proposed that deployments moved to Tuesday.")


def main() -> None:
    """Ask the agent, look at its proposal, land it."""
    with tempfile.TemporaryDirectory() as folder:
        graph = create_memory(Path(folder) / "memory.omni")
        tools = OmniGraphTools(graph, branch="agent/7")
        agent = build_agent(ScriptedModel(messages=script()), tools)
        asked = HumanMessage("Operations say that billing is deployed on Tuesdays now.")
        for message in agent.invoke({"messages": [asked]})["messages"]:
            if isinstance(message, ToolMessage):
                print(f"{message.name}: {list(message.artifact)}")
        print("on main still:", graph.query("match { $f: Fact } return { $f.slug }").to_pylist())

        (open_proposal,) = graph.proposals()
        proposal = graph.proposal(open_proposal.id)
        print(f"{proposal.state}: {proposal.title}", [f"{change.op} {change.table_key}" for change in proposal.diff()])
        proposal.land()
        recall = OmniGraphRetriever(graph, query="recall", text="text", k=1)
        print("after the landing:", recall.invoke("When is billing deployed?")[0].page_content)


if __name__ == "__main__":
    main()
