"""Texts → vectors: one embeddings client for loads, mutations, queries and files.

`config` resolves provider and model from given variables. `client` is the interface. Providers are `provider` (HTTP:
`wire` message formats, `transport` connections, `retry` attempts and deadlines, `rate_limit` limits), `mock` and
`local` (both offline). `vectors` checks and normalises. `offline` adds vectors to JSONL by a `specification`, with the
rows of `jsonl_rows`. The package is independent of graphs, schemas and tables, and does not read the process
environment.
"""
