"""Storage of bytes and table versions: the only package that imports Lance and accesses object stores and the disk.

`files` contains paths, locations, small objects, input files and fsync. `lance` reads and stages versions of single
tables, builds indexes and removes versions. `manifest` is the table whose newest version defines what is visible.
`failpoints` lets tests stop any step; `backoff` waits after a lost race. The package does not know commits, branches or
schemas.
"""
