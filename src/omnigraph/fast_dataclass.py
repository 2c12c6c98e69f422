"""`dataclass`, as in the standard library, with a faster declaration of frozen classes.

The standard decorator compiles the source text of six methods for each frozen class, which was a fifth of the start of
a command. Here only `__init__` is compiled; the other methods are functions over the names of the fields. Instances
behave alike: a test compares the two. Other forms of dataclasses are declared by the standard decorator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as standard_dataclass
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 (exported)
else:

    def dataclass(cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: Any) -> Any:
        """Declare a dataclass."""

        def declare(declared: type) -> type:
            if not frozen or options or not _is_plain(declared):
                return standard_dataclass(frozen=frozen, slots=slots, **options)(declared)
            return _declare(declared, slots=slots)

        return declare if cls is None else declare(cls)


def _is_plain(cls: type) -> bool:
    """True if a class inherits no fields, and its fields are parameters of the constructor without special options."""
    if any(hasattr(base, "__dataclass_fields__") for base in cls.__mro__[1:]):
        return False
    own = cls.__dict__
    given = [value for value in own.values() if isinstance(value, Field)]
    special = any(not one.init or one.hash is not None or one.kw_only is True for one in given)
    texts = map(str, own.get("__annotations__", {}).values())
    return not special and not any("ClassVar" in text or "InitVar" in text or "KW_ONLY" in text for text in texts)


def _declare(cls: type, *, slots: bool) -> Any:
    """Declare a frozen dataclass."""
    own = set(cls.__dict__)
    if cls.__dict__.get("__hash__") is None:
        # Python sets `__hash__` to None if a class defines `__eq__`; a frozen dataclass has one nevertheless.
        own.discard("__hash__")
    if own & {"__setattr__", "__delattr__"}:
        raise TypeError(f"Cannot overwrite attribute __setattr__ or __delattr__ in class {cls.__name__}")
    made: Any = standard_dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    declared = fields(made)
    made.__dataclass_params__.frozen = made.__dataclass_params__.eq = True
    made.__dataclass_params__.init = made.__dataclass_params__.repr = True
    names = tuple(one.name for one in declared)
    compared = _values(tuple(one.name for one in declared if one.compare))
    methods = {
        "__init__": _init(made, declared),
        "__repr__": _repr(tuple(one.name for one in declared if one.repr)),
        "__eq__": _eq(compared),
        "__hash__": _hash(compared),
        "__setattr__": _refuse_assignment,
        "__delattr__": _refuse_deletion,
    }
    if slots:
        methods |= {"__getstate__": _get_state(names), "__setstate__": _set_state(names)}
    for name, method in methods.items():
        if name not in own:
            setattr(made, name, method)
    return made


def _init(cls: type, declared: tuple[Field[Any], ...]) -> Any:
    """Compile the constructor."""
    scope: dict[str, Any] = {"_set": object.__setattr__, "_missing": MISSING, "__name__": cls.__module__}
    parameters, body = ["self"], []
    for number, one in enumerate(declared):
        value = one.name
        if one.default is not MISSING:
            scope[f"_d{number}"] = one.default
            parameters.append(f"{one.name}=_d{number}")
        elif one.default_factory is not MISSING:
            scope[f"_d{number}"] = one.default_factory
            parameters.append(f"{one.name}=_missing")
            value = f"_d{number}() if {one.name} is _missing else {one.name}"
        else:
            parameters.append(one.name)
        body.append(f" _set(self, {one.name!r}, {value})\n")
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(body) or ' pass'}", scope)  # noqa: S102
    method = scope["__init__"]
    method.__qualname__ = f"{cls.__qualname__}.__init__"
    method.__annotations__ = {one.name: one.type for one in declared} | {"return": None}
    return method


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda one: tuple(getattr(one, name) for name in names)


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __eq__(self: Any, other: Any) -> Any:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _repr(names: tuple[str, ...]) -> Any:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _get_state(names: tuple[str, ...]) -> Any:
    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    return __getstate__


def _set_state(names: tuple[str, ...]) -> Any:
    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __setstate__


def _refuse_assignment(_: Any, name: str, __: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")
