"""The plan of a query: frozen, typed, and complete.

Nothing in it needs the schema's text or a name lookup: variables are unique across the whole plan
(a name the user reused in a `not` block is told apart by a `#` suffix no source can contain), every
expression carries its type, constants are in the form tables store, hops know their direction.

A read is a pipeline of operations over a bag of rows, each row binding variables to entities:

    NodeScan   cross product with the rows of a node table that pass `filters`
    Expand     follow an edge from a bound variable; see the class
    Filter     keep rows where the condition is definitely true
    FindPaths  follow hops from a bound variable, and bind the paths themselves
    AntiJoin   drop rows for which the inner pipeline, its outer variables fixed, yields any row
    LeftJoin   extend rows by what the inner pipeline yields; a row it yields nothing for stays as it is

followed by columns, order and limit.
"""

from __future__ import annotations

from omnigraph.query.plan.ir.expressions import *  # noqa: F403 (a vocabulary in three files, spoken as `ir.Name`)
from omnigraph.query.plan.ir.reads import *  # noqa: F403
from omnigraph.query.plan.ir.reads import QueryIR
from omnigraph.query.plan.ir.writes import *  # noqa: F403
from omnigraph.query.plan.ir.writes import MutationIR

AnyIR = QueryIR | MutationIR
