"""Algorithms on whole graphs: centrality, communities, cores, orders, trees, similarity, embeddings.

Every algorithm is a function of an `EdgeList`, works on numpy arrays, and is deterministic: ties are broken by node or
edge number, and samples come from a generator with a given seed. `registry` lists the algorithms with their columns and
parameters; `operations.analysis` runs them on a snapshot and writes the values.
"""
