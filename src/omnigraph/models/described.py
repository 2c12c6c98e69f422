"""A class → a described node type, edge type or interface."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

from omnigraph.errors import InputError
from omnigraph.models.annotations import field_type
from omnigraph.models.marks import Card, Ends, Implements, Inherited, Mark, Mixin, Named, Note, Renamed
from omnigraph.schema.catalog import SYSTEM_FIELDS, TypeKind
from omnigraph.types import PropertyType

_OWN = (Mixin, Named, Renamed, Note)
"""Marks that a class does not inherit."""
_SYSTEM = {**SYSTEM_FIELDS, "interface": ("id",)}
"""Fields that are no properties. A pydantic model that is an interface has the `id` of its base."""


@dataclass(frozen=True)
class DescribedField:
    """A field of a class, and the property that it holds."""

    field: str
    name: str
    type: PropertyType
    marks: tuple[Mark, ...]
    is_inherited: bool
    """True if an interface declares the property."""


@dataclass(frozen=True)
class DescribedType:
    """A class as a type of a schema."""

    cls: type
    kind: TypeKind
    name: str
    description: str | None
    fields: tuple[DescribedField, ...]
    marks: tuple[Mark, ...]
    interfaces: tuple[type, ...]
    ends: Ends | None

    @property
    def system_fields(self) -> tuple[str, ...]:
        """The fields that hold the columns before the properties, as far as the class has them."""
        return tuple(name for name in _SYSTEM[self.kind] if name in _annotations(self.cls))

    def mark(self, kind: type[Any]) -> Any:
        """Return the first mark of a kind; None if there is none."""
        return next((mark for mark in self.marks if isinstance(mark, kind)), None)


def is_model(cls: Any) -> bool:
    """Return True for a class of pydantic, dataclasses or msgspec that can be described."""
    return isinstance(cls, type) and (
        hasattr(cls, "model_fields") or dataclasses.is_dataclass(cls) or hasattr(cls, "__struct_fields__")
    )


def describe(cls: type) -> DescribedType:
    """Describe a class; raises `InputError` if it is no model or a field has no type of a property."""
    if not is_model(cls):
        raise InputError(
            f"{getattr(cls, '__name__', cls)} is not a model",
            code="bad_model",
            hint="give subclasses of og.Node and og.Edge, pydantic models, dataclasses or msgspec structs",
        )
    marks = _type_marks(cls)
    ends = next((mark for mark in marks if isinstance(mark, Ends)), None) or _generic_ends(cls)
    kind: TypeKind = "interface" if _is_mixin(cls) else "node" if ends is None else "edge"
    if kind != "edge" and any(isinstance(mark, Card) for mark in marks):
        raise InputError(f"{cls.__name__}: og.Card is for edges", code="bad_model")
    named = next((mark.name for mark in marks if isinstance(mark, Named)), cls.__name__)
    fields = tuple(_fields(cls, kind))
    return DescribedType(cls, kind, named, _docstring(cls), fields, marks, tuple(_interfaces(cls, kind, marks)), ends)


def _fields(cls: type, kind: TypeKind) -> Iterator[DescribedField]:
    for name, (annotation, metadata) in _annotations(cls).items():
        where = f"{cls.__name__}.{name}"
        if name in _SYSTEM[kind]:
            _check_system_field(annotation, where)
            continue
        found = field_type(annotation, metadata, where)
        named = next((mark.name for mark in found.marks if isinstance(mark, Named)), name)
        by_mark = any(isinstance(mark, Inherited) for mark in found.marks)
        inherited = kind == "node" and (by_mark or _is_mixin(_declaring(cls, name)))
        yield DescribedField(name, named, found.type, found.marks, inherited)


def _annotations(cls: type) -> dict[str, tuple[Any, list[Any]]]:
    """Return the annotation and the metadata of each field."""
    models = getattr(cls, "model_fields", None)
    if models is not None:
        return {
            name: (info.annotation, [*info.metadata, *([info] if info.description else [])])
            for name, info in models.items()
        }
    names = getattr(cls, "__struct_fields__", None)
    if names is None:
        names = [field.name for field in dataclasses.fields(cls)]
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise InputError(
            f"{cls.__name__}: the annotations name '{error.name}', which its module does not define",
            code="bad_model",
            hint="define the classes at the level of a module, and import the names of annotations there",
        ) from None
    return {name: (hints[name], []) for name in names}


def _check_system_field(annotation: Any, where: str) -> None:
    if annotation not in (str, str | None):
        raise InputError(
            f"{where} is the id of a row or end, and a text",
            code="bad_model",
            hint="declare it as 'str | None', or choose another name: id, and src and dst of edges, are taken",
        )


def _declaring(cls: type, name: str) -> type:
    """Return the class that declares a field."""
    return next(base for base in cls.__mro__ if name in inspect.get_annotations(base))


def _is_mixin(cls: type) -> bool:
    return any(isinstance(mark, Mixin) for mark in cls.__dict__.get("__omnigraph__", ()))


def _interfaces(cls: type, kind: TypeKind, marks: tuple[Mark, ...]) -> Iterator[type]:
    if kind == "node":
        yield from (base for base in cls.__mro__[1:] if _is_mixin(base))
        yield from (each for mark in marks if isinstance(mark, Implements) for each in mark.interfaces)


def _type_marks(cls: type) -> tuple[Mark, ...]:
    """Return the marks of a class and of its bases that are not interfaces."""
    found: list[Mark] = []
    for base in cls.__mro__:
        if base is cls or not _is_mixin(base):
            marks = base.__dict__.get("__omnigraph__", ())
            if not isinstance(marks, tuple | list) or not all(isinstance(mark, Mark) for mark in marks):
                raise InputError(
                    f"{base.__name__}.__omnigraph__ is a tuple of marks such as og.Unique", code="bad_model"
                )
            found += (mark for mark in marks if base is cls or not isinstance(mark, _OWN))
    return tuple(found)


def _generic_ends(cls: type) -> Ends | None:
    """Return the ends of a subclass of `Edge[A, B]`."""
    for base in cls.__mro__:
        metadata = getattr(base, "__pydantic_generic_metadata__", None) or {}
        origin, ends = metadata.get("origin"), metadata.get("args", ())
        if origin is not None and origin.__module__ == "omnigraph.models.base" and len(ends) == 2:
            return Ends(*ends)
    edge = any(base.__module__ == "omnigraph.models.base" and base.__name__ == "Edge" for base in cls.__mro__)
    if edge:
        raise InputError(f"{cls.__name__} names no ends", code="bad_model", hint="write og.Edge[Source, Target]")
    return None


def _docstring(cls: type) -> str | None:
    """Return the text of a class; dataclasses without one get their signature, which is none."""
    text = cls.__dict__.get("__doc__")
    if not text or (dataclasses.is_dataclass(cls) and text.startswith(f"{cls.__name__}(")):
        return None
    return inspect.cleandoc(text)
