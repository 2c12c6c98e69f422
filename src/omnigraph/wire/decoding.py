"""Decoding of JSON bodies and query strings into inputs: what does not fit is an `InputError` that names the place."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import msgspec

from omnigraph.decodable import decodable
from omnigraph.errors import InputError
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.wire.requests.request import Request

DEPTH_MAX = 32
"""Largest nesting of arrays and objects in a member."""
VALUES_MAX = 500_000
"""Largest number of values in a body. One takes up to a hundred times the memory of its text."""
DIGITS_MAX = 400
"""Largest number of characters of a number. The time to read an integer grows with their square."""
_STEP_BYTES = 64 * 1024
"""Bodies up to this size are too small for the limits of values; larger ones are counted in parts of this size."""
_SHOWN_MAX = 60
_PLACE = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_NUMBER = b"0123456789+-.eE"
_NO_NUMBER = re.compile(rb"[^0-9+\-.eE]+")
_STEP = re.compile(r"([^.\[]+)|\[(\d+|\.\.\.)\]")
_WORDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
_TYPES = re.compile(r"`([\w |]+)`")

RequestType = TypeVar("RequestType", bound=Request)


@dataclass(frozen=True)
class _Input:
    """What is decoded, and the noun for one of its parts."""

    type: type[Request]
    noun: Literal["member", "query parameter", "argument"]


class _NotJson(ValueError):
    """A text that Python's decoder accepts and JSON does not, or that has no meaning here."""


def decode_body(type_: type[RequestType], body: bytes, *, strict: bool) -> RequestType:
    """Return the input in a JSON body; `strict` refuses unknown members. An empty body is an empty object."""
    members = _json_object(body) if body else {}
    what = _Input(type_, "member")
    if _needs_check(body):
        for name, value in members.items():
            _check_value(name, value)
    if strict:
        _refuse_unknown(what, members)
    given = {name: value for name, value in members.items() if value is not None}
    return _convert(what, type_, given, parse_texts=False)


def decode_arguments(type_: type[RequestType], arguments: Mapping[str, Any]) -> RequestType:
    """Return the input in the arguments of a tool; unknown ones are refused. A null argument is absent."""
    what = _Input(type_, "argument")
    for name, value in arguments.items():
        _check_value(name, value)
    _refuse_unknown(what, arguments)
    given = {name: value for name, value in arguments.items() if value is not None}
    return _convert(what, type_, given, parse_texts=False)


def decode_query(
    type_: type[RequestType], parameters: Mapping[str, Sequence[str]], *, strict: bool, collects: str | None = None
) -> RequestType:
    """Return the input in the parameters of a query string, each with all its values; `strict` refuses unknown ones.

    The member `collects` takes all parameters that are no other member.
    """
    what = _Input(type_, "query parameter")
    fields = dict(_fields(type_))
    given: dict[str, Any] = {}
    if collects is not None:
        del fields[collects]
        given[collects] = {name: list(values) for name, values in parameters.items() if name not in fields}
    elif strict:
        _refuse_unknown(what, parameters)
    known = {name: values for name, values in parameters.items() if name in fields}
    given.update((name, _query_value(name, fields[name], values)) for name, values in known.items())
    return _convert(what, type_, given, parse_texts=True)


def _json_object(body: bytes) -> dict[str, Any]:
    _check_values(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        _not_json(f"the body is not UTF-8: the byte at offset {error.start} is not valid")
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        _not_json(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}")
    except _NotJson as error:
        _not_json(f"the body is not valid: {error}")
    except RecursionError:
        _not_json("the body is not valid: it is nested too deeply")
    except ValueError:
        # Python refuses to read integers of thousands of digits.
        _not_json("the body is not valid: an integer has too many digits")
    if not isinstance(value, dict):
        _not_json(f"the body is {_article(_json_type(value))}; an object is required")
    return value


def _check_values(body: bytes) -> None:
    """Refuse a body whose values take too much time or memory, before it is decoded."""
    if len(body) <= _STEP_BYTES:
        return
    values, digits = 1, 0
    for part in _outside_texts(body):
        values += sum(part.count(mark) for mark in (b",", b"[", b"{"))
        if values > VALUES_MAX:
            _not_json(f"the body has more than {VALUES_MAX:,} values")
        longest = max(map(len, _NO_NUMBER.split(b"0" * min(digits, DIGITS_MAX) + part)))
        if longest > DIGITS_MAX:
            _not_json(f"the body has a number of more than {DIGITS_MAX} characters")
        digits = len(part) - len(part.rstrip(_NUMBER))


def _outside_texts(body: bytes) -> Iterator[bytes]:
    """Yield the parts of a JSON text that are outside of its strings, without the quotes."""
    start, inside = 0, False
    while start < len(body):
        part = body[start : start + _STEP_BYTES]
        # An escape is not cut: in a string, a run of backslashes begins an escape with every second one.
        cut = (len(part) - len(part.rstrip(b"\\"))) % 2 if start + len(part) < len(body) else 0
        part = part[: len(part) - cut]
        start += len(part)
        pieces = part.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        yield b" ".join(pieces[inside::2])
        inside ^= len(pieces) % 2 == 0


def _not_json(message: str) -> NoReturn:
    raise InputError(message, code="bad_json", hint="send one JSON object, encoded in UTF-8") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise _NotJson(f"the member {_shown(counts.most_common(1)[0][0])} is repeated")
    return members


def _no_constant(name: str) -> NoReturn:
    raise _NotJson(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise _NotJson(f"the number {text[:_SHOWN_MAX]} is out of range")
    return number


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite)


def _needs_check(body: bytes) -> bool:
    """Return True if a value may be nested too deeply, or a text may not be valid Unicode.

    A surrogate is in a text only as an escape, and each level of nesting has a bracket.
    """
    return b"\\u" in body or body.count(b"[") + body.count(b"{") > DEPTH_MAX


def _check_value(name: str, value: Any) -> None:
    """Refuse a member that is nested too deeply or has a text that is not valid Unicode."""
    _check_text(name)
    level, depth = [value], 0
    while level:
        for text in _texts(level):
            _check_text(text)
        level = [inner for outer in level for inner in _inner(outer)]
        depth += 1
        if depth >= DEPTH_MAX and any(isinstance(inner, dict | list) for inner in level):
            raise InputError(
                f"the member '{name}' is nested too deeply", code="bad_member", hint=f"use at most {DEPTH_MAX} levels"
            )


def _texts(level: list[Any]) -> Iterator[str]:
    for value in level:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            yield from value


def _inner(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        _not_json("the body is not valid: a text has an unpaired surrogate, which is not Unicode")


def _refuse_unknown(what: _Input, members: Mapping[str, Any]) -> None:
    """Refuse names that the input does not have, at any level that has a fixed set of names."""
    if members.keys() <= _fields(what.type).keys() and members.keys().isdisjoint(_nested(what.type)):
        return
    for path, type_, names in _objects([what.type], members, ""):
        known = _fields(type_)
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or (f"the names are {listing(known, most=20)}" if known else None)
                place = f" in '{path}'" if path else ""
                raise InputError(f"there is no {what.noun} {_shown(name)}{place}", code="unknown_member", hint=hint)


def _objects(choices: list[Any], value: Any, path: str) -> Iterator[tuple[str, type[Request], Mapping[str, Any]]]:
    """Yield the path, type and members of each object of a request type."""
    for choice in choices:
        if isinstance(choice, type) and issubclass(choice, Request) and isinstance(value, Mapping):
            yield path, choice, value
            for name, inner in _fields(choice).items():
                if name in value:
                    yield from _objects(inner, value[name], f"{path}.{name}" if path else name)
        elif get_origin(choice) is list and isinstance(value, list):
            for index, item in enumerate(value):
                yield from _objects(_choices(get_args(choice)[0]), item, f"{path}[{index}]")


@cache
def _fields(type_: type[Request]) -> dict[str, list[Any]]:
    """Return the alternatives of the type of each member, by name."""
    return {field.encode_name: _choices(field.type) for field in msgspec.structs.fields(type_)}


@cache
def _nested(type_: type[Request]) -> frozenset[str]:
    """Return the members whose values are arrays or have members with fixed names."""
    return frozenset(
        name
        for name, choices in _fields(type_).items()
        if any(get_origin(each) is list or (isinstance(each, type) and issubclass(each, Request)) for each in choices)
    )


def _choices(type_: Any) -> list[Any]:
    """Return the alternatives of a type, without null and annotations."""
    origin = get_origin(type_)
    if origin is Annotated:
        return _choices(get_args(type_)[0])
    if origin is Union or origin is UnionType:
        return [choice for each in get_args(type_) if each is not type(None) for choice in _choices(each)]
    return [type_]


def _query_value(name: str, choices: list[Any], values: Sequence[str]) -> Any:
    if any(get_origin(choice) is list for choice in choices):
        return list(values)
    if len(values) != 1:
        raise InputError(
            f"the query parameter '{name}' is given {len(values)} times", code="bad_member", hint="give it once"
        )
    if values[0].lower() == "null" and str not in choices:
        # The conversion would read it as absent.
        raise InputError(f"the query parameter '{name}' cannot be '{values[0]}'", code="bad_member")
    return values[0]


def _convert(what: _Input, type_: type[RequestType], given: dict[str, Any], *, parse_texts: bool) -> RequestType:
    try:
        return msgspec.convert(given, decodable(type_), strict=not parse_texts)
    except msgspec.ValidationError as error:
        message, hint = _explained(what, str(error), given)
        raise InputError(message, code="bad_member", hint=hint) from None


def _explained(what: _Input, text: str, given: dict[str, Any]) -> tuple[str, str | None]:
    """Return message and hint of a value that does not fit its type."""
    match = _PLACE.fullmatch(text)
    assert match is not None
    wrong, path = match[1], match[2] or ""
    place = f"the {what.noun} '{path}'" if path else "the input"
    missing = re.fullmatch(r"Object missing required field `(.*)`", wrong)
    if missing:
        inside = f" in '{path}'" if path else ""
        return f"the {what.noun} '{missing[1]}' is missing{inside}", None
    value, choices = _at(what.type, given, path)
    shown = f" is {_shown(value)}" if value is not msgspec.UNSET else ""
    if wrong.startswith("Invalid enum value"):
        names = [name for choice in choices if get_origin(choice) is Literal for name in get_args(choice)]
        hint = f"the values are {listing(names)}" if names else None
        return f"{place}{shown}, which is not one of its values", hint
    return f"{place}{shown}; {_required(wrong)}", None


def _required(wrong: str) -> str:
    """Return the requirement in the words of JSON: 'Expected `int | null`, got `str`' → 'an integer is required'."""
    wrong = wrong.partition(", got ")[0].removeprefix("Expected ")
    return f"{_TYPES.sub(_nouns, wrong)} is required"


def _nouns(match: re.Match[str]) -> str:
    names = [name for name in match[1].split(" | ") if name != "null"]
    return " or ".join(_article(_WORDS.get(name, name)) for name in names)


def _at(type_: type[Request], value: Any, path: str) -> tuple[Any, list[Any]]:
    """Return the value at a path and the alternatives of its type; `UNSET` for a member of a free object."""
    choices: list[Any] = [type_]
    for name, index in _STEP.findall(path):
        if index == "...":
            return msgspec.UNSET, []
        value = value[name] if name else value[int(index)]
        if name:
            (struct,) = [each for each in choices if isinstance(each, type) and issubclass(each, Request)]
            choices = _fields(struct)[name]
        else:
            (array,) = [each for each in choices if get_origin(each) is list]
            choices = _choices(get_args(array)[0])
    return value, choices


def _shown(value: Any) -> str:
    """Return a value as it is written in a message, shortened."""
    if isinstance(value, dict | list):
        return _article(_json_type(value))
    text = f"'{value}'" if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _json_type(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
    return "number"


def _article(noun: str) -> str:
    if noun == "null":
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"
