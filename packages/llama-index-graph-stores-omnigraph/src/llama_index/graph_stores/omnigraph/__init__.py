"""LlamaIndex over OmniGraph: a property graph store with a schema, branches and commits.

    store = OmniGraphPropertyGraphStore(graph, schema="grow")
    index = PropertyGraphIndex.from_documents(documents, property_graph_store=store)

Every upsert is one commit of the branch of the graph handle; `store.transaction()` groups several.
"""

from llama_index.graph_stores.omnigraph.base import OmniGraphPropertyGraphStore
from llama_index.graph_stores.omnigraph.growth import chunk_declaration

__all__ = ["OmniGraphPropertyGraphStore", "chunk_declaration"]
