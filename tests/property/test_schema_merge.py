"""Random schemas: printing preserves the catalog; a merge has the changes of both sides."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings

from omnigraph.errors import SchemaChangeError
from omnigraph.schema.check import compile_schema
from omnigraph.schema.identity import SchemaIR, new_identity, resolve_identity, shape_hash
from omnigraph.schema.merge import MergedSchema, merge_schemas
from omnigraph.schema.migrate import plan_schema, plan_steps
from omnigraph.schema.migration_steps import UnsupportedChange
from omnigraph.schema.unparse import unparse
from support.schemas import random_fork, schema_forks, schema_texts

DOMAIN = "0" * 26


def supported_successor(accepted: SchemaIR, text: str) -> SchemaIR | None:
    """The schema that results from applying a text to the accepted schema; None if the change is not supported."""
    catalog = compile_schema(text)
    try:
        supported = plan_schema(accepted, catalog).supported
    except SchemaChangeError:
        supported = False
    return resolve_identity(accepted, catalog).ir if supported else None


def successor(accepted: SchemaIR, text: str) -> SchemaIR:
    found = supported_successor(accepted, text)
    assume(found is not None)
    assert found is not None
    return found


@settings(max_examples=150)
@given(schema_texts())
def test_printed_catalog_compiles_to_the_same_catalog(text):
    catalog = compile_schema(text)
    assert shape_hash(compile_schema(unparse(catalog))) == shape_hash(catalog)


@settings(max_examples=150)
@given(schema_forks())
def test_merge_of_random_schemas(texts):
    base = new_identity(compile_schema(texts[0]), DOMAIN).ir
    ours = successor(base, texts[1])
    theirs = successor(replace(base, next_id=ours.next_id), texts[2])
    check_merge(base, ours, theirs)


@pytest.mark.long
def test_merge_of_20000_random_schemas():
    merges, seed = 0, 0
    while merges < 20_000:
        seed += 1
        texts = random_fork(Random(seed))
        base = new_identity(compile_schema(texts[0]), DOMAIN).ir
        ours = supported_successor(base, texts[1])
        theirs = supported_successor(replace(base, next_id=ours.next_id), texts[2]) if ours else None
        if ours is None or theirs is None:
            continue
        try:
            check_merge(base, ours, theirs)
        except Exception as error:
            raise AssertionError(f"seed {seed}: {error!r}\n" + "\n--\n".join(texts)) from error
        merges += 1


def check_merge(base: SchemaIR, ours: SchemaIR, theirs: SchemaIR) -> None:
    """The merge is symmetric, both sides can reach its result, and it has the types of both."""
    result = merge_schemas(base, ours, theirs)
    back = merge_schemas(base, theirs, ours)
    assert isinstance(result, MergedSchema) == isinstance(back, MergedSchema)
    if isinstance(result, MergedSchema) and isinstance(back, MergedSchema):
        assert result.text == back.text
        assert result.ir == back.ir
        # Both sides can migrate to the merged schema.
        for side in (ours, theirs):
            refused = [step for step in plan_steps(side, result.ir) if isinstance(step, UnsupportedChange)]
            assert refused == []
        ids = [{type_.id for type_ in ir.types()} for ir in (base, ours, theirs, result.ir)]
        assert ids[3] == (ids[1] & ids[2]) | (ids[1] - ids[0]) | (ids[2] - ids[0])


@settings(max_examples=100)
@given(schema_forks())
def test_unchanged_side_does_not_affect_the_merge(texts):
    base = new_identity(compile_schema(texts[0]), DOMAIN).ir
    side = successor(base, texts[1])
    for result in (merge_schemas(base, side, base), merge_schemas(base, base, side), merge_schemas(base, side, side)):
        assert isinstance(result, MergedSchema)
        assert replace(result.ir, next_id=0) == replace(side, next_id=0)
