"""A remote graph has the methods, parameters and descriptions of the embedded graph."""

from __future__ import annotations

import inspect

import pytest

import omnigraph as og
from omnigraph.client.calls.remote_calls import RemoteCalls
from omnigraph.client.local_only import LOCAL_METHODS


def public(class_: type) -> dict[str, object]:
    found = {name: value for name, value in inspect.getmembers(class_) if not name.startswith("_")}
    return {name: value for name, value in found.items() if callable(value) or isinstance(value, property)}


METHODS = [name for name, value in public(og.Graph).items() if callable(value)]
OWN_WORDS = {"on", "export_diff"}
"""Methods whose first line describes what a remote graph does differently."""
SHARED = [name for name in METHODS if name not in LOCAL_METHODS and name not in OWN_WORDS]


def test_names():
    both = {"close"}
    assert set(public(og.RemoteGraph)) - both == set(public(og.Graph)) | {"branch", "actor"}
    assert set(public(og.AsyncRemoteGraph)) == set(public(og.AsyncGraph))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("class_", [og.RemoteGraph, og.AsyncRemoteGraph])
def test_parameters(class_, name):
    ours, theirs = inspect.signature(getattr(class_, name)), inspect.signature(getattr(og.Graph, name))
    assert [(p.name, p.kind, p.default) for p in ours.parameters.values()] == [
        (p.name, p.kind, p.default) for p in theirs.parameters.values()
    ]


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("class_", [og.RemoteGraph, og.AsyncRemoteGraph])
def test_descriptions(class_, name):
    ours, theirs = (inspect.getdoc(getattr(each, name)) or "" for each in (class_, og.Graph))
    assert ours.splitlines()[0] == theirs.splitlines()[0]


def test_every_call_is_a_method():
    calls = {name for name in vars(RemoteCalls) if not name.startswith("_")}
    calls |= {name for class_ in RemoteCalls.__mro__ for name in vars(class_) if not name.startswith("_")}
    parts = {"export_stream", "export_lines", "export_files", "export_point", "graph_streams", "url", "branch", "actor"}
    assert calls - parts - set(dir(object)) <= set(public(og.RemoteGraph))
