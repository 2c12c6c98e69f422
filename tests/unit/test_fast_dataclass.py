"""`fast_dataclass.dataclass` behaves as the decorator of the standard library."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, fields, is_dataclass, replace
from dataclasses import dataclass as standard
from typing import Any, ClassVar

import pytest

from omnigraph.fast_dataclass import dataclass as fast

DECORATORS = {"standard": standard, "fast": fast}


class Declared:
    """The same classes, declared by one decorator."""

    def __init__(self, declare: Any) -> None:
        @declare(frozen=True, slots=True)
        class Point:
            """A point."""

            x: int
            y: float = 0.5
            tags: list[str] = field(default_factory=list)
            place: str = field(default="here", compare=False, repr=False)

        @declare(frozen=True)
        class Named:
            """A class without slots, with a check and a method of its own."""

            name: str

            def __post_init__(self) -> None:
                if not self.name:
                    raise ValueError("a name is required")

            def __repr__(self) -> str:
                return f"<{self.name}>"

        @declare(frozen=True)
        class Own:
            """A class with its own equality."""

            value: int

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Own) and self.value % 10 == other.value % 10

        @declare(frozen=True, slots=True)
        class Empty:
            """No fields."""

        @declare(frozen=True, slots=True)
        class Child(Point):
            """A class that inherits fields."""

            z: int = 3

        @declare(frozen=True)
        class Counted:
            """A class with a class variable."""

            kind: ClassVar[str] = "counted"
            n: int = 1

        @declare(frozen=True, order=True)
        class Ordered:
            """A class with an order."""

            n: int

        self.Point, self.Named, self.Own, self.Empty = Point, Named, Own, Empty
        self.Child, self.Counted, self.Ordered = Child, Counted, Ordered


@pytest.fixture(params=list(DECORATORS))
def declared(request: pytest.FixtureRequest) -> Declared:
    return Declared(DECORATORS[request.param])


def test_construction_and_text(declared: Declared) -> None:
    point = declared.Point(1)
    assert (point.x, point.y, point.tags, point.place) == (1, 0.5, [], "here")
    assert declared.Point(1, 2.0, ["a"], "there").tags == ["a"]
    assert declared.Point(x=1).tags is not point.tags
    assert repr(point).endswith("Point(x=1, y=0.5, tags=[])")
    assert repr(declared.Empty()).endswith("Empty()")
    assert repr(declared.Named("a")) == "<a>"
    with pytest.raises(TypeError, match="x"):
        declared.Point()
    with pytest.raises(ValueError, match="a name is required"):
        declared.Named("")


def test_signature_fields_and_patterns(declared: Declared) -> None:
    assert list(inspect.signature(declared.Point).parameters) == ["x", "y", "tags", "place"]
    assert [one.name for one in fields(declared.Point)] == ["x", "y", "tags", "place"]
    assert is_dataclass(declared.Point)
    assert declared.Point.__match_args__ == ("x", "y", "tags", "place")
    parameters = declared.Point.__dataclass_params__
    assert (parameters.init, parameters.repr, parameters.eq, parameters.frozen) == (True, True, True, True)
    assert declared.Point.__init__.__annotations__ == {
        "x": "int",
        "y": "float",
        "tags": "list[str]",
        "place": "str",
        "return": None,
    }
    match declared.Point(4, 5.0):
        case declared.Point(x, y):
            assert (x, y) == (4, 5.0)


def test_equality_and_hash(declared: Declared) -> None:
    nan = float("nan")
    assert declared.Point(1, place="a") == declared.Point(1, place="b")
    assert declared.Point(1) != declared.Point(2)
    assert declared.Point(1).__eq__(1) is NotImplemented
    assert declared.Point(1) != declared.Child(1)
    assert declared.Named("a") == declared.Named("a")
    assert hash(declared.Named("a")) == hash(declared.Named("a")) == hash(("a",))
    assert declared.Counted(nan) == declared.Counted(nan)
    assert declared.Empty() == declared.Empty()
    assert hash(declared.Empty()) == hash(())
    assert declared.Own(1) == declared.Own(11)
    assert hash(declared.Own(1)) == hash((1,))
    with pytest.raises(TypeError, match="unhashable"):
        hash(declared.Point(1))
    assert declared.Ordered(1) < declared.Ordered(2)


def test_instances_are_frozen(declared: Declared) -> None:
    for one, name in ((declared.Point(1), "x"), (declared.Named("a"), "name"), (declared.Child(1), "z")):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one, name, 2)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(one, name)
    assert not hasattr(declared.Point(1), "__dict__")
    assert vars(declared.Named("a")) == {"name": "a"}


def test_copies(declared: Declared) -> None:
    point = declared.Point(1, 2.0, ["a"], "there")
    assert replace(point, x=3) == declared.Point(3, 2.0, ["a"])
    assert copy.copy(point) == point
    deep = copy.deepcopy(point)
    assert deep == point
    assert deep.tags is not point.tags
    assert deep.place == "there"
    assert copy.deepcopy(declared.Named("a")) == declared.Named("a")


def test_inherited_and_class_fields(declared: Declared) -> None:
    child = declared.Child(1, 2.0, ["a"], "there", 4)
    assert (child.x, child.z) == (1, 4)
    assert [one.name for one in fields(declared.Counted)] == ["n"]
    assert declared.Counted.kind == "counted"


@fast(frozen=True, slots=True)
class Stored:
    """A class of a module, which pickle finds by its name."""

    x: int
    y: list[int] = field(default_factory=list)


def test_pickle() -> None:
    one = pickle.loads(pickle.dumps(Stored(1, [2])))
    assert one == Stored(1, [2])


def test_recursive_text() -> None:
    one = Stored(1)
    one.y.append(one)  # type: ignore[arg-type]
    assert repr(one) == "Stored(x=1, y=[...])"


def test_attribute_methods_of_the_class_are_refused() -> None:
    for declare in DECORATORS.values():
        with pytest.raises(TypeError, match="Cannot overwrite attribute"):

            @declare(frozen=True)
            class Wrong:
                """A class with its own assignment."""

                x: int

                def __setattr__(self, name: str, value: object) -> None:
                    raise AssertionError
