"""The result of a read, computed without optimisation from the specification alone (`query-language.md` §§4-12).

The oracle uses only the syntax tree and the catalog of the product. A graph is dictionaries of stored values: dates
are days, datetimes are milliseconds, 32-bit floats are already rounded.

A match block is a set of conditions on assignments of variables. A hop without an edge variable is a relation between
its two ends, so it never multiplies rows and the order of binding does not matter. An edge variable ranges over edge
rows. Every `$_` is a distinct variable.

Where the specification leaves a choice, the oracle defines it:

- The *source* of §5.2 is the source of the edge; for an undirected hop, its left end. Only this reading makes the
  order of clauses irrelevant.
- Within a ranked entity, ties of further sort keys are ordered by the ids of the bound edges, then of the other
  variables, each in name order (§8.3 before §11).
- A list of F32 is an F32 column: values searched in it are rounded first.
- A function of a null text is false or 0; of a null vector, null.
- Folding to ASCII decomposes every Unicode composition, including accents and ligatures.
"""
