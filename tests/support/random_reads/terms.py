"""Names, literals and parameters of a random read."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.types import PropertyType
from support.random_reads import functions as reads_functions
from support.random_reads import paths as reads_paths
from support.random_reads.values import Values, _is_prose, key_uuid

_NAMES = "abcdkmpwxyz"


NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")


Scope = dict[str, NodeType | EdgeType | reads_paths.PathVariable]


def quoted(words: str) -> str:
    return '"' + words.replace("\\", "\\\\").replace('"', '\\"') + '"'


def random_function(random: Random) -> bool:
    """Choose whether to call a scalar function."""
    return random.random() < reads_functions.SHARE


class Terms:
    """Names, literals and parameters."""

    def __init__(self, random: Random, catalog: Catalog, values: Values) -> None:
        self.random = random
        self.values = values
        self.catalog = catalog
        self.declared: dict[str, str] = {}
        self.params: dict[str, Any] = {}
        self.free = random.sample(_NAMES, len(_NAMES))
        self.carried: dict[str, str] = {}
        """The values of the stage before: name → scalar type."""
        self.named = 0
        """The number of values that stages have named."""

    def nodes(self, scope: Scope) -> list[str]:
        return [name for name, type_ in scope.items() if isinstance(type_, NodeType)]

    def new_name(self, scope: Scope) -> str:
        name = self.free.pop() if self.free else f"v{len(scope)}"
        if self.random.random() < 0.2:
            self.free.insert(0, name)  # A name used only inside a `not` may be reused.
            if name in scope:
                return self.new_name(scope)
        return name

    def words(self) -> str:
        said = self.values.text(self.random)
        if self.random.random() < 0.03:
            return self.param("String?", None)
        return self.param("String", said) if self.random.random() < 0.4 else quoted(said)

    def atom(self, type_: PropertyType, name: str) -> str:
        """A literal or parameter comparable with this type."""
        random = self.random
        if type_.scalar == "DateTime" and random.random() < 0.15:
            return "now()"
        scalar = type_.scalar
        if scalar in NUMBERS and random.random() < 0.4:
            scalar = random.choice(NUMBERS)
        if type_.enum_values:
            item: Any = random.choice(type_.enum_values)
        elif _is_prose(type_, name) and random.random() < 0.5:
            item = self.values.text(random)
        elif name == "token":
            item = key_uuid(random.randrange(20))
        elif name in ("name", "number", "part"):
            item = f"n{random.randrange(20)}" if scalar == "String" else random.randrange(8)
            item = float(item) if scalar in ("F32", "F64") else item
        else:
            item = self.values.one(random, scalar)
        literal = self.literal(item, scalar)
        if literal is None or random.random() < 0.4:
            if random.random() < 0.06:
                return self.param(f"{scalar}?", None)
            if scalar in ("I64", "U64") and random.random() < 0.3:
                item = str(item)
            return self.param(scalar + random.choice(("", "?")), item)
        return literal

    def literal(self, item: Any, scalar: str) -> str | None:
        match scalar:
            case "Date":
                return f'date("{item}")'
            case "DateTime":
                return f'datetime("{item}")'
            case "Uuid":
                return f'uuid("{item}")'
            case "String":
                return quoted(item)
            case "Bool":
                return str(item).lower()
            case "F32" | "F64":
                shown = format(item, "f") if float(format(item, "f")) == item else repr(item)
                return shown if item >= 0 and "e" not in shown and not shown.startswith("-") else None
            case _:
                return str(item) if item >= 0 else None

    def listing(self, type_: PropertyType) -> str:
        """A list of values of this type."""
        scalar = self.random.choice(NUMBERS) if type_.scalar in NUMBERS else type_.scalar
        items = [self.values.one(self.random, scalar) for _ in range(self.random.randint(0, 4))]
        if type_.enum_values:
            items = ["red", "blue"]
        literals = [self.literal(item, scalar) for item in items]
        if self.random.random() < 0.5 or None in literals or not items:
            return self.param(f"[{scalar}]", items)
        return f"[{', '.join(str(item) for item in literals)}]"

    def param(self, type_: str, item: Any) -> str:
        """A new parameter, occasionally with the name of a variable, which it hides."""
        name = f"v{len(self.declared)}" if self.random.random() < 0.97 else self.random.choice(_NAMES)
        if name in self.declared:
            return self.param(type_, item)
        self.declared[name] = type_
        self.params[name] = item
        return f"${name}"

    def properties(self, scope: Scope, scalar: str | None = None, *, nodes: bool = False) -> list[str]:
        return [
            f"${name}.{prop.name}"
            for name, type_ in scope.items()
            for prop in type_.properties.values()
            if (scalar is None or prop.type.scalar == scalar)
            and not (scalar and prop.type.is_list)
            and not (nodes and isinstance(type_, EdgeType))
        ]

    def some(self, things: Sequence[str]) -> list[str]:
        return [self.random.choice(things)] if things else []
