"""The initial schema, its seed records and the names that schema changes use."""

from __future__ import annotations

from support.graph_model import (
    EdgeType,
    NodeType,
    Prop,
    Schema,
)

GHOST = "nobody"


START = Schema(
    nodes={
        "Person": NodeType(
            "Person",
            {
                "age": Prop("I32"),
                "born": Prop("Date"),
                "email": Prop("String"),
                "mood": Prop("enum", values=("calm", "wild")),
                "name": Prop("String", nullable=False),
                "score": Prop("F64"),
            },
            key=("name",),
            unique=(("email",),),
            ranges={"age": (0, 120), "score": (-1.5, None)},
            checks={"email": "@"},
        ),
        "Place": NodeType(
            "Place",
            {
                "city": Prop("String", nullable=False),
                "code": Prop("U32", nullable=False),
                "kind": Prop("enum", nullable=False, values=("big", "small")),
                "label": Prop("String"),
            },
            key=("city", "code"),
            unique=(("kind", "label"),),
        ),
        "Item": NodeType(
            "Item",
            {
                "size": Prop("U64"),
                "price": Prop("F64"),
                "quantity": Prop("I32", nullable=False),
                "sku": Prop("I64", nullable=False),
            },
            key=("sku",),
            unique=(("price",),),
            ranges={"quantity": (None, 10)},
        ),
        "Note": NodeType(
            "Note",
            {
                "at": Prop("DateTime"),
                "body": Prop("Blob"),
                "done": Prop("Bool"),
                "tags": Prop("[I64]"),
                "text": Prop("String", nullable=False, indexed=True),
                "vector": Prop("Vector(2)"),
                "weight": Prop("F32"),
            },
        ),
    },
    edges={
        "Knows": EdgeType("Knows", "Person", "Person", {"since": Prop("Date")}, unique=(("dst", "src"),)),
        "LivesIn": EdgeType("LivesIn", "Person", "Place", {"share": Prop("F32")}, card=(0, 1)),
        "About": EdgeType(
            "About",
            "Note",
            "Person",
            {"grade": Prop("enum", values=("a", "b")), "mark": Prop("I32", nullable=False)},
            unique=(("mark",),),
            card=(1, 2),
        ),
        "Holds": EdgeType("Holds", "Place", "Item"),
    },
)


NEW_PROPERTIES = ("alpha", "beta", "gamma")


NEW_NODES = ("Robot", "Tree")


NEW_EDGES = ("Likes", "Owns")


SEEDS = [
    {"type": "Person", "data": {"name": "a", "age": 7}},
    {"type": "Person", "data": {"name": "b", "email": "a@b"}},
    {"type": "Person", "data": {"name": "Z"}},
    {"type": "Place", "data": {"city": "a", "code": 7, "kind": "big"}},
    {"type": "Place", "data": {"city": "b", "code": 0, "kind": "small", "label": "a"}},
    {"type": "Item", "data": {"sku": 1, "quantity": 2, "price": 0.1}},
    {"type": "Note", "data": {"id": "n0", "text": "a"}},
    {"type": "Note", "data": {"id": "n1", "text": "b", "tags": [1, 2]}},
    {"edge": "Knows", "from": "a", "to": "b", "data": {"id": "e0"}},
    {"edge": "LivesIn", "from": "a", "to": '["a","7"]', "data": {"id": "e0"}},
    {"edge": "About", "from": "n0", "to": "a", "data": {"id": "e0", "mark": 1}},
    {"edge": "Holds", "from": '["a","7"]', "to": "1", "data": {"id": "e0"}},
]
