"""Reads of a remote graph equal those of the embedded graph."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime

import pytest

import omnigraph as og
from omnigraph.engine.exec.context import Limits
from omnigraph.errors import InputError, LimitReached, ParameterError, ParseError

PEOPLE = """
query people() {
    match { $p: Person }
    return { $p.name, $p.born, $p.seen, $p.score, $p.big }
    order { $p.name }
}
"""
WITH = """
query with_($born: Date, $seen: DateTime) {
    match { $p: Person  $p.born = $born  $p.seen = $seen }
    return { $p.name }
}
"""


def test_values_have_the_types_of_the_embedded_graph(local, remote):
    here, there = local.query(PEOPLE), remote.query(PEOPLE)
    assert there.to_pylist() == here.to_pylist()
    assert there.to_pylist()[0]["p.born"] == date(1990, 2, 3)
    assert there.schema == here.schema
    assert there.to_json() == here.to_json()
    assert str(there) == str(here)


def test_parameters_keep_their_types(local, remote):
    given = {"born": date(1990, 2, 3), "seen": datetime(2026, 1, 31, 12, 30, tzinfo=UTC)}
    assert remote.query(WITH, given).to_pylist() == local.query(WITH, given).to_pylist() == [{"p.name": "ana"}]
    bare = "match { $p: Person  $p.born = $day } return { $p.name }"
    assert len(remote.query(bare, {"day": date(1990, 2, 3)})) == len(local.query(bare, {"day": date(1990, 2, 3)})) == 1


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((WITH, {"born": "x", "seen": "y"}), ParameterError),
        ((WITH, {}), ParameterError),
        ((WITH, [1]), InputError),
        (("match {",), ParseError),
        ((PEOPLE, "absent"), og.errors.QueryNotFound),
    ],
)
def test_errors_equal_those_of_the_embedded_graph(local, remote, arguments, error):
    with pytest.raises(error) as here:
        local.query(*arguments)
    with pytest.raises(error) as there:
        remote.query(*arguments)
    assert (str(there.value), there.value.code) == (str(here.value), here.value.code)


def test_errors_name_the_file(local, remote, tmp_path):
    path = tmp_path / "bad.gq"
    path.write_text("query q() { match { $p: Persn } return { $p.name } }")
    with pytest.raises(og.errors.TypeCheckError) as here:
        local.query(path)
    with pytest.raises(og.errors.TypeCheckError) as there:
        remote.query(path)
    assert str(there.value) == str(here.value)
    assert there.value.diagnostics == here.value.diagnostics


def test_points_pages_and_limits(local, remote):
    first = local.commits()[-1].id
    assert len(remote.query(PEOPLE, at=first)) == 0
    assert [len(page) for page in remote.pages(PEOPLE, page=1)] == [1, 1]
    page = remote.query(PEOPLE, page=1)
    assert remote.query(PEOPLE, page=1, after=page.next).to_pylist() == remote.query(PEOPLE).to_pylist()[1:]
    with pytest.raises(LimitReached):
        remote.query("match { $p: Person $q: Person } return { $p.name, $q.name }", limits=Limits(rows_max=1))
    with pytest.raises(InputError, match="not available over HTTP") as caught:
        remote.query(PEOPLE, engine="spark")
    assert caught.value.code == "not_remote"


def test_plans_and_lint(local, remote):
    assert remote.explain(PEOPLE).plan_hash == local.explain(PEOPLE).plan_hash
    assert str(remote.explain(PEOPLE)).splitlines()[0] == str(local.explain(PEOPLE)).splitlines()[0]
    assert "rows" in remote.profile(PEOPLE)
    text = PEOPLE + "query x() { match { $p: No } return { $p.a } }"
    here, there = local.lint(text), remote.lint(text)
    assert (there.results, there.findings) == (here.results, here.findings)


def test_asynchronous_reads(local, server):
    async def scenario():
        async with await og.aconnect(server.url) as graph:
            assert (await graph.query(PEOPLE)).to_pylist() == local.query(PEOPLE).to_pylist()
            assert [len(page) async for page in graph.pages(PEOPLE, page=1)] == [1, 1]
            assert (await graph.explain(PEOPLE)).plan_hash == local.explain(PEOPLE).plan_hash

    asyncio.run(scenario())
