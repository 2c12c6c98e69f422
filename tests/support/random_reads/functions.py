"""Random calls of scalar functions, and `case`."""

from __future__ import annotations

from random import Random
from typing import Any, Protocol

_NUMBERS = ("I32", "I64", "U32", "U64", "F32", "F64")
_PARTS = ("year", "quarter", "month", "week", "day", "weekday", "day_of_year")
_TIMES = ("hour", "minute", "second", "millisecond")
_LONG = ("year", "years", "quarters", "month", "months", "weeks", "days")
_SHORT = ("hours", "minutes", "second", "seconds", "milliseconds")
_WORDS = ('"a"', '""', '" é "', '"a,b"', '"12"', '"-3"', '"1e2"', '"2020-02-29"', '"x"')
SHARE = 0.15


class Generator(Protocol):
    """The part of the query generator that functions use."""

    random: Random

    def properties(self, scope: Any, scalar: str | None = None, *, nodes: bool = False) -> list[str]: ...
    def number(self, scope: Any, own: str | None, depth: int = 0) -> str: ...
    def condition(self, scope: Any, names: Any, depth: int = 0) -> str: ...


def anything(asking: Generator, scope: Any) -> str:
    """A call that gives a value of some type."""
    make = asking.random.choice((numeric, text, moment, listed, chosen))
    return make(asking, scope)


def plain(asking: Generator, scope: Any) -> str:
    """A call whose values have an order."""
    make = asking.random.choice((numeric, text, moment, chosen))
    return make(asking, scope)


def numeric(asking: Generator, scope: Any) -> str:
    """A call that gives a number."""
    random = asking.random
    match random.randrange(7):
        case 0:
            return f"{random.choice(('abs', 'sign', 'floor', 'ceil', 'round', 'sqrt'))}({_number(asking, scope)})"
        case 1:
            return f"round({_number(asking, scope)}, {random.choice(('0', '1', '2', '-1', '-3', '17', '-19'))})"
        case 2:
            date, scalar = _date(asking, scope)
            return f"{random.choice(_PARTS if scalar == 'Date' else (*_PARTS, *_TIMES))}({date})"
        case 3:
            one, scalar = _date(asking, scope)
            other, also = _date(asking, scope)
            other = other if scalar == also else one
            return f"date_diff({one}, {other}, {_unit(random, scalar)})"
        case 4:
            return f"{random.choice(('to_integer', 'to_float'))}({_text(asking, scope)})"
        case 5:
            return f"to_integer({_number(asking, scope)})"
        case _:
            return f"length({random.choice((text, listed))(asking, scope)})"


def text(asking: Generator, scope: Any) -> str:
    """A call that gives a text."""
    random = asking.random
    of = _text(asking, scope)
    match random.randrange(7):
        case 0:
            return f"{random.choice(('trim', 'ltrim', 'rtrim', 'lower', 'upper', 'reverse'))}({of})"
        case 1:
            return f"substring({of}, {random.choice(('0', '1', '-2', '5', '-9'))})"
        case 2:
            start = random.choice(("0", "1", "-2", *asking.properties(scope, "I32")))
            return f"substring({of}, {start}, {random.choice(('0', '1', '3', '-1'))})"
        case 3:
            return f"replace({of}, {random.choice(_WORDS)}, {random.choice((*_WORDS, of))})"
        case 4:
            scalars = (*_NUMBERS, "Bool", "Date", "DateTime", "Uuid")
            values = [p for scalar in scalars for p in asking.properties(scope, scalar)]
            return f"to_string({random.choice([*values, '1.5'])})"
        case 5:
            return f"concat({of}, {random.choice(_WORDS)}, {_text(asking, scope)})"
        case _:
            return f"{random.choice(('head', 'last'))}(split({of}, {random.choice(_WORDS)}))"


def moment(asking: Generator, scope: Any) -> str:
    """A call that gives a date or an instant."""
    random = asking.random
    of, scalar = _date(asking, scope)
    match random.randrange(4):
        case 0:
            return f"date_trunc({of}, {_unit(random, scalar)})"
        case 1:
            return f"{random.choice(('to_date', 'to_datetime'))}({random.choice((of, _text(asking, scope)))})"
        case _:
            amounts = ("1", "-1", "13", "400", "-30000", *asking.properties(scope, "I32"))
            return f"date_add({of}, {random.choice(amounts)}, {_unit(random, scalar)})"


def listed(asking: Generator, scope: Any) -> str:
    """A call that gives a list."""
    random = asking.random
    lists = _lists(scope)
    of = (
        random.choice(lists)
        if lists and random.random() < 0.7
        else f"split({_text(asking, scope)}, {random.choice(_WORDS)})"
    )
    match random.randrange(3):
        case 0:
            return f"slice({of}, {random.choice(('0', '1', '-1', '-2', '9'))})"
        case 1:
            return f"slice({of}, {random.choice(('0', '1', '-2'))}, {random.choice(('0', '1', '2', '-1'))})"
        case _:
            return f"concat({of}, {of})"


def chosen(asking: Generator, scope: Any) -> str:
    """A `case`, or an item of a list."""
    random = asking.random
    lists = _lists(scope)
    if lists and random.random() < 0.3:
        return f"item({random.choice(lists)}, {random.choice(('0', '1', '-1', '3'))})"
    values = [asking.number(scope, None) for _ in range(3)]
    if random.random() < 0.4:
        values = [_text(asking, scope) for _ in range(3)]
    otherwise = f" else {values[2]}" if random.random() < 0.7 else ""
    if random.random() < 0.4:
        subject, tests = random.choice([("1", ("1", "2")), (_text(asking, scope), _WORDS)])
        first, second = random.choice(tests), random.choice(tests)
        return f"(case {subject} when {first} then {values[0]} when {second} then {values[1]}{otherwise} end)"
    test = asking.condition(scope, list(scope), 2) or "true"
    return f"(case when {test} then {values[0]} when false then {values[1]}{otherwise} end)"


def test(asking: Generator, scope: Any) -> str:
    """A condition on a call."""
    random = asking.random
    match random.randrange(4):
        case 0:
            return (
                f"{numeric(asking, scope)} {random.choice(('=', '<', '>=', '!='))} {random.choice(('0', '1', '2.5'))}"
            )
        case 1:
            return f"{text(asking, scope)} {random.choice(('=', '<', 'contains'))} {random.choice(_WORDS)}"
        case 2:
            return f"{anything(asking, scope)} is {random.choice(('', 'not '))}null"
        case _:
            of, scalar = _date(asking, scope)
            return f"date_add({of}, 1, {_unit(random, scalar)}) {random.choice(('<', '>='))} {of}"


def _number(asking: Generator, scope: Any) -> str:
    known = [of for scalar in _NUMBERS for of in asking.properties(scope, scalar)]
    return asking.random.choice([*known, "2.5", "-2.5", "1234567", "0.05"])


def _text(asking: Generator, scope: Any) -> str:
    return asking.random.choice([*asking.properties(scope, "String"), asking.random.choice(_WORDS)])


def _date(asking: Generator, scope: Any) -> tuple[str, str]:
    random = asking.random
    scalar = random.choice(("Date", "DateTime"))
    literal = random.choice(("2020-02-29", "0001-01-01", "9999-12-31", "2021-01-03"))
    word = f'date("{literal}")' if scalar == "Date" else f'datetime("{literal}T23:59:59.999Z")'
    return random.choice([*asking.properties(scope, scalar) * 2, word]), scalar


def _unit(random: Random, scalar: str) -> str:
    return random.choice(_LONG if scalar == "Date" else (*_LONG, *_SHORT))


def _lists(scope: Any) -> list[str]:
    return [f"${n}.{p.name}" for n, t in scope.items() for p in t.properties.values() if p.type.is_list]
