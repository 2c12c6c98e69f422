"""HTML and SVG forms of objects in a notebook, without scripts and without network access.

`tables` writes tables and `picture` draws small graphs; neither depends on graphs, queries or schemas. `result_view`,
`change_view`, `write_view` and `schema_view` draw results, changes, commits and schemas. Importing this package
registers them with `omnigraph.display.html_of`. `magics` has the magics of `%load_ext omnigraph`.
"""

from omnigraph.notebook import change_view, result_view, write_view

__all__ = ["change_view", "result_view", "write_view"]
