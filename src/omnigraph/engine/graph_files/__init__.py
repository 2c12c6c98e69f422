"""Files with the nodes and edges of several types: Neo4j admin CSV and GraphML."""
