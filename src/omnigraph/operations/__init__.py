"""Operations on a graph, one per file.

This layer connects languages and storage: a schema becomes tables and indexes, a type name becomes a table key.
Interfaces call operations. Operations print nothing.
"""
