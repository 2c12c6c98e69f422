"""Objects → records of a load, rows of a result → objects."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from omnigraph.decodable import decodable
from omnigraph.errors import InputError
from omnigraph.models.described import DescribedType, describe, is_model
from omnigraph.models.marks import Key
from omnigraph.suggestions import listing
from omnigraph.types import PropertyType

T = TypeVar("T")

_INTEGERS = {"I32", "I64", "U32", "U64"}
_TEXTS = {"String", "Uuid"}
_NUMBERS = {*_INTEGERS, "F32", "F64"}


def as_records(data: Any) -> Any:
    """Return the input of a load with objects of models as records."""
    if isinstance(data, list | tuple):
        return list(records_of(data)) if any(type(item) is not dict and is_model(type(item)) for item in data) else data
    # A reader of Arrow batches is an iterator as well.
    return records_of(data) if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__") else data


def records_of(items: Iterable[Any]) -> Iterator[Any]:
    """Yield records, with objects of models as records; other items are yielded as they are."""
    known: dict[type, DescribedType] = {}
    for item in items:
        cls = type(item)
        if cls is dict or not is_model(cls):
            yield item
            continue
        if cls not in known:
            known[cls] = describe(cls)
        yield _record(item, known[cls])


def _record(item: Any, type_: DescribedType) -> dict[str, Any]:
    if type_.kind == "interface":
        raise InputError(f"{type_.cls.__name__} is an interface; load objects of a node type", code="bad_model")
    given = getattr(item, "model_fields_set", None)
    data = {each.name: getattr(item, each.field) for each in type_.fields}
    if given is not None:
        # A null that was not given to a pydantic model is absent: a merge keeps the value.
        data = {
            each.name: data[each.name] for each in type_.fields if each.field in given or data[each.name] is not None
        }
    if getattr(item, "id", None) is not None and "id" in type_.system_fields:
        data["id"] = item.id
    if type_.kind == "node":
        return {"type": type_.name, "data": data}
    missing = [end for end in ("src", "dst") if end not in type_.system_fields]
    if missing:
        raise InputError(
            f"{type_.cls.__name__} has no field {listing(missing)}",
            code="bad_model",
            hint="declare 'src: str' and 'dst: str'",
        )
    return {"edge": type_.name, "from": _end(item.src), "to": _end(item.dst), "data": data}


def _end(value: Any) -> Any:
    return id_of(value) if is_model(type(value)) else value


def id_of(node: Any) -> str | int:
    """Return the id of an object: its `id`, or the value of its only key property."""
    if not is_model(type(node)):
        return node  # type: ignore[no-any-return]
    found = getattr(node, "id", None)
    if found is not None:
        return found  # type: ignore[no-any-return]
    keys = [each.field for each in describe(type(node)).fields if any(isinstance(mark, Key) for mark in each.marks)]
    if len(keys) != 1:
        raise InputError(f"this {type(node).__name__} has no id", hint="give the id of the end as a text")
    return getattr(node, keys[0])  # type: ignore[no-any-return]


def objects_of(
    cls: type[T], columns: Sequence[str], types: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]
) -> list[T]:
    """Return the rows of a result as objects of a class.

    `types` maps a column to its `PropertyType`, or to a mapping of the fields of an object. A result with one column of
    objects gives its objects; otherwise a column `p.name` or `name` gives the field `name`.
    """
    described = describe(cls)
    single = columns[0] if len(columns) == 1 and isinstance(types[columns[0]], Mapping) else None
    found: Mapping[str, Any] = types[single] if single is not None else {_short(name): types[name] for name in columns}
    _check_columns(described, found)
    names = {each.name: each for each in described.fields}
    objects = []
    for number, row in enumerate(rows, 1):
        values = row[single] if single is not None else {_short(name): value for name, value in row.items()}
        if values is None:
            raise InputError(f"row {number} of the result has null in place of a {cls.__name__}", code="wrong_row")
        for name, each in names.items():
            if name in values and values[name] is None and not each.type.nullable:
                raise InputError(
                    f"row {number}: column '{name}' is null; field '{each.field}' of {cls.__name__} is not optional",
                    code="wrong_row",
                )
        by_field = {each.field: values[name] for name, each in names.items() if name in values}
        by_field |= {name: values[name] for name in described.system_fields if name in values}
        objects.append(_construct(cls, by_field, number))
    return objects


def _short(column: str) -> str:
    return column.rpartition(".")[2]


def _construct(cls: type[T], values: dict[str, Any], number: int) -> T:
    try:
        if hasattr(cls, "model_validate"):
            return cls.model_validate(values)  # type: ignore[attr-defined, no-any-return]
        if hasattr(cls, "__struct_fields__"):
            encoded = {each.name: each.encode_name for each in msgspec.structs.fields(cls)}  # type: ignore[arg-type]
            return msgspec.convert({encoded[name]: value for name, value in values.items()}, decodable(cls))
        return msgspec.convert(values, decodable(cls))
    except ValueError as error:  # pydantic and msgspec raise subclasses of it
        raise InputError(f"row {number} of the result is no {cls.__name__}: {error}", code="wrong_row") from error


def _check_columns(type_: DescribedType, found: Mapping[str, Any]) -> None:
    """Refuse columns without a field, missing columns, and columns of another type."""
    cls = type_.cls.__name__
    names = {each.name: each for each in type_.fields}
    unknown = [name for name in found if name not in names and name not in type_.system_fields and name != "id"]
    if unknown:
        raise InputError(
            f"{cls} has no field for the column {listing(unknown)}",
            code="wrong_row",
            hint=f"its fields are {listing(names)}",
        )
    for name, each in names.items():
        if name not in found:
            if not _has_default(type_.cls, each.field):
                raise InputError(f"the result has no column for the field '{each.field}' of {cls}", code="wrong_row")
        elif not _fits(found[name], each.type):
            raise InputError(
                f"column '{name}' is {found[name] if isinstance(found[name], PropertyType) else 'an object'}, "
                f"and the field '{each.field}' of {cls} is {each.type}",
                code="wrong_row",
            )


def _fits(column: Any, field: PropertyType) -> bool:
    if not isinstance(column, PropertyType) or column.is_list != field.is_list:
        return False
    if field.scalar in _TEXTS:
        return column.scalar in _TEXTS
    if field.scalar in _INTEGERS:
        return column.scalar in _INTEGERS
    return column.scalar == field.scalar or (field.is_float and column.scalar in _NUMBERS)


def _has_default(cls: type, field: str) -> bool:
    models = getattr(cls, "model_fields", None)
    if models is not None:
        return not models[field].is_required()
    if hasattr(cls, "__struct_fields__"):
        return next(not each.required for each in msgspec.structs.fields(cls) if each.name == field)
    found = next(each for each in dataclasses.fields(cls) if each.name == field)
    return found.default is not dataclasses.MISSING or found.default_factory is not dataclasses.MISSING
