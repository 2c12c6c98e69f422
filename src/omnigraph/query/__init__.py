"""The query language: text → tree → checked query → plan.

`parser` reads `.gq` text into the tree of `ast`; `format` writes it back; `typecheck` and `mutations`
resolve every name against a catalog and give `resolved` queries, in which nothing is left to look up;
`lower` turns those into the `ir` that the engine runs; `explain` shows a plan as text; `lint` reports on
a whole file; `params` reads JSON parameters. Nothing here touches data.
"""
