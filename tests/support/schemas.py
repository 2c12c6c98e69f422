"""Random schemas and random changes, as texts that compile.

A schema grows from nothing by random edits, and a change is a few more of the same edits; an edit that would not
compile is taken back. An edit that renames writes the hint, sometimes a wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random

from hypothesis import strategies as st

from omnigraph.errors import CompileError
from omnigraph.schema.check import compile_schema

TYPE_NAMES = tuple("ABC")
PROPERTY_NAMES = tuple("abcd")
SCALARS = (
    "String",
    "String",
    "String",
    "I32",
    "F64",
    "Blob",
    "Vector(2)",
    "Vector(2)",
    "[I32]",
    "enum(x)",
    "enum(x, y)",
)
MARKS = ("@index", "@index", "@unique", "@key", '@description("one")', '@description("two")', "@weight(1)")
NOTES = ('@description("one")', '@description("two")', '@instruction("do")', "@weight(1)")
CARDS = ("", "@card(0..1)", "@card(1..)")


@dataclass
class Prop:
    type: str
    nullable: bool = True
    marks: list[str] = field(default_factory=list)
    embed: str | None = None
    origin: str | None = None
    """The name in the accepted schema; None if new."""
    hint: str | None = None

    def render(self, name: str) -> str:
        embed = [f"@embed({self.embed})"] if self.embed else []
        hint = [f'@rename_from("{self.hint}")'] if self.hint else []
        return " ".join([f"{name}: {self.type}{'?' * self.nullable}", *self.marks, *embed, *hint])


@dataclass
class Rule:
    word: str
    columns: list[str]
    tail: str = ""

    def render(self) -> str:
        return f"@{self.word}({', '.join(self.columns)}{self.tail})"


@dataclass
class Type:
    props: dict[str, Prop] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    implements: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    card: str = ""
    origin: str | None = None
    hint: str | None = None


@dataclass
class Schema:
    interface: dict[str, Type] = field(default_factory=dict)
    node: dict[str, Type] = field(default_factory=dict)
    edge: dict[str, Type] = field(default_factory=dict)

    def of(self, kind: str) -> dict[str, Type]:
        return getattr(self, kind)

    def types(self) -> Iterator[tuple[str, str, Type]]:
        for kind in ("interface", "node", "edge"):
            for name, type_ in self.of(kind).items():
                yield kind, name, type_

    def render(self) -> str:
        return "\n".join(_render(kind, name, type_) for kind, name, type_ in self.types())

    def accept(self) -> Schema:
        """The same schema as the starting point of a change."""
        accepted = deepcopy(self)
        for _, name, type_ in accepted.types():
            type_.origin, type_.hint = name, None
            for prop_name, prop in type_.props.items():
                prop.origin, prop.hint = prop_name, None
        return accepted


def _render(kind: str, name: str, type_: Type) -> str:
    head = f"{kind} {name}"
    if kind == "edge":
        head += f": {type_.ends[0]} -> {type_.ends[1]} {type_.card}"
    notes = [*type_.notes, *([f'@rename_from("{type_.hint}")'] if type_.hint else [])]
    if kind != "interface":
        head = " ".join([head, *notes])
    if type_.implements:
        head += f" implements {', '.join(type_.implements)}"
    lines = [prop.render(prop_name) for prop_name, prop in type_.props.items()]
    lines += [rule.render() for rule in type_.rules]
    return "\n    ".join([f"{head} {{", *lines]) + "\n}"


# -- edits: each changes the schema in place, or does nothing when there is nothing to change -----------


def _some_type(schema: Schema, random: Random) -> tuple[str, str, Type] | None:
    found = list(schema.types())
    return random.choice(found) if found else None


def _some_table(schema: Schema, random: Random) -> tuple[str, str, Type] | None:
    """A node or edge, rarely an interface, because most changes to interfaces are refused."""
    found = _some_type(schema, random)
    return None if found and found[0] == "interface" and random.random() < 0.8 else found


def _some_prop(schema: Schema, random: Random) -> tuple[str, str, Type, str] | None:
    found = [(kind, name, type_, p) for kind, name, type_ in schema.types() for p in type_.props]
    return random.choice(found) if found else None


def _columns(schema: Schema, type_: Type) -> list[str]:
    inherited = [p for i in type_.implements for p in schema.interface[i].props]
    return sorted({*type_.props, *inherited, *(("src", "dst") if type_.ends else ())})


def _family(schema: Schema, kind: str, name: str) -> list[Type]:
    """The type, and for an interface also its implementations."""
    takers = [n for n in schema.node.values() if name in n.implements] if kind == "interface" else []
    return [schema.of(kind)[name], *takers]


def add_type(schema: Schema, random: Random) -> None:
    kind, name = random.choice(("interface", "node", "node", "edge")), random.choice(TYPE_NAMES)
    if name in schema.of(kind) or (kind == "edge" and not schema.node):
        return
    type_ = Type(props={p: _new_prop(random) for p in random.sample(PROPERTY_NAMES, random.randint(0, 3))})
    if kind == "edge":
        type_.ends = [random.choice(list(schema.node)), random.choice(list(schema.node))]
        type_.card = random.choice(CARDS)
    elif kind == "node" and schema.interface and random.random() < 0.6:
        type_.implements = random.sample(list(schema.interface), 1)
    schema.of(kind)[name] = type_


def _new_prop(random: Random) -> Prop:
    return Prop(
        random.choice(SCALARS), nullable=random.random() < 0.7, marks=random.choices(MARKS, k=1)[: random.randint(0, 1)]
    )


def drop_type(schema: Schema, random: Random) -> None:
    if found := _some_table(schema, random):
        kind, name, _ = found
        del schema.of(kind)[name]
        if kind == "node":
            schema.edge = {n: edge for n, edge in schema.edge.items() if name not in edge.ends}


def rename_type(schema: Schema, random: Random) -> None:
    found, new = _some_table(schema, random), random.choice(TYPE_NAMES) + "2"
    if found and new not in schema.of(found[0]):
        kind, name, type_ = found
        del schema.of(kind)[name]
        schema.of(kind)[new] = type_
        type_.hint = type_.origin
        for edge in schema.edge.values():
            edge.ends = [new if kind == "node" and end == name else end for end in edge.ends]
        for node in schema.node.values():
            node.implements = [new if kind == "interface" and i == name else i for i in node.implements]


def add_prop(schema: Schema, random: Random) -> None:
    found, name = _some_type(schema, random), random.choice(PROPERTY_NAMES)
    if found and name not in found[2].props:
        found[2].props[name] = _new_prop(random)


def add_nullable_prop(schema: Schema, random: Random) -> None:
    found, name = _some_type(schema, random), random.choice(PROPERTY_NAMES)
    if found and name not in found[2].props:
        found[2].props[name] = Prop(random.choice(SCALARS), marks=random.choice(([], ["@index"])))


def drop_prop(schema: Schema, random: Random) -> None:
    if found := _some_prop(schema, random):
        kind, name, type_, prop = found
        del type_.props[prop]
        for member in _family(schema, kind, name):
            member.rules = [rule for rule in member.rules if prop not in rule.columns]


def rename_prop(schema: Schema, random: Random) -> None:
    found, new = _some_prop(schema, random), random.choice(PROPERTY_NAMES) + "2"
    if found and new not in found[2].props:
        kind, name, type_, old = found
        prop = type_.props.pop(old)
        type_.props[new] = prop
        prop.hint = prop.origin
        for member in _family(schema, kind, name):
            for rule in member.rules:
                rule.columns = [new if column == old else column for column in rule.columns]
            for other in member.props.values():
                other.embed = new if other.embed == old else other.embed


def change_type(schema: Schema, random: Random) -> None:
    if found := _some_prop(schema, random):
        found[2].props[found[3]].type = random.choice(SCALARS)


def extend_enum(schema: Schema, random: Random) -> None:
    enums = [p for _, _, t in schema.types() for p in t.props.values() if p.type.startswith("enum")]
    if enums:
        prop = random.choice(enums)
        prop.type = prop.type.replace(")", f", {random.choice('vwz')})")


def toggle_nullable(schema: Schema, random: Random) -> None:
    if found := _some_prop(schema, random):
        prop = found[2].props[found[3]]
        prop.nullable = not prop.nullable


def toggle_mark(schema: Schema, random: Random) -> None:
    if found := _some_prop(schema, random):
        _toggle(found[2].props[found[3]].marks, random.choice(MARKS))


def toggle_note(schema: Schema, random: Random) -> None:
    if found := _some_type(schema, random):
        _toggle(found[2].notes, random.choice(NOTES))


def change_text(schema: Schema, random: Random) -> None:
    """Set or remove a description, of a type or of a property."""
    types = [type_ for _, _, type_ in schema.types()]
    lists = [type_.notes for type_ in types] + [prop.marks for type_ in types for prop in type_.props.values()]
    if lists:
        _toggle(random.choice(lists), random.choice(NOTES[:2]))


def _toggle(items: list[str], item: str) -> None:
    if item in items:
        items.remove(item)
    else:
        # Keep only the new description, so that the text compiles.
        items[:] = [other for other in items if other.split("(")[0] != item.split("(", maxsplit=1)[0]] + [item]


def add_rule(schema: Schema, random: Random) -> None:
    found = _some_type(schema, random)
    if found and found[0] != "interface" and (columns := _columns(schema, found[2])):
        word = random.choice(("index", "index", "unique", "key", "range"))
        if word == "range":
            rule = Rule(word, [random.choice(columns)], f", {random.randint(0, 3)}..")
        else:
            rule = Rule(word, random.sample(columns, random.randint(1, min(3, len(columns)))))
        found[2].rules.append(rule)


def add_index(schema: Schema, random: Random) -> None:
    found = _some_type(schema, random)
    if found and found[0] != "interface" and (columns := _columns(schema, found[2])):
        found[2].rules.append(Rule("index", random.sample(columns, random.randint(1, min(2, len(columns))))))


def drop_rule(schema: Schema, random: Random) -> None:
    found = _some_type(schema, random)
    if found and found[2].rules:
        found[2].rules.pop(random.randrange(len(found[2].rules)))


def toggle_implements(schema: Schema, random: Random) -> None:
    if schema.node and schema.interface:
        node, interface = random.choice(list(schema.node.values())), random.choice(list(schema.interface))
        if interface in node.implements:
            node.implements.remove(interface)
        else:
            node.implements.append(interface)


def redeclare(schema: Schema, random: Random) -> None:
    """Declare an inherited property in a node."""
    found = [(n, i) for n in schema.node.values() for i in n.implements]
    if found:
        node, interface = random.choice(found)
        for name, prop in schema.interface[interface].props.items():
            node.props.setdefault(name, Prop(prop.type, prop.nullable))


def change_edge(schema: Schema, random: Random) -> None:
    if schema.edge:
        edge = random.choice(list(schema.edge.values()))
        if random.random() < 0.5:
            edge.card = random.choice(CARDS)
        else:
            edge.ends[random.randrange(2)] = random.choice(list(schema.node))


def change_embed(schema: Schema, random: Random) -> None:
    vectors = [(t, p) for _, _, t in schema.types() for p in t.props.values() if p.type.startswith("Vector")]
    if vectors:
        type_, prop = random.choice(vectors)
        texts = [name for name, other in type_.props.items() if other.type == "String"]
        prop.embed = random.choice([None, *texts, *_columns(schema, type_)])


def forget_hint(schema: Schema, random: Random) -> None:
    hinted = [item for _, _, type_ in schema.types() for item in (type_, *type_.props.values()) if item.hint]
    if hinted:
        random.choice(hinted).hint = None


def stray_hint(schema: Schema, random: Random) -> None:
    found = _some_prop(schema, random)
    if found and random.random() < 0.3:
        _, _, type_, prop = found
        target = random.choice((type_, type_.props[prop]))
        target.hint = random.choice((*PROPERTY_NAMES, *TYPE_NAMES))


Edit = Callable[[Schema, Random], None]
SUPPORTED: tuple[Edit, ...] = (
    rename_type, rename_prop, add_nullable_prop, drop_prop, drop_type, extend_enum, add_type, change_text, add_index,
    forget_hint,
)  # fmt: skip
ANY: tuple[Edit, ...] = (
    *SUPPORTED, add_prop, change_type, toggle_nullable, toggle_mark, toggle_mark, toggle_note, add_rule, drop_rule,
    toggle_implements, redeclare, change_edge, change_embed, stray_hint,
)  # fmt: skip
GROWING: tuple[Edit, ...] = (
    add_type, add_type, add_type, add_prop, add_prop, add_rule, add_rule, toggle_mark, toggle_note, change_embed,
    toggle_implements, redeclare,
)  # fmt: skip


def _edit(schema: Schema, random: Random, edits: tuple[Edit, ...], count: int) -> Schema:
    for _ in range(count):
        edited = deepcopy(schema)
        random.choice(edits)(edited, random)
        try:
            compile_schema(edited.render())
        except CompileError:
            continue
        schema = edited
    return schema


SEEDS = st.integers(0, 2**64 - 1).map(Random)
"""One draw seeds all choices: more varied and faster than one draw per choice."""


@st.composite
def schema_texts(draw: st.DrawFn) -> str:
    """The text of a schema."""
    random = draw(SEEDS)
    return _edit(Schema(), random, GROWING, random.randint(0, 30)).render()


@st.composite
def schema_changes(draw: st.DrawFn) -> tuple[str, str]:
    """The texts of a schema and of its successor; most changes are supported."""
    random = draw(SEEDS)
    old = _edit(Schema(), random, GROWING, random.randint(5, 40)).accept()
    # Few edits that are usually refused, so that one refusal does not hide another.
    edits, most = random.choice(((SUPPORTED, 6), (ANY, 2)))
    new = _edit(old, random, edits, random.randint(1, most))
    return old.render(), new.render()


@st.composite
def schema_forks(draw: st.DrawFn) -> tuple[str, str, str]:
    """The texts of a schema and of two successors; most changes are supported."""
    return random_fork(draw(SEEDS))


def random_fork(random: Random) -> tuple[str, str, str]:
    """A schema and two successors of it, as texts."""
    old = _edit(Schema(), random, GROWING, random.randint(5, 40)).accept()
    ours, theirs = (_edit(old, random, SUPPORTED, random.randint(0, 4)) for _ in range(2))
    return old.render(), ours.render(), theirs.render()


@st.composite
def schema_renames(draw: st.DrawFn) -> tuple[str, str]:
    """A schema without interfaces, and a copy that differs only by renames."""
    random = draw(SEEDS)
    old = _without_interfaces(_edit(Schema(), random, GROWING, random.randint(5, 40))).accept()
    return old.render(), _edit(old, random, (rename_type, rename_prop), random.randint(1, 6)).render()


def _without_interfaces(schema: Schema) -> Schema:
    schema.interface.clear()
    for _, _, type_ in schema.types():
        type_.implements.clear()
        type_.rules = [rule for rule in type_.rules if set(rule.columns) <= set(_columns(schema, type_))]
        for prop in type_.props.values():
            prop.embed = prop.embed if prop.embed in type_.props else None
    return schema
