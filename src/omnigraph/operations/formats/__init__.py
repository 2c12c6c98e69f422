"""Exports in the formats of other graph programs: Neo4j admin CSV, GraphML and GEXF."""
