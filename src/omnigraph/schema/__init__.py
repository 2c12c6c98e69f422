"""The schema language: text → tree → catalog, and migration between catalogs.

`parser` parses `.pg` text into the tree of `ast`. `check` validates the tree and builds the `catalog`, which the rest
of the program uses. `format` prints a tree as text. `identity` assigns numbers to types and properties that survive
renames and stores them in a document. `migrate` plans the steps from an accepted schema to a desired one. `arrow`
derives the Arrow schemas of tables.
"""
