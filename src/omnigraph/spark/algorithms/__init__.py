"""The algorithms of `engine.algorithms` on DataFrames, for graphs whose edges do not fit one machine.

    solver       the algorithms by name
    edge_frames  the input: edges between numbered nodes as DataFrames
    centrality, communities, components, cores, degrees, embeddings, label_propagation, orders, pagerank, similarity,
    trees        the algorithms, with the same values as in process

Nodes have the same numbers as in process. The edges stay on the cluster; arrays with one value per node are collected.
Every round is checkpointed: otherwise the query plan grows with each round and soon costs more than the computation.
"""
