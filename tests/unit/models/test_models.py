"""Classes and schemas: pydantic, dataclasses and msgspec as they are."""

from __future__ import annotations

import dataclasses
import enum
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import example, given, settings

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.errors import CompileError, InputError, MissingPackage, RecordError
from omnigraph.schema.check import compile_schema
from omnigraph.schema.unparse import unparse
from support.schemas import schema_texts

ROOT = Path(__file__).parents[3]
KINDS = ("pydantic", "dataclass", "msgspec")


class Project(og.Node):
    code: Annotated[str, og.Key()]


class Person(og.Node):
    """Somebody at the station."""

    handle: Annotated[str, og.Key()]
    name: str
    age: Annotated[int, og.I32(), og.Range(0, 150)] | None = None
    meaning: Annotated[list[float], og.Vector(2, embed="name")] | None = None


class WorksOn(og.Edge[Person, Project]):
    __omnigraph__ = (og.Unique("src", "dst"), og.Card(0, 3))

    since: date


SCHEMA = """\
node Person @description("Somebody at the station.") {
    age: I32?
    handle: String @key
    meaning: Vector(2)? @embed("name")
    name: String
    @range(age, 0..150)
}

node Project {
    code: String @key
}

edge WorksOn: Person -> Project @card(0..3) {
    since: Date
    @unique(dst, src)
}
"""


def test_schema_of_models() -> None:
    assert og.schema_of([Person, WorksOn]) == SCHEMA
    assert og.schema_of([WorksOn]) == SCHEMA


def loaded(text: str, kind: str) -> types.ModuleType:
    """The module of the classes of a schema."""
    module = types.ModuleType("generated_models")
    sys.modules[module.__name__] = module
    exec(compile(og.models_of(text, kind), f"<{kind}>", "exec"), module.__dict__)
    return module


def canonical(text: str) -> str:
    return unparse(compile_schema(text), renames=True)


def example_schemas() -> Iterator[Path]:
    for folder in ("examples", "src", "tests", "docs"):
        yield from sorted((ROOT / folder).rglob("*.pg"))


EVERY_TYPE = """
interface Named { name: String @index @description("shown") }
interface Dated { at: DateTime? }
node All @description("with \\"quotes\\"") @instruction("do") implements Named, Dated {
    key: String @key
    class: I32?
    list: [I64]
    date: Date
    datetime: DateTime
    uuid: Uuid?
    copy: Bool
    model_x: U32
    u: U64
    f: F32?
    floats: [F32]?
    blob: Blob?
    kind: enum(b, a)
    vec: Vector(3)? @embed("key", model="m")
    v: Vector(2)
    small: I32 @rename_from("tiny") @unique
    @range(small, -5..5)
    @range(f, 0.5..)
    @check(key, "^[a-z\\"]+$")
    @index(u, small)
}
node Date { at: DateTime @key }
edge All: All -> Date @card(1..2) @rename_from("Every") { since: Date @index  @unique(src, since) }
"""


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_the_examples_give_the_same_schema(kind: str) -> None:
    found = 0
    for path in example_schemas():
        text = path.read_text(encoding="utf-8")
        try:
            expected = canonical(text)
        except CompileError:
            continue
        assert og.schema_of(loaded(text, kind)) == expected, path
        found += 1
    assert found > 10


@pytest.mark.parametrize("kind", KINDS)
def test_models_of_every_type_give_the_same_schema(kind: str) -> None:
    assert og.schema_of(loaded(EVERY_TYPE, kind)) == canonical(EVERY_TYPE)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(schema_texts())
@example("node A { a: String @key  @range(b, 0..1)  b: F64? }")
def test_models_of_any_schema_give_the_same_schema(text: str) -> None:
    for kind in KINDS:
        assert og.schema_of(loaded(text, kind)) == canonical(text), og.models_of(text, kind)


@pytest.mark.parametrize("kind", [*KINDS, "typeddict"])
def test_generated_modules_are_current(kind: str) -> None:
    """`make lint` checks the files with mypy --strict."""
    path = ROOT / "tests" / "typing" / "generated" / f"models_{kind}.py"
    text = og.models_of(EVERY_TYPE, kind)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


# -- values ----------------------------------------------------------------------------------------

RULES = """
node Thing {
    key: String @key
    small: I32?
    count: U32?
    huge: U64?
    single: F32?
    share: F64?
    code: String?
    kind: enum(red, blue)?
    vec: Vector(2)?
    @range(small, -5..5)
    @range(share, 0.5..1)
    @check(code, "^[a-z]+$")
}
"""
VALUES: list[tuple[str, Any, bool]] = [
    ("small", 5, True),
    ("small", 6, False),
    ("small", 2**31, False),
    ("count", 2**32 - 1, True),
    ("count", 2**32, False),
    ("count", -1, False),
    ("huge", 2**64 - 1, True),
    ("huge", -1, False),
    ("single", 1.5, True),
    ("share", 0.5, True),
    ("share", 0.4, False),
    ("share", 1.5, False),
    ("code", "abc", True),
    ("code", "aBc", False),
    ("kind", "red", True),
    ("kind", "green", False),
    ("vec", [1.0, 2.0], True),
    ("vec", [1.0], False),
]


@pytest.fixture(scope="module")
def things(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return og.init(tmp_path_factory.mktemp("things") / "g", RULES, sync=False, environ={})


@pytest.mark.parametrize(("name", "value", "accepted"), VALUES)
def test_models_and_the_store_refuse_the_same_values(things: og.Graph, name: str, value: Any, accepted: bool) -> None:
    record = {"key": "k", name: value}

    def accepts(call: Any) -> bool:
        try:
            call()
        except (RecordError, InputError, ValueError):
            return False
        return True

    assert accepts(lambda: things.load([{"type": "Thing", "data": record}], mode="merge")) is accepted
    assert accepts(lambda: loaded(RULES, "pydantic").Thing(**record)) is accepted
    assert accepts(lambda: msgspec.convert(record, loaded(RULES, "msgspec").Thing)) is accepted


# -- objects ---------------------------------------------------------------------------------------


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.init(tmp_path / "g", og.schema_of([WorksOn]), sync=False, environ={})


QUERY = "match { $p: Person } return { $p } order { $p.handle }"


def test_objects_round_trip(graph: og.Graph) -> None:
    people = [Person(handle="ana", name="Ana", age=30, meaning=[1.0, 2.0]), Person(handle="bo", name="Bo")]
    graph.load([*people, Project(code="x")], mode="merge", embed=False)
    graph.load(iter([WorksOn(src=people[0], dst="x", since=date(2026, 1, 2))]), mode="append")
    found = graph.query(QUERY, into=Person)
    assert [each.model_copy(update={"id": None}) for each in found] == people
    assert [each.id for each in found] == ["ana", "bo"]
    edges = graph.query(
        "match { $p: Person $p $e: worksOn $x } return { $e.since as since, id($p) as src, id($x) as dst }"
    )
    assert edges.into(WorksOn) == [WorksOn(src="ana", dst="x", since=date(2026, 1, 2))]
    # A field that was not given keeps its value; one that was given as None clears it.
    graph.load([Person(handle="ana", name="Ana B")], mode="merge", embed=False)
    assert graph.query(QUERY, into=Person)[0].age == 30
    graph.load([Person(handle="ana", name="Ana B", age=None)], mode="merge", embed=False)
    assert graph.query(QUERY, into=Person)[0].age is None


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Car:
    plate: Annotated[str, og.Key()]
    colour: Colour
    serial: UUID
    seen: datetime | None = None
    tags: list[str] = dataclasses.field(default_factory=list)


class Boat(msgspec.Struct, rename="camel"):
    hull_id: Annotated[str, og.Key()]
    crew: Annotated[int, msgspec.Meta(ge=0)]
    length: Annotated[float, msgspec.Meta(ge=1, le=400, description="metres")] | None = None
    wake: Annotated[int, msgspec.Meta(ge=-3, le=3), og.Named("class")] = 0


class Plane(pydantic.BaseModel):
    code: Annotated[str, og.Key(), pydantic.Field(pattern="^[A-Z]+$")]
    seats: int = pydantic.Field(ge=1, le=900, description="all classes")
    kind: Literal["jet", "prop"] = "jet"


def test_plain_classes_are_read(tmp_path: Path) -> None:
    schema = og.schema_of([Car, Boat, Plane])
    assert "colour: enum(blue, red)" in schema
    assert "serial: Uuid" in schema
    assert "crew: U64" in schema
    assert 'length: F64? @description("metres")' in schema
    assert "@range(length, 1..400)" in schema
    assert "@range(class, -3..3)" in schema
    assert '@check(code, "^[A-Z]+$")' in schema
    assert 'seats: I64 @description("all classes")' in schema
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    serial = UUID("01890a5d-ac96-774b-bcce-b302099a8057")
    cars = [Car("a", Colour.RED, serial, datetime(2026, 1, 1, tzinfo=UTC), ["x"]), Car("b", Colour.BLUE, serial)]
    boats, planes = [Boat("h", 3, 2.5, 1)], [Plane(code="X", seats=3)]
    graph.load([*cars, *boats, *planes], mode="append")
    rows = "match { $c: %s } return { $c } order { $c.%s }"
    assert graph.query(rows % ("Car", "plate"), into=Car) == cars
    assert graph.query(rows % ("Boat", "hull_id"), into=Boat) == boats
    assert graph.query(rows % ("Plane", "code"), into=Plane) == [Plane(code="X", seats=3, kind="jet")]
    assert graph.sql("select plate, colour, serial, tags from Car where plate = 'b'").into(Car) == cars[1:]


MISMATCHES = {
    "return { $p.handle, $p.name, $p.age as years }": "Person has no field for the column 'years'",
    "return { $p.handle }": "the result has no column for the field 'name' of Person",
    "return { $p.handle, $p.age as name }": "column 'name' is I32, and the field 'name' of Person is String",
    "return { $p.handle, $p as name }": "column 'name' is an object, and the field 'name' of Person is String",
    "return { $p.handle, null as name }": "name",
}


@pytest.mark.parametrize("returned", MISMATCHES)
def test_a_mismatch_names_column_type_and_field(graph: og.Graph, returned: str) -> None:
    graph.load([Person(handle="ana", name="Ana")], mode="merge", embed=False)
    with pytest.raises((InputError, CompileError), match=MISMATCHES[returned]):
        graph.query(f"match {{ $p: Person }} {returned}", into=Person)


def test_nulls_and_refused_values_name_the_row(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node P { k: String @key  n: I64? }", sync=False, environ={})
    graph.load([{"type": "P", "data": {"k": "a", "n": 1}}, {"type": "P", "data": {"k": "b"}}], mode="append")
    text = "match { $p: P } return { $p.k as k, $p.n as n } order { $p.k }"

    @dataclasses.dataclass
    class Whole:
        k: str
        n: int

    class Large(pydantic.BaseModel):
        k: str
        n: int | None = pydantic.Field(ge=2)

    sys.modules[__name__].__dict__.update(Whole=Whole)
    with pytest.raises(InputError, match="row 2: column 'n' is null; field 'n' of Whole"):
        graph.query(text, into=Whole)
    with pytest.raises(InputError, match="row 1 of the result is no Large"):
        graph.query(text, into=Large)


# -- what is refused -------------------------------------------------------------------------------


def refused(annotation: Any, **more: Any) -> str:
    cls = dataclasses.make_dataclass("Wrong", [("field", annotation)], namespace=more)
    with pytest.raises(InputError) as caught:
        og.schema_of([cls])
    assert caught.value.code == "bad_model"
    return caught.value.message


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (int | str, "int | str is not a type of a property"),
        (Any, "Any is not a type"),
        (dict[str, int], r"dict\[str, int\] is not a type"),
        (list[list[int]], r"list\[list\[int\]\] is not a type"),
        (list[int | None], "is not a type"),
        (list[Colour], "is not a type"),
        (Literal[1, 2], "is not a type"),
        (Car, "Car is not a type"),
        (Annotated[str, og.I32()], "og.I32.. does not fit str"),
        (Annotated[list[int], og.Vector(2)], "is not a type"),
        (Annotated[str, msgspec.Meta(max_length=3)], "no 'max_length'"),
        (Annotated[float, msgspec.Meta(gt=3)], "no 'gt'"),
        (Annotated[str, og.Key("a", "b")], "names no properties"),
    ],
)
def test_what_a_schema_cannot_say_is_refused(annotation: Any, message: str) -> None:
    found = refused(annotation)
    assert re.search(message, found), found


class WithId(pydantic.BaseModel):
    id: int


class NoEnds(og.Edge):  # type: ignore[type-arg]
    since: date


class CardOfNode(og.Node):
    __omnigraph__: ClassVar[Any] = (og.Card(0, 1),)


class NoMarks(og.Node):
    __omnigraph__: ClassVar[Any] = ("key",)


@pytest.mark.parametrize("cls", [int, WithId, NoEnds, CardOfNode, NoMarks])
def test_wrong_classes_are_refused(cls: type) -> None:
    with pytest.raises(InputError) as caught:
        og.schema_of([cls])
    assert caught.value.code == "bad_model"


def test_kinds_and_packages(graph: og.Graph) -> None:
    assert og.models_of(graph) == og.models_of(graph.catalog()) == og.models_of(str(graph.schema))
    with pytest.raises(InputError, match="no kind of models 'attrs'"):
        og.models_of(graph, "attrs")  # type: ignore[arg-type]
    script = """
import sys
sys.modules["pydantic"] = None
import dataclasses, omnigraph as og
@dataclasses.dataclass
class A: k: str
print(og.schema_of([A]))
try: og.Node
except og.errors.MissingPackage as error: print(error.hint)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "k: String" in done.stdout, done.stderr
    assert "pip install 'omnigraph[models]'" in done.stdout
    assert issubclass(MissingPackage, ImportError)


def test_codegen_command(graph: og.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["codegen", "models", graph.uri]) == 0
    assert capsys.readouterr().out == og.models_of(graph)
    assert run(["codegen", "models", "--kind", "msgspec", "-o", str(tmp_path / "m.py"), graph.uri]) == 0
    assert (tmp_path / "m.py").read_text() == og.models_of(graph, "msgspec")
    assert run(["codegen", "models", "--kind", "attrs", graph.uri]) == 2
    assert run(["codegen", "python", "--kind", "pydantic", graph.uri]) == 2
