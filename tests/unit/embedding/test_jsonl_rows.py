"""Rows, selectors and the text of a row."""

from __future__ import annotations

import json

import pytest

from omnigraph.embedding.jsonl_rows import Selector, is_selected, parse_row, parse_selector, render, row_text
from omnigraph.embedding.specification import TypeTarget
from omnigraph.errors import InputError

RENDERED = [
    (None, ""),
    ("", ""),
    ("  Comb\n", "Comb"),
    (True, "true"),
    (False, "false"),
    (7, "7"),
    (-1.5, "-1.5"),
    (3.0, "3.0"),
    (2**70, str(2**70)),
    ([], ""),
    ([None, " ", []], ""),
    (["bone", None, "silver"], "bone, silver"),
    ([1, " a ", [True, None, "b"]], "1, a, true, b"),
    ({}, "{}"),
    ({"b": 1, "a": [None, "ü "]}, '{"b":1,"a":[null,"ü "]}'),
    ([{"a": 1}], '{"a":1}'),
]


@pytest.mark.parametrize(("value", "text"), RENDERED)
def test_rendering(value, text):
    assert render(value) == text


def row(data, type_="Object", **members):
    return parse_row(json.dumps({"type": type_, "data": data, **members}))


def test_the_text_of_a_row():
    made = row({"label": "Comb ", "materials": ["bone", None, "silver"]})
    assert (
        row_text(made, TypeTarget("v", ("label", "materials"))) == "type: Object\nlabel: Comb\nmaterials: bone, silver"
    )


def test_fields_follow_the_specification_and_empty_ones_are_omitted():
    made = row({"a": 1, "b": None, "c": "x"})
    assert row_text(made, TypeTarget("v", ("c", "b", "missing", "a"))) == "type: Object\nc: x\na: 1"
    assert row_text(made, TypeTarget("v", ("b",))) == "type: Object"


SELECTORS = [
    ("Object:label=Comb", Selector("Object", "label", "Comb")),
    ("label=Comb", Selector(None, "label", "Comb")),
    ("  Object : label =  Comb  ", Selector("Object", "label", "Comb")),
    ("url=http://a?b=c", Selector(None, "url", "http://a?b=c")),
    ("T:a:b=c", Selector("T", "a:b", "c")),
    ("label=", Selector(None, "label", "")),
]


@pytest.mark.parametrize(("text", "selector"), SELECTORS)
def test_selectors(text, selector):
    assert parse_selector(text) == selector


@pytest.mark.parametrize("text", ["", "label", "=x", "  =x", "Object:=x", "Object: =x", ":label=x", "Object:label"])
def test_invalid_selectors_are_refused(text):
    with pytest.raises(InputError) as caught:
        parse_selector(text)
    assert f"'{text}'" in caught.value.message
    assert "field=value" in caught.value.hint


SELECTED = [
    # types, selectors → whether {"label": "Comb ", "year": 1200} of type Object is selected
    ([], [], True),
    (["Object"], [], True),
    (["Person", "Object"], [], True),
    (["Person"], [], False),
    (["object"], [], False),
    ([], ["label=Comb"], True),
    ([], ["label=comb"], False),
    ([], ["year=1200"], True),
    ([], ["Object:label=Comb"], True),
    ([], ["Person:label=Comb"], False),
    ([], ["missing="], True),
    ([], ["missing=x", "label=Comb"], True),
    (["Person"], ["label=Comb"], False),
]


@pytest.mark.parametrize(("types", "selectors", "expected"), SELECTED)
def test_selection(types, selectors, expected):
    made = row({"label": "Comb ", "year": 1200})
    assert is_selected(made, types, [parse_selector(text) for text in selectors]) is expected


def test_a_row_without_a_type_is_skipped():
    assert parse_row('{"edge": "Knows", "from": "a", "to": "b", "data": 3}') is None


WRONG = [
    ("", "not JSON"),
    ("{", "not JSON"),
    ("{'a': 1}", "not JSON"),
    ('{"type": "T", "data": {}} x', "not JSON"),
    ('{"type": "T", "data": {"a": NaN}}', "NaN is not a JSON number"),
    ('{"type": "T", "data": {"a": -Infinity}}', "-Infinity is not a JSON number"),
    ('{"type": "T", "data": {"a": 1e999}}', "1e999 is too large"),
    (f'{{"a": {"9" * 5_000}}}', "not JSON"),
    ("[]", "expected a JSON object, found an array"),
    ("3", "found the integer 3"),
    ("null", "found null"),
    ('"text"', "found the string 'text'"),
    ('{"type": 3, "data": {}}', "'type' must be a string, found the integer 3"),
    ('{"type": null, "data": {}}', "'type' must be a string, found null"),
    ('{"type": "T"}', "type 'T' needs an object 'data', found nothing"),
    ('{"type": "T", "data": null}', "found null"),
    ('{"type": "T", "data": []}', "found an array"),
]


@pytest.mark.parametrize(("line", "said"), WRONG)
def test_invalid_lines_are_refused(line, said):
    with pytest.raises(InputError) as caught:
        parse_row(line)
    assert said in caught.value.message


def test_a_row_keeps_the_order_of_its_keys():
    line = '{"id":"1","type":"T","data":{"z":1,"a":"ü\\n","n":0.1,"big":123456789012345678901},"extra":[{}]}'
    made = parse_row(line)
    assert made.line() == line
    made.data["v"] = [1.0]
    assert made.line() == line.replace("901}", '901,"v":[1.0]}')


def test_an_unpaired_surrogate_is_kept():
    line = '{"type":"T","data":{"a":"\\ud800 \\u00fc"}}'
    assert json.loads(parse_row(line).line()) == json.loads(line)
    parse_row(line).line().encode()
