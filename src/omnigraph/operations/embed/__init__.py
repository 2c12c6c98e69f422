"""Embedding of texts of a graph."""
