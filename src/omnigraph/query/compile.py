"""Query text to plan in one call."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.errors import InputError, QueryNotFound
from omnigraph.lang.spans import Source
from omnigraph.query.check.typecheck import check_query
from omnigraph.query.inference import infer_params
from omnigraph.query.plan.ir import AnyIR
from omnigraph.query.plan.lower import lower
from omnigraph.query.syntax.ast import Param, QueryDefinition, QueryFile
from omnigraph.query.syntax.parser import parse_source
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean, listing


def compile_query(
    catalog: Catalog,
    text: str,
    name: str | None = None,
    *,
    source_name: str = "<query>",
    declared: tuple[Param, ...] = (),
) -> AnyIR:
    """Return the plan of one query of `text`; `name` is optional if there is only one query.

    `declared` holds the parameters of a query without a head (`query.inline`).
    """
    source = Source(text, source_name)
    tree, _ = parse_source(source)
    query = pick_query(tree, name)
    if declared:
        query = replace(query, params=infer_params(catalog, query, declared))
    return lower(check_query(catalog, query, source))


def pick_query(tree: QueryFile, name: str | None) -> QueryDefinition:
    """Return the first query of this name; without a name, the only query."""
    if name is None:
        if len(tree.queries) == 1:
            return tree.queries[0]
        if not tree.queries:
            raise QueryNotFound("the source holds no query")
        names = listing(query.name.text for query in tree.queries)
        raise InputError(f"the source holds several queries: {names}", hint="name one of them")
    for query in tree.queries:
        if query.name.text == name:
            return query
    known = [query.name.text for query in tree.queries]
    hint = did_you_mean(name, known) or (f"it holds {listing(known)}" if known else None)
    raise QueryNotFound(f"the source holds no query '{name}'", hint=hint)
