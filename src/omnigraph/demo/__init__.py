"""A small graph to play with, made here: no download, the same on every machine.

A field station on a river delta: people in teams, projects, and the notes they write about topics. `vocabulary`
holds the words, `records` makes records of them from a seed, `build` makes the graph, with a branch that is ahead of
main and one planted conflict. The schema and the queries lie beside as files.
"""
