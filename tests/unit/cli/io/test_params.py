"""Sources of parameters and their precedence."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from omnigraph.cli.io.params import gather
from omnigraph.config import Alias
from omnigraph.errors import InputError, ParameterError
from omnigraph.scalar_types.written_value import read_word

ALIAS = Alias("object", False, "q.gq", args=("number", "room"))


def gathered(**given: Any) -> dict[str, Any]:
    declared = given.pop("declared", {})
    words = {"params": None, "params_file": None, "assignments": (), **given}
    return gather(declared, **words)


def test_precedence_applies_per_key(tmp_path):
    path = tmp_path / "p.json"
    path.write_text('{"room": "file", "year": 1}')
    assert gathered(alias=ALIAS, words=["29", "4b"]) == {"number": 29, "room": "4b"}
    assert gathered(alias=ALIAS, words=["29"], params='{"room": "x"}') == {"number": 29, "room": "x"}
    assert gathered(alias=ALIAS, words=["29", "4b"], params_file=str(path)) == {
        "number": 29,
        "room": "file",
        "year": 1,
    }
    assert gathered(params='{"a": 1, "b": 2}', assignments=["b=3", "$c=x=y"]) == {"a": 1, "b": 3, "c": "x=y"}


@pytest.mark.parametrize(
    ("word", "declared", "value"),
    [
        ("29", None, 29),
        ('"29"', None, "29"),
        ("true", "Bool", True),
        ("Alice", "String", "Alice"),
        ("29", "String", "29"),
        ("29", "String?", "29"),
        ("null", "String?", None),
        ('"a b"', "String", "a b"),
        ("2024-01-01", "Date", "2024-01-01"),
        ("[1,2]", "Vector", [1, 2]),
        ('["a"]', "[String]", ["a"]),
        ("007", "String", "007"),
        ("-", "I32", "-"),
    ],
)
def test_words_are_parsed_by_declared_type(word, declared, value):
    assert read_word(word, declared) == value


def test_too_many_alias_arguments():
    with pytest.raises(InputError, match="alias 'object' takes 2 arguments, not 3"):
        gathered(alias=ALIAS, words=["1", "2", "3"])


@pytest.mark.parametrize("text", ["[1]", "3", "null"])
def test_params_must_be_an_object(text):
    with pytest.raises(ParameterError, match="--params is not a JSON object"):
        gathered(params=text)


def test_invalid_json_has_a_hint():
    with pytest.raises(ParameterError, match="--params is not JSON") as caught:
        gathered(params="{name: Bo}")
    assert "-p name=value" in (caught.value.hint or "")


def test_invalid_assignments_are_usage_errors():
    with pytest.raises(typer.BadParameter, match="exclude each other"):
        gathered(params="{}", params_file="x")
    with pytest.raises(typer.BadParameter, match="write -p name=value"):
        gathered(assignments=["name"])
