"""Decoding of bodies and query strings: a struct, or an `InputError` that names the place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InputError
from omnigraph.wire import decoding, requests
from omnigraph.wire.decoding import DEPTH_MAX, VALUES_MAX, decode_body, decode_query
from omnigraph.wire.requests.admin import PolicyTestRequest
from omnigraph.wire.requests.branches import BranchCreateRequest, BranchMergeRequest
from omnigraph.wire.requests.changes import DiffQuery
from omnigraph.wire.requests.commits import CommitListQuery
from omnigraph.wire.requests.loads import IngestRequest, LoadQuery
from omnigraph.wire.requests.maintenance import RecoverRequest
from omnigraph.wire.requests.queries import ReadRequest
from omnigraph.wire.requests.request import Request

for module in iter_modules(requests.__path__):
    import_module(f"{requests.__name__}.{module.name}")


def below(cls: type[Request]) -> Iterator[type[Request]]:
    for child in cls.__subclasses__():
        yield child
        yield from below(child)


INPUTS = list(below(Request))


def refused_body(type_: type[Request], body: bytes, *, strict: bool = True) -> InputError:
    with pytest.raises(InputError) as raised:
        decode_body(type_, body, strict=strict)
    return raised.value


def refused_query(type_: type[Request], **parameters: list[str]) -> InputError:
    with pytest.raises(InputError) as raised:
        decode_query(type_, parameters, strict=True)
    return raised.value


def nested(levels: int) -> bytes:
    return b'{"params":{"a":' + b"[" * levels + b"]" * levels + b"}}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"\xff{}", "the body is not UTF-8: the byte at offset 0 is not valid"),
        (b"[]", "the body is an array; an object is required"),
        (b"1", "the body is a number; an object is required"),
        (b"true", "the body is a boolean; an object is required"),
        (b'"x"', "the body is a string; an object is required"),
        (b"null", "the body is null; an object is required"),
        (b"{} {}", "the body is not JSON: Extra data at line 1, column 4"),
        (b'{"page":\n', "the body is not JSON: Expecting value at line 2, column 1"),
        (b'{"page": NaN}', "the body is not valid: NaN is not a JSON number"),
        (b'{"params":{"a":-Infinity}}', "the body is not valid: -Infinity is not a JSON number"),
        (b'{"params":{"a":1e999}}', "the body is not valid: the number 1e999 is out of range"),
        (b'{"page":1,"page":2}', "the body is not valid: the member 'page' is repeated"),
        (b'{"params":{"a":1,"a":1}}', "the body is not valid: the member 'a' is repeated"),
        (b"[" * 100_000, "the body is not valid: it is nested too deeply"),
        (b'{"page":' + b"9" * 5_000 + b"}", "the body is not valid: an integer has too many digits"),
        (b'{"query":"\\ud800"}', "the body is not valid: a text has an unpaired surrogate, which is not Unicode"),
        (b'{"\\udfff":1}', "the body is not valid: a text has an unpaired surrogate, which is not Unicode"),
    ],
)
def test_text_that_is_not_one_object_is_refused(body: bytes, message: str) -> None:
    error = refused_body(ReadRequest, body, strict=False)
    assert (error.code, error.message) == ("bad_json", message)
    assert error.hint == "send one JSON object, encoded in UTF-8"


@pytest.mark.parametrize(
    ("type_", "body", "message"),
    [
        (ReadRequest, b'{"query":1}', "the member 'query' is 1; a string is required"),
        (ReadRequest, b'{"page":0}', "the member 'page' is 0; an integer >= 1 is required"),
        (ReadRequest, b'{"page":"5"}', "the member 'page' is '5'; an integer is required"),
        (ReadRequest, b'{"page":true}', "the member 'page' is true; an integer is required"),
        (ReadRequest, b'{"limits":[]}', "the member 'limits' is an array; an object is required"),
        (ReadRequest, b'{"limits":{"rows":0}}', "the member 'limits.rows' is 0; an integer >= 1 is required"),
        (ReadRequest, b'{"params":[1]}', "the member 'params' is an array; an object is required"),
        (BranchCreateRequest, b'{"name":""}', "the member 'name' is ''; a string of length >= 1 is required"),
        (BranchCreateRequest, b'{"name":null}', "the member 'name' is missing"),
        (BranchCreateRequest, b"", "the member 'name' is missing"),
        (
            BranchMergeRequest,
            b'{"source":"a","resolve":5}',
            "the member 'resolve' is 5; a string or an object is required",
        ),
        (PolicyTestRequest, b'{"cases":[{"id":"a"}]}', "the member 'actor' is missing in 'cases[0]'"),
    ],
)
def test_member_that_does_not_fit_is_named_with_its_value(type_: type[Request], body: bytes, message: str) -> None:
    error = refused_body(type_, body)
    assert (error.code, error.message) == ("bad_member", message)


def test_long_value_is_shortened() -> None:
    message = refused_body(ReadRequest, b'{"page":"' + b"x" * 1_000 + b'"}').message
    assert len(message) < 120


def test_value_outside_a_closed_set_is_answered_with_the_set() -> None:
    error = refused_body(IngestRequest, b'{"data":"","mode":"merg"}')
    assert error.message == "the member 'mode' is 'merg', which is not one of its values"
    assert error.hint == "the values are 'append', 'merge', 'overwrite'"
    case = b'{"cases":[{"id":"a","actor":"b","action":"read","expect":"x"}]}'
    assert refused_body(PolicyTestRequest, case).message.startswith("the member 'cases[0].expect' is 'x'")


@pytest.mark.parametrize(
    ("type_", "body", "message", "hint"),
    [
        (ReadRequest, b'{"qery":"x"}', "there is no member 'qery'", "did you mean 'query'?"),
        (ReadRequest, b'{"limits":{"row":1}}', "there is no member 'row' in 'limits'", "did you mean 'rows'?"),
        (
            PolicyTestRequest,
            b'{"cases":[{"expct":"x"}]}',
            "there is no member 'expct' in 'cases[0]'",
            "did you mean 'expect'?",
        ),
        (PolicyTestRequest, b'{"zzz":1}', "there is no member 'zzz'", "the names are 'cases'"),
        (RecoverRequest, b'{"zzz":1}', "there is no member 'zzz'", None),
    ],
)
def test_unknown_member_is_answered_with_the_nearest_name(
    type_: type[Request], body: bytes, message: str, hint: str | None
) -> None:
    error = refused_body(type_, body)
    assert (error.code, error.message, error.hint) == ("unknown_member", message, hint)


def test_routes_that_are_not_strict_ignore_unknown_members() -> None:
    assert decode_body(ReadRequest, b'{"qery":1,"query":"x"}', strict=False) == ReadRequest(query="x")
    assert decode_query(CommitListQuery, {"limt": ["x"], "limit": ["5"]}, strict=False) == CommitListQuery(limit=5)


def test_null_is_absent() -> None:
    body = b'{"data":"","mode":null,"from":null,"rejects":null}'
    assert decode_body(IngestRequest, body, strict=True) == IngestRequest(data="")
    assert decode_body(ReadRequest, b'{"limits":{"rows":null}}', strict=True).limits is not None
    assert decode_body(ReadRequest, b'{"params":{"a":null}}', strict=True).params == {"a": None}


def test_empty_body_is_an_empty_object() -> None:
    assert decode_body(RecoverRequest, b"", strict=True) == RecoverRequest()


def test_integers_keep_their_precision() -> None:
    number = 2**80 + 1
    request = decode_body(ReadRequest, b'{"params":{"a":%d,"b":9007199254740993}}' % number, strict=True)
    assert request.params == {"a": number, "b": 9007199254740993}


def test_depth_of_a_member_is_bounded() -> None:
    assert decode_body(ReadRequest, nested(DEPTH_MAX - 1), strict=True).params is not None
    error = refused_body(ReadRequest, nested(DEPTH_MAX))
    assert (error.message, error.hint) == ("the member 'params' is nested too deeply", "use at most 32 levels")


def test_query_parameters_are_converted() -> None:
    query = decode_query(DiffQuery, {"from": ["a"], "type": ["A", "B"], "op": ["insert"], "limit": ["7"]}, strict=True)
    assert query == DiffQuery(from_="a", type=["A", "B"], op=["insert"], limit=7)
    assert decode_query(LoadQuery, {"rejects": ["true"], "from": ["null"]}, strict=True) == LoadQuery(
        rejects=True, from_="null"
    )


def test_query_parameter_that_does_not_fit_is_refused() -> None:
    assert (
        refused_query(CommitListQuery, limit=["x"]).message
        == "the query parameter 'limit' is 'x'; an integer is required"
    )
    assert refused_query(CommitListQuery, limit=["null"]).message == "the query parameter 'limit' cannot be 'null'"
    assert refused_query(CommitListQuery, limit=["1001"]).message == (
        "the query parameter 'limit' is '1001'; an integer <= 1000 is required"
    )
    assert refused_query(CommitListQuery, limit=["5", "5"]).message == "the query parameter 'limit' is given 2 times"
    assert refused_query(CommitListQuery, limt=["5"]).hint == "did you mean 'limit'?"
    assert refused_query(DiffQuery, op=["ins"]).message.startswith("the query parameter 'op[0]' is 'ins'")


CODES = ("bad_json", "bad_member", "unknown_member")


def outcome(decode: Callable[[], Request]) -> str:
    """The name of the type that is decoded, or the code of the error; any other error is raised."""
    try:
        return type(decode()).__name__
    except InputError as error:
        error.message.encode()
        return error.code


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["main", "merge", "a" * 300]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def bodies(draw: st.DrawFn, type_: type[Request]) -> bytes:
    """A JSON object with members of the type and others, whose bytes are sometimes damaged."""
    names = [field.encode_name for field in msgspec.structs.fields(type_)]
    members: dict[str, Any] = draw(st.dictionaries(st.sampled_from([*names, "x"]), JSON, max_size=5))
    body = json.dumps(members).encode()
    if draw(st.booleans()):
        place = draw(st.integers(0, len(body)))
        body = body[:place] + draw(st.binary(max_size=3)) + body[place + draw(st.integers(0, 3)) :]
    return body


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(INPUTS), st.booleans())
def test_any_body_is_an_input_or_an_input_error(data: st.DataObject, type_: type[Request], strict: bool) -> None:
    body = data.draw(bodies(type_))
    assert outcome(lambda: decode_body(type_, body, strict=strict)) in (type_.__name__, *CODES)


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from(INPUTS), st.booleans())
def test_any_query_string_is_an_input_or_an_input_error(
    data: st.DataObject, type_: type[Request], strict: bool
) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(type_)]
    values = st.lists(st.text() | st.sampled_from(["1", "true", "main", "nan", "null", "9" * 5_000]), max_size=3)
    parameters = data.draw(st.dictionaries(st.sampled_from([*names, "x"]), values, max_size=5))
    assert outcome(lambda: decode_query(type_, parameters, strict=strict)) in (type_.__name__, *CODES[1:])


def json_texts() -> st.SearchStrategy[str]:
    marks = st.text(alphabet='a"\\,[{:1é\n', max_size=12)
    values = st.recursive(
        st.integers() | marks,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(marks, inner, max_size=4),
        max_leaves=20,
    )
    return values.map(json.dumps)


@given(json_texts(), st.integers(2, 9))
def test_values_are_counted_outside_of_texts(text: str, step: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_STEP_BYTES", step)
        counted = b"".join(decoding._outside_texts(text.encode()))
    expected = re.sub(r'"(?:[^"\\]|\\.)*"', "", text)
    assert {mark: counted.decode().count(mark) for mark in ",[{:1"} == {mark: expected.count(mark) for mark in ",[{:1"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"params":{"a":[' + b"1," * VALUES_MAX + b"1]}}", "more than 500,000 values"),
        (b'{"params":{"a":' + b"[" * VALUES_MAX, "more than 500,000 values"),
        (b'{"params":{"a":"' + b"x" * 65_400 + b'","b":' + b"9" * 600 + b"}}", "a number of more than 400 characters"),
        (b'{"params":{"a":' + b"9" * 100_000 + b"}}", "a number of more than 400 characters"),
    ],
    ids=["values", "nesting", "a number across two parts", "a long number"],
)
def test_large_bodies_of_costly_values_are_refused(body: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        decode_body(ReadRequest, body, strict=True)
    assert caught.value.code == "bad_json"


def test_large_bodies_of_texts_are_decoded() -> None:
    text = '[{,\\"1' * 200_000
    body = json.dumps({"data": text}).encode()
    assert decode_body(IngestRequest, body, strict=True) == IngestRequest(data=text)
