"""The graphs of a server: which are served, their ids, the default graph, opening and quarantine."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.config import Config, parse_config
from omnigraph.errors import InputError, Overloaded
from omnigraph.operations.authorization.access import Access
from omnigraph.server.deployment.graphs import GraphEntry, GraphList, is_graph_id, list_graphs, open_graphs
from omnigraph.server.deployment.settings import default_settings
from support.serving import make_graph

CONFIG = """
graphs:
  kb: { uri: ./kb.omni, policy: { file: policies/kb.yaml } }
  crm: { uri: "s3://bucket/crm", read_only: true, search: { approximate: true } }
  far: { uri: "https://example.org" }
policy: { file: policy.yaml, tests: cases.yaml }
"""


def config(text: str = CONFIG) -> Config:
    return parse_config(text, Path("conf/omnigraph.yaml"))


def listed(*uris: str, text: str = CONFIG, **values: object) -> GraphList:
    return list_graphs(config(text), default_settings(**values), uris)


def ids(found: GraphList) -> list[str]:
    return [entry.graph_id for entry in found.entries]


@pytest.mark.parametrize("text", ["kb", "A-1", "a" * 64])
def test_valid_ids(text: str):
    assert is_graph_id(text)


@pytest.mark.parametrize("text", ["", "policies", "a_b", "a/b", "a" * 65, "ä", "a\n", "..", "a%2f"])
def test_invalid_ids(text: str):
    assert not is_graph_id(text)


def test_one_address_is_the_default_graph():
    found = listed("./x.omni")
    assert found == GraphList((GraphEntry("default", "./x.omni", Path("conf/policy.yaml"), Path("conf/cases.yaml")),),
                              "default", single=True)  # fmt: skip


def test_the_address_wins_over_the_configured_graph():
    assert listed("./x.omni", graph="kb").entries[0].uri == "./x.omni"


def test_a_named_graph_is_served_under_its_name():
    found = listed(graph="kb")
    entry = found.entries[0]
    assert (ids(found), found.default, found.single) == (["kb"], "kb", True)
    assert (entry.uri, entry.policy_file) == ("conf/kb.omni", Path("conf/policies/kb.yaml"))
    assert entry.tests_file == Path("conf/policies/kb.tests.yaml")


def test_a_name_that_is_no_id_becomes_the_default_graph():
    assert ids(listed(graph="my_graph", text="graphs: {my_graph: {uri: ./g}}")) == ["default"]


def test_without_a_choice_every_graph_in_storage_is_served():
    found = listed()
    assert (ids(found), found.default, found.single) == (["kb", "crm"], None, False)
    assert found.entries[1].read_only
    assert [entry.approximate for entry in found.entries] == [False, True]
    assert found.entries[1].policy_file == Path("conf/policy.yaml")


def test_a_chosen_list_with_a_default():
    assert listed(graphs=("crm", "kb"), graph="kb").default == "kb"
    assert listed(graphs=("crm", "kb"), default_graph="crm").default == "crm"
    assert listed(default_graph="crm").default == "crm"
    assert listed(text="graphs: {a: {uri: ./a}}").default == "a"


def test_several_addresses_take_their_ids_from_the_last_part():
    found = listed("/data/kb.omni", "s3://bucket/graphs/crm/", default_graph="kb")
    assert (ids(found), found.default, found.single) == (["kb", "crm"], "kb", False)


@pytest.mark.parametrize(
    ("uris", "values", "code", "said"),
    [
        ((), {"text": ""}, "no_graph", "no graph was given to serve"),
        (("https://example.org",), {}, "needs_storage", "is a server; a server serves storage"),
        ((), {"graph": "far"}, "needs_storage", "graph 'far'"),
        ((), {"graph": "kbb"}, "unknown_target", "there is no graph named 'kbb'"),
        ((), {"default_graph": "far"}, "unknown_target", "the default graph 'far' is not served; served: 'crm', 'kb'"),
        ((), {"text": "graphs: {a_b: {uri: ./a}}"}, "bad_graph_id", "'a_b' cannot be the id of a graph"),
        (("a/kb.omni", "b/kb.omni"), {}, "bad_graph_id", "two graphs have the id 'kb'"),
    ],
)
def test_refused_lists(uris: tuple[str, ...], values: dict[str, str], code: str, said: str):
    with pytest.raises(InputError) as caught:
        listed(*uris, **values)
    assert caught.value.code == code
    assert said in caught.value.message


def test_a_graph_that_cannot_be_opened_is_quarantined(tmp_path):
    entries = [
        GraphEntry("good", str(make_graph(tmp_path / "good.omni"))),
        GraphEntry("bad", str(tmp_path / "none.omni")),
        GraphEntry("fixed", str(make_graph(tmp_path / "fixed.omni")), read_only=True),
    ]
    graphs = open_graphs(entries, {})
    assert list(graphs) == ["bad", "fixed", "good"]
    assert [graph.is_ready for graph in graphs.values()] == [False, True, True]
    failure = graphs["bad"].failure
    assert failure is not None
    assert failure.code == "graph_not_found"
    assert failure.retry_after_s >= 1
    with pytest.raises(Overloaded, match=r"graph 'bad' is not available \(graph_not_found\)"):
        graphs["bad"].handle(Access(None, None))
    good = graphs["good"].handle(Access(None, "ana", default="allow"), "request-7")
    assert good.actor == "ana"
    good.load([{"type": "Person", "data": {"name": "Uma"}}], mode="append")
    assert next(iter(good.commits(limit=1))).metadata["request_id"] == "request-7"


def test_a_running_graph_is_kept_and_a_quarantined_one_is_opened_again(tmp_path):
    entries = [GraphEntry("a", str(make_graph(tmp_path / "a.omni"))), GraphEntry("b", str(tmp_path / "b.omni"))]
    first = open_graphs(entries, {})
    make_graph(tmp_path / "b.omni")
    second = open_graphs(entries, {}, first)
    assert second["a"].graph is first["a"].graph
    assert second["b"].is_ready
    moved = open_graphs([GraphEntry("a", str(tmp_path / "b.omni"))], {}, second)
    assert moved["a"].graph is not first["a"].graph
