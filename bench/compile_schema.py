"""From schema text to catalog, for schemas of growing size.

The time per type must not depend on the number of types: for a linear compiler the ratio of 200 types to 20 is about 1.
Half of the types are nodes, half are edges.
"""

from __future__ import annotations

from bench.measure import medians_us
from omnigraph.schema.check import compile_schema

SIZES = (20, 50, 100, 200)
ROUNDS = 40

INTERFACE = """
interface Titled {
    title: String @index
    updated: DateTime?
}
"""

NODE = """
node Item{n} @description("Number {n} of a large family") implements Titled {{
    code: String @key
    kind: enum(draft, review, done)
    rank: I32?
    price: F64?
    labels: [String]?
    vector: Vector(8)? @embed("title")
    @unique(kind, code)
    @index(price)
    @range(rank, 0..1000)
    @check(code, "^[A-Z]+-[0-9]+$")
}}
"""

EDGE = """
edge LinksTo{n}: Item{n} -> Item{next} @card(0..8) {{
    weight: F32?
    since: Date @index
    @unique(src, dst)
}}
"""


def schema_of(types: int) -> str:
    """A schema with this number of node and edge types."""
    nodes = types // 2
    parts = [INTERFACE]
    for n in range(nodes):
        parts += [NODE.format(n=n), EDGE.format(n=n, next=(n + 1) % nodes)]
    return "".join(parts)


def figures(*, rounds: int = ROUNDS) -> dict[str, float]:
    texts = {types: schema_of(types) for types in SIZES}

    def compiling(text: str):
        return lambda: compile_schema(text)

    times = medians_us({str(types): compiling(text) for types, text in texts.items()}, rounds=rounds, calls=1)
    per_type = {types: times[str(types)] / types for types in SIZES}
    found = {f"schema_{types}_types_us": times[str(types)] for types in SIZES}
    found |= {f"schema_{types}_per_type_us": per_type[types] for types in SIZES}
    found["schema_200_to_20_ratio"] = per_type[200] / per_type[20]
    return found


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:<26} {value:10.2f}")
