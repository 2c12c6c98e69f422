"""All adapters over a graph on a server."""

from __future__ import annotations

import json

from langchain_omnigraph import OmniGraph, OmniGraphRetriever, OmniGraphTools, OmniGraphVectorStore

from note_graphs import ENVIRON
from served_graph import served_graph
from test_graph_documents import GraphDocument, Node, Relationship


def test_adapters_over_http(notes, tmp_path):
    with served_graph(tmp_path / "notes.omni", ENVIRON) as remote:
        store = OmniGraphVectorStore(remote, type="Note", vector="meaning", json_metadata="extra", hit_metadata=True)
        store.add_texts(["Herons nest on the dyke."], [{"page": 3, "year": 2020}], ids=["n5"], message="herons")
        (hit,) = store.similarity_search("herons on a dyke", k=1, filter={"year": {">": 2000}})
        assert (hit.id, hit.metadata["page"], hit.metadata["omnigraph"]["commit"]) == ("n5", 3, remote.head().commit_id)
        assert remote.commits()[0].message == "herons"
        assert len(store.max_marginal_relevance_search("bridge", k=2)) == 2
        store.delete(["n5"])
        assert store.get_by_ids(["n5"]) == []

        (first,) = OmniGraphRetriever(remote, query="recall", text="note.text", k=1).invoke("what did flooding damage")
        assert (first.id, first.metadata["omnigraph"]["type"]) == ("n3", "Note")
        assert first.metadata["omnigraph"]["path"][0]["from"] == {"id": "Bo", "type": "Author"}

        tools = {tool.name: tool for tool in OmniGraphTools(remote, branch="agent/7").get_tools()}
        tools["write_note"].invoke({"slug": "n6", "text": "The dyke is new.", "author": "Bo"})
        assert "n6" in tools["write_note"].invoke({"slug": "n6", "text": "Again.", "author": "Bo"})
        proposed = json.loads(tools["propose"].invoke({"title": "A dyke"}))
        remote.proposal(proposed["proposal"]).land()
        assert notes.get("Note", "n6") is not None

        cleo = Node("Cleo", "AUTHOR")
        document = GraphDocument([cleo], [Relationship(cleo, Node("n6", "note"), "WROTE")])
        assert OmniGraph(remote).add_graph_documents([document]) == notes.head().commit_id
