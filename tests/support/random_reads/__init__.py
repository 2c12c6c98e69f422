"""Random schemas, graphs and reads, each determined by one seed, and the graph as the oracle sees it.

Values come from small pools, so that equal values, ties, empty and full results occur. The pools hold difficult
values: integers beyond the precision of a float, both zeros, text whose order depends on the encoding, words with a
common stem, parallel vectors. Ids overlap between types.
"""
