"""The stories of a graph, one per file, each told from top to bottom.

Here the language side and the storage side meet: a schema becomes tables and indexes, a name becomes a
table key. Surfaces call these; nothing here prints.
"""
