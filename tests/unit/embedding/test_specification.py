"""Specifications and manifests of the offline command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from omnigraph.embedding.specification import (
    SeedFiles,
    Specification,
    TypeTarget,
    parse_specification,
    read_manifest,
    read_specification,
)
from omnigraph.errors import InputError

SPEC = {
    "dimension": 4,
    "model": "text-embedding-3-small",
    "types": {"Object": {"target": "label_vec", "fields": ["label", "materials"]}},
}
READ = Specification(4, {"Object": TypeTarget("label_vec", ("label", "materials"))}, "text-embedding-3-small", "spec")


def test_a_specification():
    assert parse_specification(SPEC, name="spec") == READ


def test_the_model_is_optional():
    assert parse_specification({**SPEC, "model": None}, name="s").model is None
    assert parse_specification({key: SPEC[key] for key in ("dimension", "types")}, name="s").model is None


def with_type(value):
    return {**SPEC, "types": {"Object": value}}


WRONG = {
    "no object": ([], "'spec' must be an object"),
    "no dimension": ({"types": SPEC["types"]}, "'dimension' is missing"),
    "no types": ({"dimension": 4}, "'types' is missing"),
    "dimension zero": ({**SPEC, "dimension": 0}, "'dimension' must be an integer of at least 1"),
    "dimension float": ({**SPEC, "dimension": 4.0}, "'dimension'"),
    "dimension bool": ({**SPEC, "dimension": True}, "'dimension'"),
    "dimension text": ({**SPEC, "dimension": "4"}, "'dimension'"),
    "model number": ({**SPEC, "model": 3}, "'model'"),
    "model empty": ({**SPEC, "model": ""}, "'model'"),
    "unknown key": ({**SPEC, "modle": "m"}, "no key 'modle'; the keys are 'dimension', 'model', 'types'"),
    "types a list": ({**SPEC, "types": []}, "'types' must be an object"),
    "types empty": ({**SPEC, "types": {}}, "at least one type"),
    "type no object": (with_type("label"), "'types.Object' must be an object"),
    "no target": (with_type({"fields": ["a"]}), "'types.Object': 'target' is missing"),
    "no fields": (with_type({"target": "v"}), "'types.Object': 'fields' is missing"),
    "target empty": (with_type({"target": "", "fields": ["a"]}), "'types.Object': 'target'"),
    "fields empty": (with_type({"target": "v", "fields": []}), "at least one property"),
    "fields text": (with_type({"target": "v", "fields": "a"}), "'fields'"),
    "field number": (with_type({"target": "v", "fields": [1]}), "each of 'fields'"),
    "field key": (with_type({"target": "v", "fields": ["a"], "field": 1}), "no key 'field'"),
}


@pytest.mark.parametrize(("document", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_specification_names_the_key(document, said):
    with pytest.raises(InputError) as caught:
        parse_specification(document, name="spec")
    assert said in caught.value.message
    assert "'spec'" in caught.value.message


def test_a_specification_file(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text("\ufeff" + json.dumps(SPEC), encoding="utf-8")
    assert read_specification(path).types == READ.types
    assert read_specification(path).name == str(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"{", "is not JSON"), (b"\xff", "is not UTF-8"), (b"dimension: 4", "is not JSON"), (None, "there is no file")],
)
def test_an_unreadable_specification_file_is_an_error(tmp_path, content, said):
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_specification(path)
    assert said in caught.value.message
    assert str(path) in caught.value.message


def test_a_folder_is_not_a_specification(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_specification(tmp_path)


# -- manifests ---------------------------------------------------------------------------------------

MANIFEST = {
    "name": "museum",
    "sources": {"raw_seed": "data/seed.jsonl"},
    "artifacts": {"embedded_seed": "../out/seed.jsonl"},
    "embeddings": SPEC,
}


def manifest(tmp_path, document, name="seed.yaml"):
    path = tmp_path / name
    path.write_text(document if isinstance(document, str) else json.dumps(document, indent=2))
    return path


@pytest.mark.parametrize("name", ["seed.yaml", "seed.yml", "seed.json", "seed"])
def test_a_manifest_in_json(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "yaml", None)
    path = manifest(tmp_path, MANIFEST, name)
    found = read_manifest(path)
    assert isinstance(found, SeedFiles)
    assert found.input == tmp_path / "data/seed.jsonl"
    assert found.output == tmp_path / "../out/seed.jsonl"
    assert found.specification.types == READ.types
    assert str(path) in found.specification.name


def test_paths_are_relative_to_the_manifest(tmp_path, monkeypatch):
    (tmp_path / "project").mkdir()
    manifest(tmp_path / "project", {**MANIFEST, "artifacts": None})
    monkeypatch.chdir(tmp_path)
    found = read_manifest(Path("project/seed.yaml"))
    assert found.input == Path("project/data/seed.jsonl")
    assert found.output == Path("project/build/seed.embedded.jsonl")


def test_an_absolute_path_is_kept(tmp_path):
    path = manifest(tmp_path, {**MANIFEST, "sources": {"raw_seed": str(tmp_path / "a.jsonl")}})
    assert read_manifest(path).input == tmp_path / "a.jsonl"


def test_the_older_key_of_the_input_is_accepted(tmp_path):
    older = {"seed": {"data": "old.jsonl"}, "embeddings": SPEC}
    assert read_manifest(manifest(tmp_path, older)).input == tmp_path / "old.jsonl"
    both = {**MANIFEST, "seed": {"data": "old.jsonl"}}
    assert read_manifest(manifest(tmp_path, both)).input == tmp_path / "data/seed.jsonl"


WRONG_MANIFESTS = {
    "no input": ({"embeddings": SPEC}, "'sources.raw_seed' is missing"),
    "sources without it": ({**MANIFEST, "sources": {}}, "'sources.raw_seed' is missing"),
    "no embeddings": ({"sources": {"raw_seed": "a"}}, "has no key 'embeddings'"),
    "null embeddings": ({**MANIFEST, "embeddings": None}, "has no key 'embeddings'"),
    "wrong embeddings": ({**MANIFEST, "embeddings": {"dimension": 4}}, "embeddings': 'types' is missing"),
    "sources a list": ({**MANIFEST, "sources": ["a"]}, "'sources' must be a map"),
    "input a number": ({**MANIFEST, "sources": {"raw_seed": 3}}, "'sources.raw_seed' must be a string"),
    "output empty": ({**MANIFEST, "artifacts": {"embedded_seed": ""}}, "'artifacts.embedded_seed' must be"),
    "a list": ([MANIFEST], "must be a map of keys"),
}


@pytest.mark.parametrize(("document", "said"), WRONG_MANIFESTS.values(), ids=WRONG_MANIFESTS)
def test_a_wrong_manifest_names_the_key(tmp_path, document, said):
    path = manifest(tmp_path, document)
    with pytest.raises(InputError) as caught:
        read_manifest(path)
    assert said in caught.value.message
    assert str(path) in caught.value.message


def test_a_missing_manifest_is_an_error(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_manifest(tmp_path / "seed.yaml")


YAML = """
name: museum
seed:
  data: ./old.jsonl  # the older name
embeddings:
  dimension: 4
  model: text-embedding-3-small
  types:
    Object: {target: label_vec, fields: [label, materials]}
"""


def test_yaml_without_a_parser_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(InputError, match="PyYAML") as caught:
        read_manifest(manifest(tmp_path, YAML))
    assert "pip install pyyaml" in caught.value.hint


def test_a_manifest_in_yaml(tmp_path):
    found = read_manifest(manifest(tmp_path, YAML))
    assert found.input == tmp_path / "old.jsonl"
    assert found.specification.types == READ.types
    with pytest.raises(InputError, match="is not YAML"):
        read_manifest(manifest(tmp_path, "a: [1"))


def test_invalid_json_is_reported_as_json(tmp_path):
    with pytest.raises(InputError, match="is not JSON"):
        read_manifest(manifest(tmp_path, "{", "seed.json"))
