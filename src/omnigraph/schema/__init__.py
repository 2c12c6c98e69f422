"""The schema language: text → tree → catalog, and from one catalog to the next.

`parser` reads `.pg` text into the tree of `ast`; `check` decides whether it is sound and builds the
`catalog`, which is what the rest of the program knows of a schema; `format` writes a tree back as
text; `identity` gives types and properties numbers that survive renames and keeps them in a document;
`migrate` plans the way from an accepted schema to a desired one; `arrow` lays tables out.
"""
