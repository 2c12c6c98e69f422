"""What a read answers, worked out the slow way from the specification alone (`query-language.md` §§4-12).

Nothing here is fast and nothing here looks at the program: of it, only the query's tree and the catalog are
used. A graph is plain dicts of stored values: dates are days, datetimes are milliseconds, 32-bit floats are
already rounded.

A match block is read as what it says about assignments. A hop without an edge variable is a relation between
its two ends, so it never multiplies rows and it does not matter which end was known first; an edge variable
ranges over edge rows; every `$_` is a variable of its own that nobody can name again.

Where the text leaves a choice, it is made once and here:

- The *source* of §5.2 is the source of the edge, and of an undirected hop its left end: that is the only
  reading under which the order of clauses has no effect.
- Within a ranked entity, rows that further sort keys leave tied come by the ids of the bound edges, then of
  the other variables, each in name order (§8.3 before §11).
- A list of F32 is an F32 column too: what is looked for in it is rounded first.
- A function of an absent text is false or 0, of an absent vector null.
- Folding to ASCII undoes whatever Unicode calls a composition: accents, and ligatures too.
"""
