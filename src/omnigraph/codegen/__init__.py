"""Clients of the stored queries of a graph, as source text of other programs.

`client_model` describes a client independently of its language: the node types of the schema, and for each stored query
its parameters and columns with their types. `python_client` and `typescript_client` write it. All of it is pure.
"""
