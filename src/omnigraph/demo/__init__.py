"""The demonstration graph: generated locally, without a download, equal on every machine.

A field station on a river delta: people in teams, projects, and notes about topics. `vocabulary` holds the words,
`records` generates records from a seed, `build` creates the graph, with a branch ahead of main and one conflict. The
schema and the queries are files in this package.
"""
