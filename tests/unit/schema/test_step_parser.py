"""Migration steps are the same after their JSON form."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from omnigraph.schema.catalog import Metadata
from omnigraph.schema.constraints import Check, Index, Key, Range, Unique
from omnigraph.schema.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdateMerge,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
)
from omnigraph.schema.step_parser import parse_step
from omnigraph.types import PropertyType

NOTES = (Metadata("description", "a person"), Metadata("embed", "text", (("model", "m"),)), Metadata("mark"))
STEPS: list[Step] = [
    AddType("node", "Person"),
    RenameType("edge", "Knows", "Likes"),
    AddProperty("node", "Person", "vector", PropertyType("Vector", nullable=True, dim=3)),
    AddProperty("node", "Person", "tags", PropertyType("String", nullable=True, is_list=True)),
    AddProperty("node", "Person", "state", PropertyType("String", nullable=True, enum_values=("off", "on"))),
    RenameProperty("node", "Person", "age", "years"),
    *(
        AddConstraint("node", "Person", each)
        for each in (Key(("a",)), Unique(("a", "b")), Index(("a",)), Range("a", None, 1.5), Check("a", "^x$"))
    ),
    ExtendEnum("node", "Person", "state", ("x", "y")),
    UpdateTypeMetadata("node", "Person", NOTES),
    UpdatePropertyMetadata("node", "Person", "age", ()),
    UpdateMerge("combine"),
    DropProperty("node", "Person", "age"),
    DropType("edge", "Knows"),
    UnsupportedChange("node:Person", "not possible", "OG-MF-106"),
    UnsupportedChange("schema", "not possible"),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
def test_a_step_is_the_same_after_json(step: Step) -> None:
    assert parse_step(json.loads(json.dumps(step.to_json()))) == step


def test_every_step_is_tested() -> None:
    assert {type(step) for step in STEPS} == set(get_args(Step))
