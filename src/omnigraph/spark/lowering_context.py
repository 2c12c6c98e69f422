"""State of one lowered query: the snapshot, the names used so far, and the properties that each variable needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.plan.variable_types import node_types
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.arrow_udfs import entity_fields, properties_in, returned_entities, walk_tree
from omnigraph.spark.cancellable_action import Actions
from omnigraph.spark.scans import ScanValue
from omnigraph.types import ListType, ObjectType

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.spark.rank_lowering import RankLowering


class LoweringContext:
    """What the operators of one query share."""

    def __init__(
        self,
        spark: SparkSession,
        plan: ir.QueryIR,
        catalog: Catalog,
        job: Job,
        params: Mapping[str, Any],
        watch: Watch | None,
    ) -> None:
        from pyspark.sql import functions  # noqa: PLC0415

        self.f: Any = functions
        self.spark = spark
        self.plan = plan
        self.catalog = catalog
        self.job = job
        self.params = params
        self.actions = Actions(spark, f"query {plan.name}", watch)
        self.types = node_types(plan.pipeline)
        """Variable → node type."""
        self._numbers = count()
        self.ranks: Mapping[str, ScanValue] = {}
        """The property of a rank → the value that scans compute for it."""
        self.rankings: Mapping[str, RankLowering] = {}
        """The ranks that order rows, by the variable of their stage; an empty text for the part that returns."""
        self._needed = _needed_properties(plan, catalog)
        self._path_parts = {
            (part.var, part.part): part.type for part in walk_tree(plan) if isinstance(part, ir.PathPart)
        }

    def new_name(self) -> str:
        """Return a column name that is unique within the query, so that joins are unambiguous."""
        return f"c{next(self._numbers)}"

    def needed(self, var: str) -> list[str]:
        """Return the properties of a variable that are used outside its own scan."""
        return self._needed.get(var, [])

    def need(self, var: str, props: Iterable[str]) -> None:
        """Note that properties of a variable are used outside its own scan."""
        self._needed[var] = list(dict.fromkeys([*self.needed(var), *props]))

    def reads(self, var: str, prop: str) -> bool:
        """True if the query reads a property outside the scan of its variable."""
        return prop in self.needed(var)

    def path_parts(self, var: str) -> dict[str, ObjectType | ListType]:
        """Return the parts of a path that the query returns, with their types."""
        return {part: type_ for (name, part), type_ in self._path_parts.items() if name == var}

    def is_union(self, type_name: str) -> bool:
        """True if a type name stands for several node types, or for none."""
        return type_name not in self.catalog.nodes


def type_of(expr: ir.Expr) -> pa.DataType:
    """Return the Arrow type of an expression."""
    assert not isinstance(expr, ir.ColumnRef), "a column reference is resolved before"
    return arrow_type(expr.type)


def _needed_properties(plan: ir.QueryIR, catalog: Catalog) -> dict[str, list[str]]:
    """Map each variable to the properties that are used outside its own scan."""
    found: dict[str, dict[str, None]] = {}

    def note(exprs: Any) -> None:
        for prop in properties_in(exprs):
            found.setdefault(prop.var, {})[prop.name] = None

    def walk(pipeline: ir.Pipeline) -> None:
        for op in pipeline:
            if isinstance(op, ir.Filter):
                note(op.condition)
            elif isinstance(op, ir.FindPaths | ir.PathSteps):
                note(op.filters)
            elif isinstance(op, ir.AntiJoin | ir.LeftJoin):
                walk(op.inner)
            elif isinstance(op, ir.Stage):
                walk(op.query.pipeline)
                note((op.query.group_exprs, tuple(key.expr for key in op.query.order_by)))

    walk(plan.pipeline)
    note((plan.group_exprs, tuple(key.expr for key in plan.order_by)))
    for entity in (entity for expr in plan.group_exprs for entity in returned_entities(expr)):
        found.setdefault(entity.var, {}).update(dict.fromkeys(prop for _, prop in entity_fields(entity, catalog)))
    return {var: list(props) for var, props in found.items()}
