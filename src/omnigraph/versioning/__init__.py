"""Versioning of a graph: the state at a point in time, and how writes publish new states.

`model` contains the manifest objects and their rows, states, snapshots and ancestry. `write` contains the repository,
transactions, intents, recovery, branches and tags. `compare` finds differences and decides merges. `feed` is the change
feed and the history of rows. `upkeep` compacts, indexes, removes garbage and verifies. The package does not know
queries or the meaning of a schema.
"""
