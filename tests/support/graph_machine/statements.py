"""Query text with literals and parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

from support.graph_machine.values import INTEGERS, NUMBERS
from support.graph_model import (
    Prop,
)


class QueryText:
    """Builds a query; each value becomes a literal or a parameter."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.declared: list[str] = []
        self.params: dict[str, Any] = {}

    def value(self, prop: Prop, given: Any) -> str:
        literal = None if self.random.random() < 0.7 else literal_of(prop, given)
        if literal is not None:
            return literal
        type_ = "String" if prop.type == "enum" or (prop.type == "Blob" and self.random.random() < 0.5) else prop.type
        if prop.type in INTEGERS and isinstance(given, int) and self.random.random() < 0.2:
            given = str(given)
        return self.param(type_ + ("?" if given is None or self.random.random() < 0.2 else ""), given)

    def param(self, type_: str, given: Any) -> str:
        name = f"p{len(self.declared)}"
        self.declared.append(f"${name}: {type_}")
        if given is not None or self.random.random() < 0.5:
            self.params[name] = given
        return f"${name}"

    def text(self, statements: Sequence[str]) -> str:
        return f"query q({', '.join(self.declared)}) {{\n  " + "\n  ".join(statements) + "\n}"


def literal_of(prop: Prop, given: Any) -> str | None:
    match prop.type, given:
        case ("String" | "enum", str()) if given.isprintable():
            return json.dumps(given, ensure_ascii=False)
        case ("Date", str()) if len(given) == 10:
            return f'date("{given}")'
        case ("DateTime", str()):
            return f'datetime("{given}")'
        case ("Bool", bool()):
            return "true" if given else "false"
        case (kind, int()) if kind in NUMBERS and given >= 0:
            return str(given)
        case ("F32" | "F64", float()) if 0 < given < 100:
            return str(given)
        case ("[I64]", list()) if given:
            return str(given)
    return None
