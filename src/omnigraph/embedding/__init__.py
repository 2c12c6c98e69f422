"""Texts → vectors: the one embeddings client, used for loading, mutations, query text and files alike.

`config` resolves which provider and model a graph handle uses, from variables it is given; `client` is
what the rest of the program holds; behind it stand `provider` (HTTP: `wire` shapes, `transport`
connections, `calls` tries and deadlines, `limits` what may be asked), `mock` and `local` (both offline);
`vectors` checks and normalises; `offline` puts vectors into lines of JSON by a `specification`, row by row
with `rows`. Nothing here knows a graph, a schema or a table, and nothing reads the process environment.
"""
