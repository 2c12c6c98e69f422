"""Reads for exploration: neighbours, changes as a graph, projections, figures."""
