"""Random writes over a catalog: single and combined statements of every kind, with returned rows.

Conditions on a row use the forms of reads with bare names.
"""

from __future__ import annotations

from random import Random
from typing import Any

from omnigraph.schema.catalog import EdgeType, NodeType, Property
from omnigraph.types import PropertyType
from support.oracle.model import World
from support.random_reads.generator import RandomRead, ReadGenerator
from support.random_reads.terms import Scope, quoted
from support.random_reads.values import Values, key_uuid

_ROW = "row"
_KEYS = ("name", "number", "part", "token")


class Mutating(ReadGenerator):
    """Generates one mutation; most of them compile."""

    def __init__(self, random: Random, world: World, values: Values) -> None:
        super().__init__(random, world.catalog, values)
        self.world = world
        self.named: Scope = {}
        self.single: dict[str, str] = {}
        """Variables of one node → its type."""

    def query(self) -> RandomRead:
        random = self.random
        count = random.choice((1, 1, 1, 2, 2, 3, 4))
        kind = random.random()
        statements = [self.statement(0 if kind < 0.55 else 1 if kind < 0.75 else 2) for _ in range(count)]
        body = "\n  ".join(statements)
        body = f"atomic {{\n  {body}\n  }}" if kind >= 0.75 or random.random() < 0.1 else body
        if self.named and random.random() < 0.8:
            body += f"\n  return {{ {', '.join(self.returned())} }}"
        declared = ", ".join(f"${name}: {type_}" for name, type_ in self.declared.items())
        return RandomRead(f"query q({declared}) {{\n  {body}\n}}", self.params)

    def statement(self, kind: int) -> str:
        """An insert, update or upsert, a delete, or any of them."""
        random = self.random
        if kind == 1 or (kind == 2 and random.random() < 0.35):
            types = [*self.catalog.nodes.values(), *self.catalog.edges.values()]
            return self.ended(self.delete, random.choice(types))
        node, edge = (random.choice(list(t.values())) for t in (self.catalog.nodes, self.catalog.edges))
        match random.randrange(6):
            case 0 | 1:
                return self.ended(self.insert_node, node)
            case 2:
                return self.ended(self.insert_edge, edge)
            case 3 if node.key:
                return self.ended(self.upsert, node)
            case 4 if edge.properties:
                return self.ended(self.update, edge)
            case _:
                return self.ended(self.update, node)

    def ended(self, write: Any, type_: NodeType | EdgeType) -> str:
        """The statement, possibly with a variable for its rows."""
        text: str = write(type_)
        if self.random.random() < 0.4 or not self.free:
            return text
        name = self.free.pop()
        self.named[name] = type_
        if text.startswith(("insert", "upsert")) and isinstance(type_, NodeType):
            self.single[name] = type_.name
        return f"{text} as ${name}"

    # -- statements ------------------------------------------------------------------------------

    def insert_node(self, type_: NodeType) -> str:
        assigns = [*self.key_of(type_, 60), *self.assigns(type_, None, required=True)]
        return f"insert {type_.name} {{ {', '.join(assigns)} }}"

    def insert_edge(self, edge: EdgeType) -> str:
        ends = [f"from: {self.end(edge.from_type)}", f"to: {self.end(edge.to_type)}"]
        assigns = [*ends, *self.assigns(edge, None, required=True)]
        self.random.shuffle(assigns)
        return f"insert {edge.name} {{ {', '.join(assigns)} }}"

    def end(self, type_name: str) -> str:
        random = self.random
        named = [name for name, of in self.single.items() if of == type_name]
        if named and random.random() < 0.7:
            return f"${random.choice(named)}"
        known = list(self.world.nodes[type_name])
        id_ = random.choice(known) if known and random.random() < 0.95 else "nobody"
        return self.param("String", id_) if random.random() < 0.3 else quoted(id_)

    def update(self, type_: NodeType | EdgeType) -> str:
        assigns = self.assigns(type_, type_, required=False)
        if not assigns:
            key = type_.key if isinstance(type_, NodeType) else ()
            some = self.random.choice([prop for prop in type_.properties.values() if prop.name not in key])
            assigns = [f"{some.name}: {self.assigned(some, type_)}"]
        return f"update {type_.name} set {{ {', '.join(assigns)} }} where {self.where(type_)}"

    def upsert(self, type_: NodeType) -> str:
        new = self.assigns(type_, None, required=True)
        both = [assign for assign in new if self.random.random() < 0.4]
        new = [assign for assign in new if assign not in both]
        first = [*self.key_of(type_), *both]
        self.random.shuffle(first)
        parts = [f"upsert {type_.name} {{ {', '.join(first)} }}"]
        taken = {assign.split(":")[0] for assign in both}
        existing = [a for a in self.assigns(type_, type_, required=False) if a.split(":")[0] not in taken]
        parts += [f"new {{ {', '.join(new)} }}"] if new and (not both or self.random.random() < 0.9) else []
        parts += [f"existing {{ {', '.join(existing)} }}"] if existing and self.random.random() < 0.7 else []
        return " ".join(parts)

    def delete(self, type_: NodeType | EdgeType) -> str:
        return f"delete {type_.name} where {self.where(type_)}"

    # -- parts of statements ---------------------------------------------------------------------

    def key_of(self, type_: NodeType, most: int = 20) -> list[str]:
        number = self.random.randrange(most)
        match type_.key:
            case ("name",):
                return [f"name: {quoted(f'n{number}')}"]
            case ("number",):
                return [f"number: {number - 3 if number > 2 else self.param('I64', number - 3)}"]
            case ("name", "part"):
                return [f"name: {quoted(f'n{number % 5}')}", f"part: {number // 5}"]
            case ("token",):
                return [f'token: uuid("{key_uuid(number)}")']
            case _:
                return []

    def where(self, type_: NodeType | EdgeType) -> str:
        """A condition on the row, occasionally on its identity."""
        random = self.random
        table = (self.world.nodes if isinstance(type_, NodeType) else self.world.edges)[type_.name]
        if isinstance(type_, EdgeType) and random.random() < 0.4:
            ids = [row["src"] for row in table.values()] or ["nobody"]
            return f"{random.choice(('from', 'to'))} {random.choice(('=', '!=', '<'))} {quoted(random.choice(ids))}"
        text = self.condition({_ROW: type_}, [_ROW])
        return text.replace(f"${_ROW}.", "") if text else random.choice(("true", "false"))

    def text_call(self, of: str) -> str:
        """Writes contain no search conditions."""
        return f"{of} icontains {quoted(self.random.choice(self.values.words))}"

    def assigns(self, type_: NodeType | EdgeType, row: NodeType | EdgeType | None, *, required: bool) -> list[str]:
        random = self.random
        found = []
        for prop in type_.properties.values():
            if prop.name in _KEYS and isinstance(type_, NodeType) and prop.name in type_.key:
                continue
            if (required and not prop.type.nullable) or random.random() < 0.25:
                found.append(f"{prop.name}: {self.assigned(prop, row)}")
        return found

    def assigned(self, prop: Property, row: NodeType | EdgeType | None) -> str:
        """A value for a property: a literal, a parameter, or an expression over the row."""
        random, type_ = self.random, prop.type
        if type_.nullable and random.random() < 0.1:
            return "null"
        if type_.is_list or type_.scalar == "Vector" or type_.enum_values or random.random() < 0.4:
            return self.given(type_, prop.name)
        scope: Scope = {_ROW: row} if row is not None else {}
        own = f"${_ROW}.{prop.name}" if row is not None else self.given(type_.with_nullable(False), prop.name)
        if type_.is_integer or type_.is_float:
            text = self.number(scope, own)
        elif type_.scalar == "Bool":
            text = (self.condition(scope, [_ROW]) if row is not None else "") or f"not {own}"
        elif type_.is_text:
            text = random.choice(
                (
                    f"trim({own})",
                    f'case {own} when "a" then "b" else {own} end',
                    f'{own} + "!"',
                    f"lower({own})",
                    f'coalesce({own}, "z")',
                    f'"x" + upper({own})',
                )
            )
        elif type_.scalar in ("Date", "DateTime") and random.random() < 0.5:
            text = (
                f"date_add({own}, {random.choice(('1', '-1', '9000'))}, {random.choice(('days', 'months', 'years'))})"
            )
        else:
            text = f"coalesce({own}, {self.given(type_.with_nullable(False), prop.name)})"
        return text.replace(f"${_ROW}.", "")

    def given(self, type_: PropertyType, name: str) -> str:
        """A literal or parameter of the type of the property."""
        item = self.values.json(self.random, type_, name)
        plain = not type_.is_list and type_.scalar != "Vector"
        literal = self.literal(item, type_.scalar) if plain and item is not None else None
        if literal is not None and self.random.random() < 0.6:
            return literal
        declared = "String" if type_.enum_values else str(type_.with_nullable(False))
        return self.param(declared + ("?" if item is None or self.random.random() < 0.3 else ""), item)

    # -- return ----------------------------------------------------------------------------------

    def returned(self) -> list[str]:
        random, scope = self.random, self.named
        items = []
        for _ in range(random.randint(1, 4)):
            match random.randrange(10):
                case 0 | 1 if self.nodes(scope):
                    items.append("$" + random.choice(self.nodes(scope)))
                case 2:
                    items.append(self.number(scope, None))
                case 6 if self.nodes(scope):
                    node, number = random.choice(self.nodes(scope)), self.number(scope, None)
                    items.append(f"{{ who: ${node}, some: [{number}, {number}], type: type(${node}) }}")
                case 5:
                    items.append(f"{random.choice(('id', 'type'))}(${random.choice(list(scope))})")
                case 3:
                    items += [test] if (test := self.condition(scope, list(scope))) else []
                case 4:
                    items.append(random.choice(("now()", "1.50", '"x"', "true", "7", "[1, 2]", 'date("2020-02-02")')))
                case _:
                    items += self.some(self.properties(scope))
        return self.aliased(items or ["1"], "stu")[0]
