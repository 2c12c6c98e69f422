"""The plan of a query: immutable, typed and complete.

A plan needs neither the text of the schema nor a name lookup. Variables are unique in the whole plan: a name reused in
a `not` block gets a `#` suffix, which no source can contain. Every expression has a type, constants are in stored form,
and hops have a direction.

A read is a pipeline of operations over a bag of rows, each row binding variables to entities:

    NodeScan   cross product with the rows of a node table that pass `filters`
    Expand     follow an edge from a bound variable
    Filter     keep rows for which the condition is true
    FindPaths  follow hops from a bound variable and bind the paths
    PathSteps  extend rows by the edges of a path
    AntiJoin   drop rows for which the inner pipeline, with its outer variables fixed, returns a row
    LeftJoin   extend rows by those of the inner pipeline; a row without any is kept with nulls
    InnerJoin  extend rows by those of the inner pipeline; a row without any is dropped
    Stage      the rows of a complete query, with the variables and values that it carries on; the first operation

followed by columns, order and limit.
"""

from __future__ import annotations

from omnigraph.query.plan.ir.expressions import *  # noqa: F403 (three modules, used as `ir.Name`)
from omnigraph.query.plan.ir.reads import *  # noqa: F403
from omnigraph.query.plan.ir.reads import QueryIR
from omnigraph.query.plan.ir.writes import *  # noqa: F403
from omnigraph.query.plan.ir.writes import MutationIR

AnyIR = QueryIR | MutationIR
