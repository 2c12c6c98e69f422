"""JSON parameters: accepted values of each declared type, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from omnigraph.errors import ParameterError
from omnigraph.query.compile import compile_query
from omnigraph.query.params import bind_params
from omnigraph.query.plan.ir import ParamDecl
from omnigraph.scalar_types.registry import JS_SAFE_MAX
from omnigraph.schema.check import compile_schema
from omnigraph.types import PropertyType
from support.queries import PARAMS, plan, read


def type_of(spelt):
    """Return the type of a parameter declared in the language."""
    plan = compile_query(
        compile_schema("node A { p: I64 }"), f"query q($x: {spelt}) {{ match {{ $a: A }} return {{ 1 }} }}"
    )
    (param,) = plan.params
    return param.type


def bind(spelt, value, *, javascript=False):
    return bind_params([ParamDecl("x", type_of(spelt))], {"x": value}, javascript=javascript)["x"]


WIDE = JS_SAFE_MAX + 1

# (type, JSON value, stored value); both dialects
ACCEPTED = [
    ("String", "", ""),
    ("String", "a", "a"),
    ("String", "é☃", "é☃"),
    ("I32", 0, 0),
    ("I32", -(2**31), -(2**31)),
    ("I32", 2**31 - 1, 2**31 - 1),
    ("I32", "12", 12),
    ("I32", "-2147483648", -(2**31)),
    ("I64", -JS_SAFE_MAX, -JS_SAFE_MAX),
    ("I64", JS_SAFE_MAX, JS_SAFE_MAX),
    ("I64", "9223372036854775807", 2**63 - 1),
    ("I64", "-9223372036854775808", -(2**63)),
    ("I64", "0012", 12),
    ("U32", 0, 0),
    ("U32", 2**32 - 1, 2**32 - 1),
    ("U32", "4294967295", 2**32 - 1),
    ("U64", 0, 0),
    ("U64", "9223372036854775808", 2**63),
    ("U64", "18446744073709551615", 2**64 - 1),
    ("F32", 1, 1.0),
    ("F32", 0.1, 0.10000000149011612),
    ("F32", -1.5, -1.5),
    ("F64", 1, 1.0),
    ("F64", 0.1, 0.1),
    ("F64", 1e300, 1e300),
    ("Bool", True, True),
    ("Bool", False, False),
    ("Date", "1970-01-02", 1),
    ("Date", "1969-12-31", -1),
    ("Date", "1970-01-02T23:00:00-02:00", 2),
    ("DateTime", "1970-01-02", 86_400_000),
    ("DateTime", "1970-01-01T00:00:01.5Z", 1500),
    ("DateTime", "1970-01-01 01:00+01:00", 0),
    ("Blob", "base64:aGk=", b"hi"),
    ("Blob", "s3://bucket/key", "s3://bucket/key"),
    ("[String]", [], []),
    ("[String]", ["b", "a"], ["b", "a"]),
    ("[I64]", [1, "2"], [1, 2]),
    ("[U64]", ["18446744073709551615"], [2**64 - 1]),
    ("[F32]", [0.5, 1], [0.5, 1.0]),
    ("[Bool]", [True], [True]),
    ("[Date]", ["1970-01-02"], [1]),
    ("[DateTime]", ["1970-01-01T00:00:01Z"], [1000]),
    ("Vector(3)", [1, 2.5, -3], [1.0, 2.5, -3.0]),
    ("Vector(1)", [0.1], [0.10000000149011612]),
    ("Vector(2)", np.array([0.1, -2.0]), [0.10000000149011612, -2.0]),
    ("Vector(2)", np.array([1, 2], np.int64), [1.0, 2.0]),
    ("String?", None, None),
    ("I32?", None, None),
    ("[String]?", None, None),
    ("Vector(3)?", None, None),
    ("I32?", 4, 4),
    ("[String]?", ["a"], ["a"]),
]


@pytest.mark.parametrize("javascript", [False, True], ids=["standard", "javascript"])
@pytest.mark.parametrize(("spelt", "given", "stored"), ACCEPTED, ids=[f"{t}-{v}"[:40] for t, v, _ in ACCEPTED])
def test_accepted(spelt, given, stored, javascript):
    found = bind(spelt, given, javascript=javascript)
    assert found == stored
    assert type(found) is type(stored)


# (type, JSON value, text in the message besides name and type); both dialects
REFUSED = [
    ("String", 1, "the integer 1"),
    ("String", 1.5, "the number 1.5"),
    ("String", True, "found true"),
    ("String", ["a"], "an array"),
    ("String", {}, "an object"),
    ("String", "\ud800", "not valid Unicode"),
    ("String", None, "null, but String is required"),
    ("I32", None, "null, but I32 is required"),
    ("[String]", None, "null, but [String] is required"),
    ("Vector(3)", None, "null, but Vector(3) is required"),
    ("I32", 2**31, "2147483648 exceeds Int32 range (-2147483648 to 2147483647)"),
    ("I32", -(2**31) - 1, "-2147483649 exceeds Int32 range (-2147483648 to 2147483647)"),
    ("I32", "2147483648", "2147483648 exceeds Int32 range (-2147483648 to 2147483647)"),
    ("I64", "9223372036854775808", "exceeds Int64 range (-9223372036854775808 to 9223372036854775807)"),
    ("U32", -1, "-1 exceeds UInt32 range (0 to 4294967295)"),
    ("U32", 2**32, "4294967296 exceeds UInt32 range (0 to 4294967295)"),
    ("U32", "-1", "-1 exceeds UInt32 range (0 to 4294967295)"),
    ("U64", -1, "-1 exceeds UInt64 range (0 to 18446744073709551615)"),
    ("U64", "18446744073709551616", "18446744073709551616 exceeds UInt64 range (0 to 18446744073709551615)"),
    ("U64", "9" * 25, f"{'9' * 25} exceeds UInt64 range (0 to 18446744073709551615)"),
    ("I64", 3.5, "the number 3.5"),
    ("I64", True, "found true"),
    ("I64", "+1", "the string '+1'"),
    ("I64", "1.0", "the string '1.0'"),
    ("I64", "1e3", "the string '1e3'"),
    ("I64", "0x10", "the string '0x10'"),
    ("I64", " 1", "the string ' 1'"),
    ("I64", "1_000", "the string '1_000'"),
    ("I64", "١", "the string '١'"),
    ("I64", "", "the string ''"),
    ("I64", "-", "the string '-'"),
    ("I64", "9" * 5000, "the string '999"),
    ("I64", [1], "an array"),
    ("I64", {}, "an object"),
    ("F64", "1", "the string '1'"),
    ("F64", True, "found true"),
    ("F64", float("nan"), "nan is not a finite number"),
    ("F64", float("inf"), "inf is not a finite number"),
    ("F64", 10**400, "is not a finite number"),
    ("F32", 1e39, "1e+39 exceeds Float32 range"),
    ("Bool", 1, "the integer 1"),
    ("Bool", "true", "the string 'true'"),
    ("Date", 5, "expected a date string, found the integer 5"),
    ("Date", "soon", "'soon' is not a date"),
    ("Date", "2021-02-29", "'2021-02-29' is not a date of the calendar"),
    ("DateTime", 5, "expected a datetime string, found the integer 5"),
    ("DateTime", "2020-01-01T24:00", "'2020-01-01T24:00' has no such time of day"),
    ("DateTime", "2020-01-01 noon", "'2020-01-01 noon' is not a datetime"),
    ("Blob", 5, "the integer 5"),
    ("Blob", "base64:!", "invalid base64 data"),
    ("[String]", "a", "expected [String], found the string 'a'"),
    ("[String]", {}, "expected [String], found an object"),
    ("[String]", ["a", 1], "the integer 1"),
    ("[String]", ["a", None], "null"),
    ("[String]", [["a"]], "an array"),
    ("[I32]", [1, 2**31], "2147483648 exceeds Int32 range (-2147483648 to 2147483647)"),
    ("[Date]", [1], "expected a date string, found the integer 1"),
    ("Vector(3)", [1, 2], "expected 3 dimensions, got 2"),
    ("Vector(3)", [1, 2, 3, 4], "expected 3 dimensions, got 4"),
    ("Vector(3)", [], "expected 3 dimensions, got 0"),
    ("Vector(3)", [1, "2", 3], "the string '2'"),
    ("Vector(2)", [0.5, 1e39], "1e+39 exceeds Float32 range"),
    ("Vector(2)", [0.5, float("nan")], "not a finite number"),
    ("Vector(2)", np.array([0.5, np.inf]), "not a finite number"),
    ("Vector(3)", [1, True, 3], "found true"),
    ("Vector(3)", [1, None, 3], "found null"),
    ("Vector(3)", [1, float("nan"), 3], "nan is not a finite number"),
    ("Vector(3)", [1, 1e39, 3], "1e+39 exceeds Float32 range"),
    ("Vector(3)", "1,2,3", "expected Vector(3), found the string '1,2,3'"),
]


@pytest.mark.parametrize("javascript", [False, True], ids=["standard", "javascript"])
@pytest.mark.parametrize(("spelt", "given", "said"), REFUSED, ids=[f"{t}-{v!a}"[:40] for t, v, _ in REFUSED])
def test_refused_with_name_type_and_value(spelt, given, said, javascript):
    with pytest.raises(ParameterError) as caught:
        bind(spelt, given, javascript=javascript)
    assert caught.value.message.startswith(f"parameter 'x' ({spelt}): ")
    assert said in caught.value.message
    assert caught.value.code == "bad_parameter"
    assert len(caught.value.message) < 400


# -- differences between the dialects ----------------------------------------------------------------

INTEGERS = ("I32", "I64", "U32", "U64")


@pytest.mark.parametrize("spelt", INTEGERS)
def test_an_integral_float_is_an_integer_only_in_javascript(spelt):
    assert bind(spelt, 3.0, javascript=True) == 3
    assert type(bind(spelt, 3.0, javascript=True)) is int
    assert bind(f"[{spelt}]", [3.0], javascript=True) == [3]
    with pytest.raises(ParameterError, match=r"the number 3\.0"):
        bind(spelt, 3.0)


@pytest.mark.parametrize(
    ("spelt", "wide"),
    [
        ("I64", WIDE),
        ("I64", -WIDE),
        ("U64", WIDE),
        ("I64", 2**63 - 1),
        ("U64", 2**64 - 1),
    ],
)
def test_a_wide_number_is_refused_only_in_javascript(spelt, wide):
    assert bind(spelt, wide) == wide
    assert bind(spelt, str(wide), javascript=True) == wide
    with pytest.raises(ParameterError) as caught:
        bind(spelt, wide, javascript=True)
    assert f"parameter 'x' ({spelt})" in caught.value.message
    assert str(wide) in caught.value.message
    assert str(JS_SAFE_MAX) in caught.value.message
    assert caught.value.hint == "pass a decimal string"


@pytest.mark.parametrize("wide", [float(WIDE), 1e300, float("inf"), -1e300])
def test_a_wide_float_is_refused_in_both_dialects(wide):
    for javascript in (False, True):
        with pytest.raises(ParameterError, match=r"the number "):
            bind("I64", wide, javascript=javascript)


def test_the_standard_dialect_is_the_default():
    assert bind_params([ParamDecl("x", PropertyType("I64"))], {"x": WIDE}) == {"x": WIDE}


def test_a_wide_number_inside_a_list_is_refused_in_javascript():
    with pytest.raises(ParameterError, match="JavaScript"):
        bind("[I64]", [1, WIDE], javascript=True)


def test_floats_are_not_limited_to_the_safe_range():
    assert bind("F64", WIDE, javascript=True) == float(WIDE)
    assert bind("Vector(1)", [WIDE], javascript=True) == [float(WIDE)]


# -- the parameter object ----------------------------------------------------------------------------

DECLARED = (ParamDecl("name", PropertyType("String")), ParamDecl("age", PropertyType("I32", nullable=True)))


def test_every_declared_parameter_has_a_value():
    assert bind_params(DECLARED, {"name": "a", "age": 4}) == {"name": "a", "age": 4}
    assert bind_params(DECLARED, {"name": "a", "age": None}) == {"name": "a", "age": None}
    assert bind_params(DECLARED, {"name": "a"}) == {"name": "a", "age": None}


@pytest.mark.parametrize("given", [None, {}])
def test_no_parameters_is_an_empty_object(given):
    assert bind_params((), given) == {}
    assert bind_params(DECLARED[1:], given) == {"age": None}
    with pytest.raises(ParameterError) as caught:
        bind_params(DECLARED, given)
    assert caught.value.message == "parameter 'name' (String) is missing"
    assert caught.value.hint is None


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"nmae": "a"}, "did you mean 'name'?"),
        ({"Name": "a"}, "did you mean 'name'?"),
        ({"$name": "a"}, "parameter names are given without the dollar sign"),
        ({"town": "a"}, "it takes 'age', 'name'"),
        ({"town": {"b": 1}}, "it takes 'age', 'name'"),
        ({"name": "a", "town": None}, "it takes 'age', 'name'"),
    ],
)
def test_an_undeclared_parameter_is_refused_with_a_suggestion(given, hint):
    unknown = next(name for name in given if name != "name")
    with pytest.raises(ParameterError) as caught:
        bind_params(DECLARED, given)
    assert (caught.value.message, caught.value.hint) == (f"the query has no parameter '{unknown}'", hint)


def test_a_query_without_parameters_takes_none():
    with pytest.raises(ParameterError) as caught:
        bind_params((), {"name": "a"})
    assert caught.value.hint == "it takes no parameters"


@pytest.mark.parametrize(
    ("given", "found"), [([], "an array"), ("a", "the string 'a'"), (1, "the integer 1"), (True, "true")]
)
def test_parameters_must_be_an_object(given, found):
    with pytest.raises(ParameterError) as caught:
        bind_params(DECLARED, given)
    assert caught.value.message == f"parameters are an object of names and values, not {found}"
    assert caught.value.hint == 'write {"name": value}'


def test_a_compiled_query_lists_its_parameters_in_order():
    declared = [f"${param.name}: {param.type}" for param in plan(read("$p: Person")).params]
    assert ", ".join(declared) == PARAMS
