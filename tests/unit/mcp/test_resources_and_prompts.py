"""Resources, prompts and completion."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.errors import InputError, TypeNotFound
from omnigraph.mcp.endpoint import UnknownName


def test_every_resource_can_be_read(endpoint):
    texts = {each.name: endpoint().read(each.uri) for each in endpoint().resources()}
    assert set(texts) == {"schema", "queries", "branches", "guide"}
    assert "Person(name String key" in texts["schema"][1]
    assert "query adults($age: I64)" in texts["queries"][1]
    assert "hidden" not in texts["queries"][1]
    assert texts["branches"][1].startswith("main  ")
    assert texts["guide"][0] == "text/markdown"
    assert "## Changes" not in texts["guide"][1]
    assert "## Changes" in endpoint(write=True).read("omnigraph://guide")[1]


def test_resource_of_a_type(endpoint):
    assert "Knows: Person -> Person" in endpoint().read("omnigraph://schema/Person")[1]
    with pytest.raises(TypeNotFound):
        endpoint().read("omnigraph://schema/Nope")


def test_resource_of_a_wide_type_fits_the_budget(tmp_path, endpoint):
    properties = "\n".join(f"    property_{number:04}: String?" for number in range(600))
    wide = og.init(tmp_path / "wide.omni", f"node Wide {{\n    name: String @key\n{properties}\n}}\n")
    text = endpoint(wide, result_tokens=1_000).read("omnigraph://schema/Wide")[1]
    assert text.startswith("Wide(name String key, property_0000 String?")
    assert len(text.encode()) <= 3_500


@pytest.mark.parametrize("uri", ["omnigraph://nope", "file:///etc/passwd", "omnigraph://schema/", "schema", ""])
def test_unknown_resources(endpoint, uri):
    with pytest.raises(UnknownName):
        endpoint().read(uri)


def test_prompts_contain_the_schema(endpoint):
    assert [prompt.name for prompt in endpoint().prompts()] == ["explore", "write_query"]
    assert [prompt.name for prompt in endpoint(write=True).prompts()][2] == "propose_change"
    assert "Person(name String key" in endpoint().prompt("explore", {})
    assert "about: ships" in endpoint().prompt("explore", {"topic": "ships"})
    assert "answers: Who paints?" in endpoint().prompt("write_query", {"question": "Who paints?"})
    assert "'mcp/ana/draft'" in endpoint(write=True).prompt("propose_change", {"change": "add cy"})


def test_wrong_prompts(endpoint):
    with pytest.raises(UnknownName):
        endpoint().prompt("propose_change", {"change": "x"})
    with pytest.raises(InputError, match="needs the argument 'question'"):
        endpoint().prompt("write_query", {})
    with pytest.raises(InputError, match="no argument 'topik'"):
        endpoint().prompt("explore", {"topik": "x"})


def test_completion_of_types(endpoint):
    assert endpoint().complete("type", "p") == ["Person"]
    assert endpoint().complete("type", "") == ["Company", "Person", "Knows", "WorksAt"]
    assert endpoint().complete("topic", "p") == []
