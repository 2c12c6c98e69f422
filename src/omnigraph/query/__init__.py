"""The query language: text → syntax tree → checked query → plan.

`syntax` parses `.gq` text into a tree and formats a tree as text. `check` resolves every name against a catalog and
returns resolved queries without open references. `plan` lowers these to the IR that the engine runs, and prints a plan
(`explain`). `lint` reports on a whole file, and `params` reads JSON parameters. The registries `scalars`, `aggregates`
and `functions` define the functions. This package does not access data.

Class names: a node of the syntax tree ends in its category in the grammar (`CompareExpr`, `HopClause`,
`InsertStatement`); a checked construct begins with `Resolved` (`ResolvedHop`); a node of a plan has a plain name
(`Compare`, `Expand`).
"""
