"""Types of properties, parameters and result columns, with their text and JSON forms.

A property's type is a scalar (or `Vector(n)`), possibly a list of it, possibly nullable, possibly a String limited
to an enum's values. Result columns also have object types and lists of any type. `scalar_types.registry` describes the
scalars, `schema.arrow` maps types to Arrow, and `values` reads and writes values.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from omnigraph.fast_dataclass import dataclass
from omnigraph.scalar_types.registry import KINDS, ScalarKind, ScalarName

SCALARS: tuple[ScalarName, ...] = tuple(name for name in KINDS if name != "Vector")
"""The scalars that are written by name alone; `Vector` needs its dimension."""

_FOREIGN_LISTS = ("list", "array", "set")
_BY_FOREIGN_NAME: dict[str, str] = {name: kind.name for kind in KINDS.values() for name in kind.foreign_names}
_BY_FOREIGN_NAME.update(dict.fromkeys(_FOREIGN_LISTS, "[T], such as [String]"))


def foreign_type(name: str) -> str | None:
    """Return the type that another language calls `name`; None if it is not known."""
    return _BY_FOREIGN_NAME.get(name.lower())


INTEGER_RANGES: dict[ScalarName, tuple[int, int]] = {
    kind.name: kind.integer_range for kind in KINDS.values() if kind.integer_range is not None
}
FLOATS: frozenset[ScalarName] = frozenset(kind.name for kind in KINDS.values() if kind.is_float)
VECTOR_DIM_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class PropertyType:
    """The type of a property, a parameter or an expression.

    `enum_values` is sorted and without repeats, so two spellings of one enum are equal.
    """

    scalar: ScalarName
    nullable: bool = False
    is_list: bool = False
    dim: int | None = None
    enum_values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        assert (self.dim is not None) == (self.scalar == "Vector"), "exactly vectors have a dimension"
        assert self.enum_values is None or (self.scalar == "String" and not self.is_list)

    @property
    def kind(self) -> ScalarKind:
        """The registry entry of the scalar."""
        return KINDS[self.scalar]

    @property
    def is_integer(self) -> bool:
        """True for an integer of any width that is not a list."""
        return self.scalar in INTEGER_RANGES and not self.is_list

    @property
    def is_float(self) -> bool:
        """True for a floating-point number of any width that is not a list."""
        return self.scalar in FLOATS and not self.is_list

    @property
    def is_numeric(self) -> bool:
        """True for an integer or floating-point number that is not a list."""
        return not self.is_list and (self.scalar in INTEGER_RANGES or self.scalar in FLOATS)

    @property
    def is_text(self) -> bool:
        """True for a String or an enum that is not a list."""
        return self.scalar == "String" and not self.is_list

    @property
    def item(self) -> PropertyType:
        """Type of the items of a list."""
        assert self.is_list
        return PropertyType(self.scalar)

    def with_nullable(self, nullable: bool) -> PropertyType:
        """Return the same type, nullable or not."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    def __str__(self) -> str:
        if self.enum_values is not None:
            text = f"enum({', '.join(self.enum_values)})"
        elif self.scalar == "Vector":
            text = f"Vector({self.dim})"
        else:
            text = self.scalar
        if self.is_list:
            text = f"[{text}]"
        return f"{text}?" if self.nullable else text

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that plans and schema documents contain."""
        return {
            "scalar": {"Vector": self.dim} if self.scalar == "Vector" else self.scalar,
            "nullable": self.nullable,
            "list": self.is_list,
            "enum_values": list(self.enum_values) if self.enum_values is not None else None,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> PropertyType:
        """Return the type with this JSON form; ValueError or KeyError if the data is not one."""
        scalar, dim, is_list = data["scalar"], None, bool(data["list"])
        if isinstance(scalar, dict):
            dim, scalar = scalar["Vector"], "Vector"
            if type(dim) is not int or not 1 <= dim <= VECTOR_DIM_MAX:
                raise ValueError(f"bad vector dimension {dim!r}")
        elif scalar not in SCALARS:
            raise ValueError(f"unknown scalar {scalar!r}")
        values = data["enum_values"]
        if is_list and (scalar in ("Vector", "Blob") or values is not None):
            raise ValueError("a list holds plain scalars")
        if values is not None and (scalar != "String" or not _is_enum(values)):
            raise ValueError("enum values must be a sorted list without repeats, on a String")
        return cls(
            cast(ScalarName, scalar),
            nullable=bool(data["nullable"]),
            is_list=is_list,
            dim=dim,
            enum_values=tuple(values) if values is not None else None,
        )


@dataclass(frozen=True, slots=True)
class ObjectType:
    """Type of a returned object: a whole node or edge, or an object literal. The fields are ordered."""

    fields: tuple[tuple[str, ResultType], ...]
    nullable: bool = False
    name: str | None = None
    """Name of the node or edge type if the object is a whole entity."""

    def __str__(self) -> str:
        text = self.name or f"{{ {', '.join(f'{name}: {type_}' for name, type_ in self.fields)} }}"
        return f"{text}?" if self.nullable else text


@dataclass(frozen=True, slots=True)
class ListType:
    """Type of a returned list with items of any type; a stored list of scalars is a `PropertyType`."""

    item: ResultType
    nullable: bool = False

    def __str__(self) -> str:
        return f"[{self.item}]?" if self.nullable else f"[{self.item}]"


ResultType = PropertyType | ObjectType | ListType
"""Type of a result column and of the values inside it."""


def _is_enum(values: Any) -> bool:
    if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
        return False
    return sorted(set(values)) == values
