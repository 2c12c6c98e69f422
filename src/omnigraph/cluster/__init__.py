"""Clusters: the graphs, schemas, stored queries and policies of a deployment, declared by files.

A folder with `cluster.yaml` declares a deployment (`declaration`). Applied revisions are numbered documents below
`__cluster/` of the storage, each written only if its number is free (`cluster_store`). `observe` reads what the graphs
hold, `plan` compares it with the declaration, `converge` carries a plan out under a lock. A server started with
`--cluster` serves the newest applied revision, never what is merely declared.
"""
