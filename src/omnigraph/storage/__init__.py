"""Bytes and table versions: the only package that knows Lance, object stores and the disk.

`layout` names every path of a graph; `location` reads URIs; `objects` moves small files and proves that
a store can keep a promise; `durable` makes local files survive a power cut; `tables` reads and stages
versions of one table; `manifest` is the table whose last version decides what is visible; `indexes` builds
indexes; `failpoints` lets a test stop any step. Nothing here knows what a commit or a branch means.
"""
