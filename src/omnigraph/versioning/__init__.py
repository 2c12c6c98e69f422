"""History: what a graph is at a point in time, and how it moves to the next.

`records` are the facts kept in the manifest and their row form; `state` is what one manifest version
says; `repository` is an opened graph; `snapshot` a pinned view; `transaction` the one way to write;
`branches` moves heads; `recovery` settles what crashed writers left; `maintenance` compacts, indexes and
collects; `verify` proves it all. Nothing here knows a query or a schema's meaning: a schema is a text with a hash.
"""
