"""LangChain over OmniGraph: a vector store, a retriever, tools for agents, and graph documents.

    store = OmniGraphVectorStore(graph, type="Note", text="text", vector="meaning")
    retriever = OmniGraphRetriever(graph, query="recall", text="note.text", k=5)
    tools = OmniGraphTools(graph, branch="agent/7").get_tools()
    OmniGraph(graph).add_graph_documents(documents)

Every write is one commit of the branch of the graph handle.
"""

from langchain_omnigraph.graph import OmniGraph
from langchain_omnigraph.retriever import OmniGraphRetriever
from langchain_omnigraph.tools import OmniGraphTools
from langchain_omnigraph.vector_store import OmniGraphVectorStore

__all__ = ["OmniGraph", "OmniGraphRetriever", "OmniGraphTools", "OmniGraphVectorStore"]
