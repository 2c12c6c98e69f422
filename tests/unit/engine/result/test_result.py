"""Results in every form."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine.exec.projection import Projection
from omnigraph.engine.result.result import Result
from support.writes import new_graph, node

SCHEMA = """
node T { name: String @key  flag: Bool?  i: I32?  big: I64?  wide: U64?  half: F32?  x: F64?  day: Date?  at: DateTime?
         words: [String]?  bigs: [I64]?  days: [Date]?  times: [DateTime]?  xs: [F64]?  vec: Vector(2)?  raw: Blob? }
"""
FULL = {
    "name": "ä", "flag": True, "i": -1, "big": 2**53, "wide": 2**64 - 1, "half": 0.1, "x": 0.1, "day": "1969-12-31",
    "at": "2020-02-29T10:11:12.345Z", "words": ["x", ""], "bigs": [1, -(2**53)], "days": ["2020-02-29"],
    "times": ["1969-12-31T23:59:59.999Z"], "xs": [1.5], "vec": [1, 0.1], "raw": "base64:AA==",
}  # fmt: skip
SHOWN = {
    **FULL, "id": "ä", "big": "9007199254740992", "wide": "18446744073709551615", "half": 0.10000000149011612,
    "bigs": [1, "-9007199254740992"], "vec": [1.0, 0.10000000149011612],
}  # fmt: skip
del SHOWN["raw"]
NULLS = {**dict.fromkeys(SHOWN), "id": "z", "name": "z"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return new_graph(tmp_path_factory.mktemp("result"), SCHEMA, node("T", **FULL), node("T", name="z"))


def everything(graph) -> Result:
    items = ", ".join(f"$t.{name} as {name}" for name in SHOWN if name != "id")
    return graph.query(f"query all() {{ match {{ $t: T }} return {{ $t, {items} }} order {{ $t.name desc }} }}")


def result(**columns: pa.Array) -> Result:
    return Result(pa.table(columns), query_name="q", commit_id="c", elapsed_ms=1.0)


def test_json_of_every_type_alone_and_in_an_object(graph):
    found = everything(graph)
    for shown, row in zip((SHOWN, NULLS), found.to_rows(), strict=True):
        assert row.pop("t") == shown
        assert row == {name: value for name, value in shown.items() if name != "id"}
    assert json.loads(found.to_json()) == found.to_rows()
    assert '"name": "ä"' in found.to_json(), "text is not escaped"


def test_object_has_its_id_first_and_properties_by_name(graph):
    (row, _) = everything(graph).to_rows()
    assert list(row["t"]) == ["id", *sorted(name for name in SHOWN if name != "id")]


def test_python_values_keep_the_time_of_day(graph):
    moment = dt.datetime(2020, 2, 29, 10, 11, 12, 345_000, dt.UTC)
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)
    rows = everything(graph).to_pylist()
    assert rows == list(everything(graph))
    for values in (rows[0], rows[0]["t"]):
        assert values["at"] == moment
        assert values["times"] == [before]
        assert values["day"] == dt.date(1969, 12, 31)
        assert values["days"] == [dt.date(2020, 2, 29)]
        assert (values["big"], values["wide"]) == (2**53, 2**64 - 1)
        assert values["vec"] == [1.0, 0.10000000149011612]
    assert rows[1]["at"] is rows[1]["t"]["times"] is None


def test_arrow_keeps_the_stored_types(graph):
    found = everything(graph)
    table = found.to_arrow()
    assert table.schema.field("at").type == pa.date64()
    assert table.schema.field("day").type == pa.date32()
    assert table.schema.field("wide").type == pa.uint64()
    assert table.schema.field("half").type == pa.float32()
    assert pa.types.is_fixed_size_list(table.schema.field("vec").type)
    assert pa.types.is_struct(table.schema.field("t").type)
    assert pa.table(found) == table, "by the C stream interface"
    assert pa.Table.from_batches(found.to_batches(1), table.schema) == table
    assert len(list(found.to_batches(1))) == len(found) == 2


def test_empty_result_has_columns_and_types(graph):
    found = graph.query('query q() { match { $t: T { name: "no" } } return { $t, $t.at, count($t) as n } }')
    assert found.to_rows() == found.to_pylist() == []
    assert found.to_json() == "[]"
    assert found.columns == ["t", "t.at", "n"]
    assert pa.table(found).schema == found.to_arrow().schema
    assert found.to_arrow().schema.field("t.at").type == pa.date64()
    assert '<th style="text-align:right">n</th>' in found._repr_html_()


def test_attributes_of_a_result(graph):
    found = everything(graph)
    assert found.query_name == "all"
    assert found.commit_id == graph.commits()[0].id
    assert isinstance(found.elapsed_ms, float)
    assert str(found).startswith("t      | name | flag |    i |")
    assert str(found).endswith("\n2 rows")


def test_long_result_prints_its_first_rows():
    found = Result(pa.table({"n": range(1000)}), query_name="q", commit_id="c", elapsed_ms=0)
    lines = str(found).splitlines()
    assert lines[:3] == [" n", "--", " 0"]
    assert lines[-3:] == ["19", "…", "1,000 rows"]
    assert str(Result.empty()) == "(no rows)\n0 rows"


def test_two_columns_with_one_name(graph):
    found = graph.query('query q() { match { $t: T { name: "z" } } return { $t.name, $t.i as x, 7 as x, true as x } }')
    assert found.columns == ["t.name", "x", "x", "x"]
    assert [column.to_pylist() for column in found.to_arrow().columns] == [["z"], [None], [7], [True]]
    assert found.to_rows() == found.to_pylist() == [{"t.name": "z", "x": True}]
    assert found._repr_html_().count("<th ") == 4


def test_numbers_that_json_cannot_represent():
    wide = [2**53 - 1, 2**53, -(2**53) + 1, -(2**53), None]
    found = result(
        i=pa.array(wide, pa.int64()),
        x=pa.array([float("nan"), float("inf"), float("-inf"), -0.0, None]),
        f=pa.array([float("nan"), float("inf"), float("-inf"), 0.5, None], pa.float32()),
        v=pa.array([[1, float("nan")], [float("inf"), 2], None, [0, 0], [1, 1]], pa.list_(pa.float32(), 2)),
        s=pa.array([{"a": 2**60, "b": [2**60]}] * 5),
    )
    rows = found.to_rows()
    assert [row["i"] for row in rows] == [2**53 - 1, "9007199254740992", -(2**53) + 1, "-9007199254740992", None]
    assert [row["x"] for row in rows] == ["NaN", "Infinity", "-Infinity", 0, None]
    assert [row["f"] for row in rows] == ["NaN", "Infinity", "-Infinity", 0.5, None]
    assert [row["v"] for row in rows] == [[1, None], [None, 2], None, [0, 0], [1, 1]]
    assert rows[0]["s"] == {"a": "1152921504606846976", "b": ["1152921504606846976"]}
    json.loads(found.to_json(), parse_constant=pytest.fail)


def test_dates_outside_the_range_of_python():
    days, ms = pa.array([2_932_897, -800_000], pa.int32()), pa.array([253_402_300_800_000, -62_200_000_000_000])
    found = result(day=days.cast(pa.date32()), at=ms.cast(pa.date64()))
    assert found.to_rows()[0] == {"day": "+10000-01-01", "at": "+10000-01-01T00:00:00.000Z"}
    assert found.to_rows()[1]["day"].startswith("-0221-")


def test_slice_of_a_list_column():
    whole = pa.array([[1], [2, 3], None, [], [2**60]], pa.list_(pa.int64()))
    assert [row["l"] for row in result(l=whole.slice(1, 3)).to_rows()] == [[2, 3], None, []]
    objects = pa.StructArray.from_arrays([whole], names=["l"])
    assert [row["o"]["l"] for row in result(o=objects.slice(3)).to_rows()] == [[], ["1152921504606846976"]]


def test_html_is_escaped_and_short(graph):
    found = result(**{"<b>": pa.array(["<script>alert('x')</script>", "&"] + ["plain"] * 100)})
    page = found._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert ">&lt;b&gt;</th>" in page
    assert ">&amp;</td>" in page
    assert page.count("<tr>") == 51
    assert "102 rows" in page


# -- large results -----------------------------------------------------------------------------------


@pytest.fixture
def streamed(graph, monkeypatch, tune):
    """Lazy results of any size, and the number of their fetches."""
    fetched: list[int] = []
    columns = Projection._columns

    def counting(self, frame):
        fetched.append(frame.count)
        return columns(self, frame)

    tune(lazy_result_rows=0)
    monkeypatch.setattr(Projection, "_columns", counting)
    return fetched


def test_large_result_is_the_same_in_every_form(graph, tune):
    eager = everything(graph)
    tune(lazy_result_rows=0)
    for form in ("to_pylist", "to_rows", "to_json", "to_arrow", "_repr_html_", "to_columns", "__len__", "__repr__"):
        assert getattr(everything(graph), form)() == getattr(eager, form)(), form
    lazy = everything(graph)
    assert list(lazy) == list(eager)
    assert list(lazy.json_rows()) == eager.to_rows()
    assert lazy.schema == eager.schema == lazy.to_arrow().schema
    assert pa.table(everything(graph)) == eager.to_arrow()
    assert pa.Table.from_batches(everything(graph).batches(1)) == eager.to_arrow()


def test_large_result_is_fetched_batch_by_batch(graph, streamed):
    found = everything(graph)
    assert streamed == [], "nothing is fetched before the first batch"
    assert len(found) == 2
    batches = found.batches(1)
    assert streamed == []
    assert next(batches).num_rows == 1
    assert streamed == [1]
    assert next(batches).num_rows == 1
    assert next(batches, None) is None
    assert streamed == [1, 1]
    reader = pa.RecordBatchReader.from_stream(found)
    assert streamed[2:] == [0], "the stream needs the types first"
    assert reader.read_all() == found.to_arrow()
    streamed.clear()
    found.to_arrow()
    assert streamed == [], "all rows are in memory now"


def test_fused_scores_belong_to_their_rows(graph, tune):
    tune(lazy_result_rows=0)
    text = """query q() { match { $t: T } return { $t.name, rrf(nearest($t.vec, [1, 0]), bm25($t.name, "z")) as s }
        order { s } limit 5 }"""
    found = graph.query(text)
    assert [batch.column(1)[0].as_py() for batch in found.batches(1)] == found.to_arrow()["s"].to_pylist()


def test_time_limit_applies_while_batches_are_fetched(graph, tune):
    tune(lazy_result_rows=0)
    stop = og.Cancellation()
    found = graph.query("query q() { match { $t: T } return { $t.name } }", cancel=stop)
    batches = found.batches(1)
    next(batches)
    stop.cancel()
    with pytest.raises(og.errors.Cancelled):
        next(batches)


def test_batch_size_must_be_positive(graph):
    with pytest.raises(og.errors.InputError, match="at least one row"):
        everything(graph).batches(0)


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_error_names_a_missing_package(graph, monkeypatch, module):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(og.errors.MissingPackage, match=f"'{module}' is not installed") as caught:
        getattr(everything(graph), f"to_{module}")()
    assert isinstance(caught.value, ImportError)
    assert caught.value.hint == f"install it: pip install {module}"


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_data_frames(graph, module):
    pytest.importorskip(module)
    found = everything(graph)
    frame = getattr(found, f"to_{module}")()
    assert list(frame.columns) == found.columns
    assert str(frame["at"][0]).startswith("2020-02-29 10:11:12.345")


def test_rows_found_by_key_are_the_same_in_every_form(graph):
    text = "query q($k: String) { match { $t: T { name: $k } } return { $t.name, $t.i, $t.x as i } }"
    for key, rows in (("ä", [{"t.name": "ä", "t.i": -1, "i": 0.1}]), ("nobody", [])):
        result = graph.query(text, params={"k": key})
        assert (len(result), list(result), list(result)) == (len(rows), rows, rows)
        assert result.to_arrow().to_pylist() == rows
        assert (len(result), list(result), result.to_pylist()) == (len(rows), rows, rows)


def test_import_does_not_load_lance():
    """A client of a server has results without Lance."""
    code = "import sys, omnigraph.engine.result.result; print([m for m in ('lance', 'obstore') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


class ReceivedRows:
    """Rows that are computed elsewhere."""

    schema = pa.schema([("n", pa.int64())])

    def __len__(self) -> int:
        return 5

    def batches(self, rows):
        for start in range(0, 5, rows):
            yield pa.record_batch({"n": list(range(start, min(start + rows, 5)))}, self.schema)


def test_result_accepts_any_deferred_rows():
    def result() -> Result:
        return Result(ReceivedRows(), query_name="q", commit_id="c", elapsed_ms=0.0)

    expected = [{"n": n} for n in range(5)]
    assert len(result()) == 5
    assert result().columns == ["n"]
    assert [batch.num_rows for batch in result().batches(2)] == [2, 2, 1]
    assert list(result()) == result().to_pylist() == result().to_rows() == expected
    assert result().to_arrow().to_pylist() == pa.table(result()).to_pylist() == expected
    assert str(result()).endswith("5 rows")
