"""Reads compared with peers: one generated graph, results compared first, then timed."""
