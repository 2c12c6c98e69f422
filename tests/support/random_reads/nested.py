"""Random composed items: objects, lists, expressions over aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Protocol

from omnigraph.schema.catalog import EdgeType, NodeType

Scope = Mapping[str, NodeType | EdgeType]
_NUMBERS = ("I32", "I64", "U32", "F32", "F64")
_PLAIN = ("String", "Bool", "Date", "DateTime", "Uuid", *_NUMBERS)


class Generator(Protocol):
    """The interface of the query generator."""

    random: Random

    def properties(self, scope: Any, scalar: str | None = None, *, nodes: bool = False) -> list[str]: ...
    def nodes(self, scope: Any) -> list[str]: ...
    def number(self, scope: Any, own: str | None, depth: int = 0) -> str: ...
    def condition(self, scope: Any, names: Any, depth: int = 0) -> str: ...
    def aggregate(self, scope: Any) -> str: ...


def made(asking: Generator, scope: Scope, depth: int = 0) -> str:
    """An object or a list."""
    random = asking.random
    if random.random() < 0.3:
        return listed(asking, scope, depth)
    names = random.sample(("a", "b", "name", "id", "in", "not", "count"), random.randint(1, 3))
    return f"{{ {', '.join(f'{name}: {part(asking, scope, depth)}' for name in names)} }}"


def listed(asking: Generator, scope: Scope, depth: int) -> str:
    """A list of values of one type."""
    random = asking.random
    match random.randrange(5):
        case 0 if asking.nodes(scope):
            node = "$" + random.choice(asking.nodes(scope))
            return f"[{node}, {random.choice((node, 'null'))}]"
        case 1 if depth < 2:
            inner = part(asking, scope, 2)
            return f"[{{ x: {inner}, y: 1 }}, {{ x: {inner}, y: {random.choice(('2', '2.5', 'null'))} }}]"
        case 2:
            numbers = [of for scalar in _NUMBERS for of in asking.properties(scope, scalar)]
            return f"[{', '.join(random.choice([*numbers, '1', '2.5', '-3']) for _ in range(3))}, null]"
        case _:
            scalar = random.choice(_PLAIN)
            some = asking.properties(scope, scalar)
            return f"[{', '.join(random.choice(some) for _ in range(random.randint(1, 3)))}]" if some else "[null]"


def part(asking: Generator, scope: Scope, depth: int) -> str:
    """A field value of an object."""
    random = asking.random
    match random.randrange(8):
        case 0 if asking.nodes(scope):
            return "$" + random.choice(asking.nodes(scope))
        case 1 if depth < 2:
            return made(asking, scope, depth + 1)
        case 2:
            return asking.number(scope, None)
        case 3:
            return asking.condition(scope, list(scope)) or "true"
        case 4:
            return random.choice(("1", "2.5", '"x"', "null", "now()", "[1, 2]"))
        case _:
            return random.choice(asking.properties(scope) or ["1"])


def gathered(asking: Generator, scope: Scope) -> str:
    """A `collect` of nodes, objects or lists."""
    random = asking.random
    distinct = random.choice(("", "", "distinct "))
    nodes = ["$" + name for name in asking.nodes(scope)]
    inner = random.choice(nodes) if nodes and random.random() < 0.4 else made(asking, scope)
    return f"collect({distinct}{inner})"


def computed(asking: Generator, scope: Scope) -> tuple[str, bool]:
    """An item over aggregates, and whether it is sortable."""
    random = asking.random
    count = f"count({random.choice(['$' + name for name in asking.nodes(scope)] or ['1'])})"
    numbers = [of for scalar in _NUMBERS for of in asking.properties(scope, scalar)] or ["2"]
    texts = asking.properties(scope, "String") or ['"b"']
    props = asking.properties(scope) or ["1"]
    match random.randrange(9):
        case 0:
            return f"{count} {random.choice('+-*/%')} {random.choice(('1', '2', '0', '2.5'))}".replace(
                "% 2.5", "% 3"
            ), True
        case 1:
            return f"sum({random.choice(numbers)}) / {count}", True
        case 2:
            return f"{random.choice(('min', 'max'))}({random.choice(numbers)}) {random.choice('<>')} {count}", True
        case 3:
            return f"length({random.choice(texts)}) + {count}", True
        case 4:
            return f"coalesce(max({random.choice(numbers)}), 0)", True
        case 5:
            test = f"{random.choice(props)} is null {random.choice(('and', 'or'))} {count} > {random.choice('012')}"
            return f"({test})", True
        case 6:
            return f"{random.choice(('lower', 'upper'))}(min({random.choice(texts)}))", True
        case 7:
            return f"[{count}, {asking.number(scope, None)}, 1]", False
        case _:
            key, other = part(asking, scope, 0), random.choice((asking.aggregate(scope), gathered(asking, scope)))
            return f"{{ key: {key}, n: {count} * 2, m: {other} }}", False
