"""How things show themselves in a notebook: HTML and SVG, made here, without a script or a network.

`tables` writes tables, `picture` draws small graphs. Neither knows what a graph, a query or a schema is.
"""
