"""Every row of §3 (accepted input, output) and §6 (canonical text) of the schema language."""

from __future__ import annotations

import json
import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.dates import format_date, format_datetime, parse_date, parse_datetime
from omnigraph.scalar_types.describe import describe_json
from omnigraph.scalar_types.floats import round_f32, spell_float
from omnigraph.types import PropertyType
from omnigraph.values import derive_id, read_json, spell_key, write_json

EPOCH = date(1970, 1, 1)
TYPES = {
    "String": PropertyType("String"),
    "Bool": PropertyType("Bool"),
    "I32": PropertyType("I32"),
    "I64": PropertyType("I64"),
    "U32": PropertyType("U32"),
    "U64": PropertyType("U64"),
    "F32": PropertyType("F32"),
    "F64": PropertyType("F64"),
    "Date": PropertyType("Date"),
    "DateTime": PropertyType("DateTime"),
    "Blob": PropertyType("Blob"),
    "Vector(3)": PropertyType("Vector", dim=3),
    "[I32]": PropertyType("I32", is_list=True),
    "[String]": PropertyType("String", is_list=True),
    "[Date]": PropertyType("Date", is_list=True),
    "enum(a, b)": PropertyType("String", enum_values=("a", "b")),
}
F32_MAX = 340282346638528859811704183484516925440
HUGE = 10**5000


def refusal(value: Any, type_: PropertyType) -> str:
    with pytest.raises(ValueFormatError) as raised:
        read_json(value, type_)
    assert raised.value.code == "bad_value"
    return raised.value.message


# -- §3: accepted input ------------------------------------------------------------------------------

ACCEPTED: list[tuple[str, Any, Any]] = [
    ("String", "", ""),
    ("String", "é🙂\x00\n", "é🙂\x00\n"),
    ("String", "1", "1"),
    ("enum(a, b)", "a", "a"),
    ("Bool", True, True),
    ("Bool", False, False),
    ("I32", -(2**31), -(2**31)),
    ("I32", 2**31 - 1, 2**31 - 1),
    ("U32", 0, 0),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("I64", -(2**63), -(2**63)),
    ("I64", 2**63 - 1, 2**63 - 1),
    ("U64", 0, 0),
    ("U64", 2**64 - 1, 2**64 - 1),
    ("F64", 1, 1.0),
    ("F64", -2.5, -2.5),
    ("F64", 2**53 + 1, float(2**53)),
    ("F64", 1.7976931348623157e308, 1.7976931348623157e308),
    ("F64", 5e-324, 5e-324),
    ("F32", 1, 1.0),
    ("F32", 0.1, 0.10000000149011612),
    ("F32", 16777217, 16777216.0),
    ("F32", 1e-50, 0.0),
    ("F32", F32_MAX, float(F32_MAX)),
    ("F32", 3.4028235677973362e38, float(F32_MAX)),
    ("Date", 0, 0),
    ("Date", -1, -1),
    ("Date", 2_932_896, 2_932_896),
    ("Date", -719_162, -719_162),
    ("Date", "1970-01-02", 1),
    ("DateTime", 0, 0),
    ("DateTime", -62_135_596_800_000, -62_135_596_800_000),
    ("DateTime", 253_402_300_799_999, 253_402_300_799_999),
    ("DateTime", "1970-01-01T00:00:01Z", 1000),
    ("Blob", "base64:", b""),
    ("Blob", "base64:AAEC/+8=", b"\x00\x01\x02\xff\xef"),
    ("Blob", "https://example.org/a", "https://example.org/a"),
    ("Blob", "", ""),
    ("Blob", "BASE64:AA==", "BASE64:AA=="),
    ("Vector(3)", [1, 0.1, -2], [1.0, 0.10000000149011612, -2.0]),
    ("[I32]", [], []),
    ("[I32]", [1, -2], [1, -2]),
    ("[String]", ["", "a", "a"], ["", "a", "a"]),
    ("[Date]", ["1970-01-02", 3], [1, 3]),
]


@pytest.mark.parametrize(("type_", "value", "stored"), ACCEPTED, ids=[f"{t} {v!r:.40}" for t, v, _ in ACCEPTED])
def test_accepted(type_: str, value: Any, stored: Any) -> None:
    for nullable in (False, True):
        read = read_json(value, TYPES[type_].with_nullable(nullable))
        assert read == stored
        assert type(read) is type(stored)


REFUSED: list[tuple[str, Any]] = [
    *((t, value) for t in ("String", "enum(a, b)", "Blob") for value in (1, 1.5, True, ["a"], {"a": 1})),
    *(("Bool", value) for value in (0, 1, "true", "", 1.0, [True])),
    *((t, value) for t in ("I32", "I64", "U32", "U64") for value in (3.0, 1.5, "3", "", True, False, [1], {})),
    *((t, value) for t in ("F32", "F64") for value in ("1", "NaN", True, [1.0], math.nan, math.inf, -math.inf, HUGE)),
    ("I32", 2**31),
    ("I32", -(2**31) - 1),
    ("U32", -1),
    ("U32", 2**32),
    ("I64", 2**63),
    ("I64", -(2**63) - 1),
    ("U64", -1),
    ("U64", 2**64),
    *((t, HUGE) for t in ("I32", "I64", "U32", "U64", "Date", "DateTime")),
    ("F32", 3.4028235677973366e38),
    ("F32", 1e39),
    ("F32", -1e39),
    ("F64", 10**309),
    ("String", "\ud800"),
    ("String", "a\udc00b"),
    ("Blob", "s3://\ud800"),
    ("Date", 2**31),
    ("Date", 2_932_897),
    ("Date", -719_163),
    ("Date", -(2**31) - 1),
    *((t, value) for t in ("Date", "DateTime") for value in (1.0, True, [0], {}, "", "x", "0")),
    ("DateTime", 2**63),
    ("DateTime", 253_402_300_800_000),
    ("DateTime", -62_135_596_800_001),
    ("Blob", "base64:A"),
    ("Blob", "base64:AA="),
    ("Blob", "base64:AA"),
    ("Blob", "base64:AA==AA=="),
    ("Blob", "base64:A A="),
    ("Blob", "base64:AA==\n"),
    ("Blob", "base64:-_-_"),
    ("Blob", "base64:é"),
    ("Vector(3)", [1, 2]),
    ("Vector(3)", [1, 2, 3, 4]),
    ("Vector(3)", []),
    ("Vector(3)", [1, 2, "3"]),
    ("Vector(3)", [1, 2, None]),
    ("Vector(3)", [1, 2, True]),
    ("Vector(3)", [1, 2, [3]]),
    ("Vector(3)", [1, 2, math.nan]),
    ("Vector(3)", [1, 2, 1e39]),
    ("Vector(3)", "[1, 2, 3]"),
    ("Vector(3)", 1),
    ("[I32]", 1),
    ("[I32]", "1"),
    ("[I32]", {"a": 1}),
    ("[I32]", [1, None]),
    ("[I32]", [1, "2"]),
    ("[I32]", [1, 2.0]),
    ("[I32]", [[1]]),
    ("[I32]", [2**31]),
    ("[String]", "a"),
]


@pytest.mark.parametrize(
    ("type_", "value"), REFUSED, ids=[f"{t} {'10**5000' if v is HUGE else repr(v):.40}" for t, v in REFUSED]
)
def test_rejected(type_: str, value: Any) -> None:
    message = refusal(value, TYPES[type_])
    assert message
    assert len(message) < 300
    assert message.isprintable()


@pytest.mark.parametrize("type_", TYPES.values(), ids=str)
def test_null(type_: PropertyType) -> None:
    assert read_json(None, type_.with_nullable(True)) is None
    assert refusal(None, type_) == f"null, but {type_} is required"


def test_empty_list_is_not_null() -> None:
    assert read_json([], TYPES["[I32]"].with_nullable(True)) == []


MESSAGES = {
    "a string for a number": ("I32", "3", "expected I32, found the string '3'"),
    "a float for an integer": ("I64", 3.0, "expected I64, found the number 3.0"),
    "a number for a Bool": ("Bool", 1, "expected Bool, found the integer 1"),
    "a Bool for a number": ("F64", True, "expected F64, found true"),
    "an array": ("String", [1], "expected String, found an array"),
    "an object": ("Date", {}, "expected Date, found an object"),
    "out of range": ("I32", 2**31, "2147483648 exceeds Int32 range (-2147483648 to 2147483647)"),
    "wildly out of range": (
        "U32",
        HUGE,
        f"an integer of {HUGE.bit_length()} bits exceeds UInt32 range (0 to 4294967295)",
    ),
    "too large for any float": (
        "F64",
        HUGE,
        f"an integer of {HUGE.bit_length()} bits is not a finite number that F64 can hold",
    ),
    "infinite": ("F64", math.inf, "the number inf is not a finite number that F64 can hold"),
    "vector length": ("Vector(3)", [1], "expected 3 dimensions, got 1"),
    "vector element": ("Vector(3)", [1, 2, "3"], "vector elements must be numeric, found the string '3'"),
    "null item": ("[I32]", [None], "a list may not hold null"),
    "long": ("I32", "x" * 1000, f"expected I32, found the string '{'x' * 119}…'"),
    "unprintable": ("I32", "\x1b[2J\n", "expected I32, found the string '\\x1b[2J\\n'"),
}


@pytest.mark.parametrize(("type_", "value", "message"), MESSAGES.values(), ids=MESSAGES)
def test_messages(type_: str, value: Any, message: str) -> None:
    assert refusal(value, TYPES[type_]) == message


def test_describe_json() -> None:
    assert [describe_json(v) for v in (None, True, 1, 1.5, "a", [], {})] == [
        "null",
        "true",
        "the integer 1",
        "the number 1.5",
        "the string 'a'",
        "an array",
        "an object",
    ]


# -- dates, against the standard library -------------------------------------------------------------


def days(day: date) -> int:
    return (day - EPOCH).days


def milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_every_day_of_the_standard_calendar() -> None:
    random = Random(1)
    ordinals = [1, 2, date.max.toordinal(), *random.sample(range(1, date.max.toordinal()), 3000)]
    ordinals += [date(year, month, day).toordinal() for year in (1600, 1900, 2000, 2023, 2024, 2100, 2400)
                 for month, day in ((1, 1), (2, 28), (3, 1), (12, 31))]  # fmt: skip
    for ordinal in ordinals:
        day = date.fromordinal(ordinal)
        assert parse_date(day.isoformat()) == days(day)
        assert format_date(days(day)) == day.isoformat()
        assert parse_datetime(day.isoformat()) == days(day) * 86_400_000


def test_random_moments() -> None:
    random = Random(2)
    for _ in range(3000):
        moment = datetime(
            random.randint(2, 9998), random.randint(1, 12), random.randint(1, 28), random.randint(0, 23),
            random.randint(0, 59), random.randint(0, 59), random.randint(0, 999_999),
            tzinfo=timezone(timedelta(minutes=random.randint(-23 * 60 - 59, 23 * 60 + 59))),
        )  # fmt: skip
        expected = milliseconds(moment)
        assert parse_datetime(moment.isoformat("T", "microseconds")) == expected
        assert parse_datetime(moment.isoformat(" ", "microseconds")) == expected
        assert parse_date(moment.isoformat()) == expected // 86_400_000
        shown = format_datetime(expected)
        assert shown == moment.astimezone(UTC).isoformat("T", "milliseconds").replace("+00:00", "Z")
        assert parse_datetime(shown) == expected


DATETIMES = {
    "2024-05-06": "2024-05-06T00:00:00.000Z",
    "2024-05-06T07:08": "2024-05-06T07:08:00.000Z",
    "2024-05-06 07:08": "2024-05-06T07:08:00.000Z",
    "2024-05-06T07:08:09": "2024-05-06T07:08:09.000Z",
    "2024-05-06T07:08:09.1": "2024-05-06T07:08:09.100Z",
    "2024-05-06T07:08:09.12": "2024-05-06T07:08:09.120Z",
    "2024-05-06T07:08:09.1239999999": "2024-05-06T07:08:09.123Z",
    "2024-05-06T07:08:09.0009": "2024-05-06T07:08:09.000Z",
    "2024-05-06T07:08Z": "2024-05-06T07:08:00.000Z",
    "2024-05-06T07:08:09Z": "2024-05-06T07:08:09.000Z",
    "2024-05-06 07:08:09.5Z": "2024-05-06T07:08:09.500Z",
    "2024-05-06T07:08+00:00": "2024-05-06T07:08:00.000Z",
    "2024-05-06T07:08-00:00": "2024-05-06T07:08:00.000Z",
    "2024-05-06T07:08:09+05:30": "2024-05-06T01:38:09.000Z",
    "2024-05-06T23:30:00-05:00": "2024-05-07T04:30:00.000Z",
    "2024-01-01T00:30+01:00": "2023-12-31T23:30:00.000Z",
    "1969-12-31T23:59:59.999Z": "1969-12-31T23:59:59.999Z",
    "1969-12-31T23:59:59.9999Z": "1969-12-31T23:59:59.999Z",
    "0001-01-01": "0001-01-01T00:00:00.000Z",
    "9999-12-31T23:59:59.999": "9999-12-31T23:59:59.999Z",
    "2024-02-29T00:00:00+23:59": "2024-02-28T00:01:00.000Z",
}


@pytest.mark.parametrize(("text", "utc"), DATETIMES.items(), ids=DATETIMES)
def test_datetime_forms(text: str, utc: str) -> None:
    moment = parse_datetime(text)
    assert format_datetime(moment) == utc
    assert read_json(text, TYPES["DateTime"]) == moment
    assert parse_date(text) == moment // 86_400_000
    assert format_date(parse_date(text)) == utc.partition("T")[0]


NO_DATES = [
    "", " ", "2024", "2024-1-1", "2024-01", "24-01-01", "2024/01/01", "20240101", "2024-00-01", "2024-13-01",
    "2024-01-00", "2024-01-32", "2024-04-31", "2023-02-29", "1900-02-29", "2024-02-30", "-001-01-01", "+2024-01-01",
    "12024-01-01", " 2024-01-01", "2024-01-01 ", "2024-01-01\n", "２０２４-01-01", "2024-01-01T", "2024-01-01T10",
    "2024-01-01T1:00", "2024-01-01T10:0", "2024-01-01T24:00", "2024-01-01T23:60", "2024-01-01T23:59:60",
    "2024-01-01T10:00:00.", "2024-01-01T10:00.5", "2024-01-01t10:00", "2024-01-01T10:00z", "2024-01-01  10:00",
    "2024-01-01T10:00 Z", "2024-01-01T10:00+1:00", "2024-01-01T10:00+0100", "2024-01-01T10:00+01",
    "2024-01-01T10:00+24:00", "2024-01-01T10:00+01:60", "2024-01-01T10:00+01:00Z", "2024-01-01Z", "2024-01-01+01:00",
    "2024-01-01T10:00UTC", "2024-01-01T10:00\n", "2024-01-01T10:00:00,5", "now", "NaN", "2024-01-01T10:00:00.1e3",
    "x" * 1000, "2024-01-01\x00", "0000-12-31", "9999-12-31T23:59-00:01", "0001-01-01T00:00+00:01",
]  # fmt: skip


@pytest.mark.parametrize("text", NO_DATES, ids=[repr(text)[:30] for text in NO_DATES])
def test_invalid_dates_are_rejected(text: str) -> None:
    for type_ in ("Date", "DateTime"):
        refusal(text, TYPES[type_])
    with pytest.raises(ValueFormatError):
        parse_date(text)


def test_dates_far_outside_the_standard_calendar() -> None:
    assert format_date(2**31 - 1) == "+5881580-07-11"
    assert format_date(-(2**31)) == "-5877641-06-23"
    assert format_date(days(date(1, 1, 1)) - 1) == "0000-12-31"
    assert format_date(days(date(1, 1, 1)) - 367) == "-0001-12-31"
    assert format_datetime(2**63 - 1) == "+292278994-08-17T07:12:55.807Z"
    assert format_datetime(-(2**63)) == "-292275055-05-16T16:47:04.192Z"


# -- 32-bit floats -----------------------------------------------------------------------------------


def f32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def some_f32(count: int) -> list[float]:
    """Return finite positive 32-bit floats of every magnitude, with boundary cases."""
    random = Random(3)
    awkward = [0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x7F7FFFFF, 0x7F7FFFFE, 0x3F800000]
    powers = [exponent << 23 for exponent in range(1, 255)]
    return [f32(bits) for bits in (*awkward, *powers, *(random.randrange(1, 0x7F800000) for _ in range(count)))]


def nearest_f32(exact: Fraction) -> float | None:
    """Return the 32-bit float nearest to a positive number, ties to even; None if it is infinite."""
    low, high = 0, 0x7F800000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if Fraction(f32(middle)) <= exact else (low, middle)
    below = Fraction(f32(low))
    above = Fraction(2) ** 128 if high == 0x7F800000 else Fraction(f32(high))
    if exact - below != above - exact:
        chosen = low if exact - below < above - exact else high
    else:
        chosen = low if low % 2 == 0 else high
    return None if chosen == 0x7F800000 else f32(chosen)


def test_rounding_to_f32_against_exact_arithmetic() -> None:
    random = Random(4)
    for value in some_f32(300):
        neighbour = f32(struct.unpack("<I", struct.pack("<f", value))[0] - 1)
        for number in (
            (value + neighbour) / 2,
            value * (1 + random.uniform(-1e-7, 1e-7)),
            random.uniform(0, 1) * value,
        ):
            expected = nearest_f32(Fraction(number))
            if expected is None:
                refusal(number, TYPES["F32"])
            else:
                assert round_f32(number) == read_json(number, TYPES["F32"]) == expected
                assert round_f32(-number) == -expected


def shortest(value: float) -> int:
    """Return the number of significant digits that identify a positive 32-bit float."""
    exact = Fraction(value)
    exponent = Decimal(value).adjusted()
    for digits in range(1, 12):
        unit = Fraction(10) ** (exponent - digits + 1)
        first = exact // unit
        if any(nearest_f32((first + step) * unit) == value for step in (0, 1) if first + step):
            return digits
    raise AssertionError(value)


# -- §6: canonical spellings -------------------------------------------------------------------------

SPELT: list[tuple[str, Any, str]] = [
    ("String", "", ""),
    ("String", 'é "quoted"', 'é "quoted"'),
    ("enum(a, b)", "b", "b"),
    ("Bool", True, "true"),
    ("Bool", False, "false"),
    ("I32", -5, "-5"),
    ("U64", 2**64 - 1, "18446744073709551615"),
    ("I64", -(2**63), "-9223372036854775808"),
    ("Date", "1970-01-11", "10"),
    ("Date", "1969-12-31", "-1"),
    ("DateTime", "1970-01-01T00:00:01.5Z", "1500"),
    ("DateTime", -1, "-1"),
    ("F64", 1, "1"),
    ("F64", 0.1, "0.1"),
    ("F64", -0.0, "0"),
    ("F64", 0, "0"),
    ("F64", 1e22, "10000000000000000000000"),
    ("F64", 1e23, "100000000000000000000000"),
    ("F64", 1e-7, "0.0000001"),
    ("F64", 123456.789, "123456.789"),
    ("F64", 100.0, "100"),
    ("F64", -2.50, "-2.5"),
    ("F64", 2**53 + 1, "9007199254740992"),
    ("F64", 5e-324, "0." + "0" * 323 + "5"),
    ("F64", 1.7976931348623157e308, "17976931348623157" + "0" * 292),
    ("F32", 0.1, "0.1"),
    ("F32", 1, "1"),
    ("F32", -0.0, "0"),
    ("F32", 1e-50, "0"),
    ("F32", 16777216, "16777216"),
    ("F32", 16777217, "16777216"),
    ("F32", 3.4028235e38, "34028235" + "0" * 31),
    ("F32", 1e-45, "0." + "0" * 44 + "1"),
    ("F32", 0.3, "0.3"),
    ("F32", 1 / 3, "0.33333334"),
    ("F32", 1e10, "10000000000"),
    ("F32", 33554450, "33554450"),
    ("F32", -1.5, "-1.5"),
    ("F32", 2**-12, "0.00024414062"),
    ("F32", -(2**-12), "-0.00024414062"),
]


@pytest.mark.parametrize(("type_", "value", "spelling"), SPELT, ids=[f"{t} {v!r}" for t, v, _ in SPELT])
def test_spelling(type_: str, value: Any, spelling: str) -> None:
    assert spell_key(read_json(value, TYPES[type_]), TYPES[type_]) == spelling


def check_positional(spelling: str) -> None:
    whole, _, fraction = spelling.removeprefix("-").partition(".")
    assert whole.isdigit()
    assert whole == "0" or not whole.startswith("0")
    assert "." not in spelling or (fraction.isdigit() and not fraction.endswith("0"))


def digits_of(spelling: str) -> int:
    return len(Decimal(spelling).normalize().as_tuple().digits)


def test_spelling_of_f32_is_exact_and_shortest() -> None:
    for value in some_f32(400):
        spelling = spell_float(value, single=True)
        check_positional(spelling)
        assert nearest_f32(Fraction(spelling)) == value
        assert digits_of(spelling) == shortest(value), value
        assert spell_float(-value, single=True) == f"-{spelling}"
        assert spell_key(value, TYPES["F32"]) == spelling


def test_spelling_of_f64_is_exact_and_shortest() -> None:
    random = Random(5)
    for _ in range(2000):
        value = struct.unpack("<d", struct.pack("<Q", random.randrange(1, 0x7FF0000000000000)))[0]
        spelling = spell_float(value, single=False)
        check_positional(spelling)
        assert float(spelling) == value
        # Python specifies that `repr` is the shortest text that reads back.
        assert Decimal(spelling) == Decimal(repr(value))


def test_only_equal_keys_have_equal_text() -> None:
    values = sorted({*some_f32(300), *(-value for value in some_f32(50))})
    assert len({spell_float(value, single=True) for value in values}) == len(values)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_non_finite_keys_are_rejected(value: float) -> None:
    for single in (False, True):
        with pytest.raises(ValueFormatError):
            spell_float(value, single=single)


IDS = {
    "one column": (["acme"], "acme"),
    "one column that looks like JSON": (['["a"]'], '["a"]'),
    "one empty column": ([""], ""),
    "two columns": (["7", "acme"], '["7","acme"]'),
    "quotes and backslashes": (['a"b', "c\\d"], r'["a\"b","c\\d"]'),
    "not only ASCII": (["é", "🙂"], '["é","🙂"]'),
    "control characters": (["a\nb", "\x00"], r'["a\nb","\u0000"]'),
    "empty columns": (["", ""], '["",""]'),
    "three": (["a", "b", "c"], '["a","b","c"]'),
}


@pytest.mark.parametrize(("spellings", "row_id"), IDS.values(), ids=IDS)
def test_derive_id(spellings: list[str], row_id: str) -> None:
    assert derive_id(spellings) == row_id
    if len(spellings) > 1:
        assert json.loads(row_id) == spellings


def test_composite_ids_never_collide() -> None:
    random = Random(6)
    seen: dict[str, tuple[str, ...]] = {}
    for _ in range(3000):
        spellings = tuple("".join(random.choices('",[]\\ab', k=random.randint(0, 3))) for _ in range(2))
        assert seen.setdefault(derive_id(spellings), spellings) == spellings


# -- §3: output --------------------------------------------------------------------------------------

SAFE = 2**53 - 1
WRITTEN: list[tuple[str, Any, Any]] = [
    ("String", "é", "é"),
    ("Bool", True, True),
    ("I32", -(2**31), -(2**31)),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("I64", SAFE, SAFE),
    ("I64", SAFE + 1, str(SAFE + 1)),
    ("I64", -SAFE, -SAFE),
    ("I64", -SAFE - 1, str(-SAFE - 1)),
    ("U64", 2**64 - 1, "18446744073709551615"),
    ("F64", 1.5, 1.5),
    ("F64", math.nan, "NaN"),
    ("F64", math.inf, "Infinity"),
    ("F64", -math.inf, "-Infinity"),
    ("F32", 0.10000000149011612, 0.10000000149011612),
    ("F32", math.inf, "Infinity"),
    ("Date", 0, "1970-01-01"),
    ("DateTime", -1, "1969-12-31T23:59:59.999Z"),
    ("Vector(3)", [1.0, math.nan, math.inf], [1.0, None, None]),
    ("[I32]", [1, 2], [1, 2]),
    ("[Date]", [0, 1], ["1970-01-01", "1970-01-02"]),
    ("[String]", [], []),
    ("enum(a, b)", "a", "a"),
]


@pytest.mark.parametrize(("type_", "stored", "shown"), WRITTEN, ids=[f"{t} {v!r}" for t, v, _ in WRITTEN])
def test_written(type_: str, stored: Any, shown: Any) -> None:
    for nullable in (False, True):
        assert write_json(stored, TYPES[type_].with_nullable(nullable)) == shown
    assert json.loads(json.dumps(shown, allow_nan=False)) == shown


def test_lists_of_wide_integers() -> None:
    assert write_json([1, SAFE + 1], PropertyType("I64", is_list=True)) == [1, str(SAFE + 1)]


@pytest.mark.parametrize("type_", TYPES.values(), ids=str)
def test_null_is_written_as_null(type_: PropertyType) -> None:
    assert write_json(None, type_.with_nullable(True)) is None


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("Date", "2024-02-29"),
        ("DateTime", "2024-02-29T01:02:03.004Z"),
        ("F32", 0.10000000149011612),
        ("F64", 0.1),
        ("I64", SAFE),
        ("[Date]", ["2024-02-29"]),
        ("Vector(3)", [0.5, 0.25, -1.0]),
    ],
)
def test_output_reads_back(type_: str, value: Any) -> None:
    assert write_json(read_json(value, TYPES[type_]), TYPES[type_]) == value
