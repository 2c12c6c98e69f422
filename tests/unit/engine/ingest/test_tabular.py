"""Records from Arrow, Parquet, CSV and DataFrames, under the rules of JSON."""

from __future__ import annotations

import datetime as dt
import decimal
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.engine.ingest.records import Faults, LoadedRows, RecordColumns
from omnigraph.engine.ingest.row_builder import build_rows
from omnigraph.engine.ingest.tabular import read_arrow, read_table_file
from omnigraph.errors import InputError, RecordError, TypeNotFound
from omnigraph.schema.check import compile_schema
from omnigraph.storage.files.input_files import find_files
from omnigraph.table_format import TableFormat
from support.writes import called

SCHEMA = """
node T {
    k: String @key
    i: I32?  big: U64?  f: F32?  d: F64?  ok: Bool?  day: Date?  at: DateTime?
    days: [Date]?  times: [DateTime]?  nums: [I32]?  words: [String]?
    vec: Vector(2)?  blob: Blob?  mood: enum(a, b)?
}
node N { v: I32?  src: String? }
edge Likes: T -> N { w: F64? }
"""
CATALOG = compile_schema(SCHEMA)
KEYED = compile_schema(
    "node R { card: I64 @key }\nnode S { a: String b: I32 @key(a, b) }\nedge B: R -> R\nedge C: R -> S\n"
)


def rows_of(found: dict[str, Any], faults: Faults | None = None) -> list[dict[str, Any]]:
    """Return the rows of a table's records without nulls, dates as numbers."""
    (part,) = found.values()
    rows: LoadedRows = build_rows([part], faults or Faults(), called("made"))
    table = rows.table
    for name in ("day", "at", "days", "times"):
        if name in table.column_names:
            number = pa.int32() if name.startswith("day") else pa.int64()
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, table[name].cast(pa.list_(number) if name.endswith("s") else number))
    return [{key: value for key, value in row.items() if value is not None} for row in table.to_pylist()]


def read_file(path: Path, faults: Faults) -> dict[str, Any]:
    (file,) = find_files([str(path)], {}, bool)
    return dict(read_table_file(file, CATALOG, faults))


def arrow(columns: dict[str, Any], name: str = "T") -> list[dict[str, Any]]:
    return rows_of(read_arrow(name, pa.table(columns), CATALOG, Faults()))


# -- Arrow -------------------------------------------------------------------------------------------


def test_columns_of_the_stored_type():
    table = {
        "k": ["a", "b"],
        "i": pa.array([-1, None], pa.int32()),
        "big": pa.array([2**64 - 1, None], pa.uint64()),
        "f": pa.array([0.5, None], pa.float32()),
        "d": pa.array([0.1, None], pa.float64()),
        "ok": [True, None],
        "day": pa.array([-5, None], pa.date32()),
        "at": pa.array([86_400_001, None], pa.date64()),
        "days": pa.array([[1, 2], None], pa.list_(pa.date32())),
        "times": pa.array([[1, -1], []], pa.list_(pa.date64())),
        "nums": [[1, 2], []],
        "words": [["x"], None],
        "vec": pa.array([[1, 2], None], pa.list_(pa.float32(), 2)),
        "blob": pa.array([b"", None], pa.large_binary()),
        "mood": pa.array(["a", None]).dictionary_encode(),
    }
    assert arrow(table) == [
        {
            "id": "a", "k": "a", "i": -1, "big": 2**64 - 1, "f": 0.5, "d": 0.1, "ok": True, "day": -5, "at": 86_400_001,
            "days": [1, 2], "times": [1, -1], "nums": [1, 2], "words": ["x"], "vec": [1.0, 2.0],
            "blob": b"", "mood": "a",
        },
        {"id": "b", "k": "b", "times": [], "nums": []},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "name", "value"),
    [
        (pa.array([7], pa.int8()), "i", 7),
        (pa.array([7], pa.int64()), "big", 7),
        (pa.array([7], pa.int64()), "d", 7.0),
        (pa.array([0.1], pa.float32()), "d", 0.10000000149011612),
        (pa.array([0.1], pa.float64()), "f", 0.10000000149011612),
        (pa.array(["a"], pa.large_utf8()), "mood", "a"),
        (pa.array([["x"]], pa.large_list(pa.large_utf8())), "words", ["x"]),
        (pa.array(["2024-01-01"]), "day", 19_723),
        (pa.array(["2024-01-01T00:00:01+01:00"]), "at", 1_704_063_601_000),
        (pa.array([19_723], pa.int64()), "day", 19_723),
        # A Date converts to a DateTime, and a DateTime to a Date.
        (pa.array([19_723], pa.date32()), "at", 19_723 * 86_400_000),
        (pa.array([86_400_001], pa.date64()), "day", 1),
        (pa.array([-1], pa.date64()), "day", -1),
        (pa.array([90_000], pa.timestamp("s")), "at", 90_000_000),
        (pa.array([90_000], pa.timestamp("s")), "day", 1),
        (pa.array([1_999], pa.timestamp("us")), "at", 1),
        (pa.array([-1], pa.timestamp("ns")), "at", -1),
        (
            pa.array([dt.datetime(2024, 1, 1, 3, tzinfo=dt.UTC)], pa.timestamp("us", "Europe/Berlin")),
            "at",
            1_704_078_000_000,
        ),
        (pa.array([[90_000]], pa.list_(pa.timestamp("s"))), "days", [1]),
        (pa.array([[1, 2]], pa.list_(pa.date32())), "times", [86_400_000, 172_800_000]),
        (pa.array([[1, 2]], pa.list_(pa.int64())), "vec", [1.0, 2.0]),
        (pa.array([b"\x00"], pa.binary()), "blob", b"\x00"),
        (pa.array([b"\x00"], pa.binary_view()), "blob", b"\x00"),
        (pa.array([b"\x00"], pa.binary(1)), "blob", b"\x00"),
        (pa.array(["a"], pa.string_view()), "mood", "a"),
        (pa.array(["base64:AA=="]), "blob", b"\x00"),
    ],
)
def test_columns_of_convertible_types(column, name, value):
    assert arrow({"k": ["a"], name: column}) == [{"id": "a", "k": "a", name: value}]


@pytest.mark.parametrize(
    ("column", "name"),
    [
        (pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)), "vec"),
        (pa.array([None, [3, 4]], pa.list_(pa.float32(), 2)), "vec"),
        (pa.array([[1, 2], None], pa.list_(pa.float64())), "vec"),
        (pa.array([1, None], pa.timestamp("ns", "UTC")), "at"),
        (pa.array([1, None], pa.date64()), "at"),
        (pa.array([1, None], pa.timestamp("s")), "day"),
    ],
)
def test_vectors_and_dates_stay_columns(column, name):
    """As Python values they would take eight times the memory."""
    (part,) = read_arrow("T", pa.table({"k": ["a", "b"], name: column}), CATALOG, Faults()).values()
    assert isinstance(part, RecordColumns)
    assert part.fields[name].null_count == column.null_count


def test_the_size_of_python_values_is_counted():
    vectors = pa.array([[1, 2]] * 100, pa.list_(pa.int64()))
    (part,) = read_arrow("T", pa.table({"k": ["a"] * 100, "vec": vectors}), CATALOG, Faults()).values()
    assert part.size > 100 * 2 * 32


@pytest.mark.parametrize("far", [pa.array([2**62], pa.timestamp("s")), pa.array([10**6 * 366], pa.date32())])
def test_a_date_out_of_range_is_refused(far):
    with pytest.raises(RecordError, match=r"T\.at"):
        arrow({"k": ["a"], "at": far})


@pytest.mark.parametrize(
    ("column", "name", "reason", "line"),
    [
        (pa.array([1.0, 3.0]), "i", "T.i: expected I32?, found the number 1.0", 1),
        (pa.array([1, 2**31]), "i", "T.i: 2147483648 exceeds Int32 range (-2147483648 to 2147483647)", 2),
        (pa.array(["1", "2"]), "i", "T.i: expected I32?, found the string '1'", 1),
        (pa.array([1, 0]), "ok", "T.ok: expected Bool?, found the integer 1", 1),
        (pa.array([1.0, float("nan")]), "d", "T.d: the number nan is not a finite number that F64 can hold", 2),
        (pa.array([decimal.Decimal("1.5"), None]), "i", "T.i: expected I32?, found Decimal", 1),
        (pa.array([19_723, None], pa.date32()), "i", "T.i: expected I32?, found the string '2024-01-01'", 1),
        (
            pa.array([0, None], pa.timestamp("ms")),
            "big",
            "T.big: expected U64?, found the string '1970-01-01T00:00:00.000Z'",
            1,
        ),
        (pa.array([b"a", None], pa.binary()), "mood", "T.mood: expected enum(a, b)?, found bytes", 1),
        (pa.array([[1], [1, None]]), "nums", "T.nums: a list may not hold null", 2),
        (pa.array([[1.0, 2.0], [1.0]]), "vec", "T.vec: expected 2 dimensions, got 1", 2),
        (pa.array([[1.0, 2.0], [1.0, None]]), "vec", "T.vec: vector elements must be numeric, found null", 2),
    ],
)
def test_a_bad_cell_is_reported_with_its_row(column, name, reason, line):
    with pytest.raises(RecordError) as caught:
        arrow({"k": ["a", "b"], name: column})
    assert caught.value.reason == reason
    assert caught.value.line == line


@pytest.mark.parametrize("ends", [("from", "to"), ("src", "dst"), ("from", "dst"), ("src", "to")])
def test_the_ends_of_an_edge(ends):
    table = pa.table({ends[0]: ["a", "b"], "w": [0.5, None], ends[1]: ["1", "2"], "id": ["e", None]})
    assert rows_of(read_arrow("Likes", table, CATALOG, Faults())) == [
        {"id": "e", "src": "a", "dst": "1", "w": 0.5},
        {"id": "made", "src": "b", "dst": "2"},
    ]


def test_edge_type_names_are_case_insensitive():
    assert list(read_arrow("likes", pa.table({"from": ["a"], "to": ["b"]}), CATALOG, Faults())) == ["edge:Likes"]


def test_src_is_an_ordinary_property_of_a_node():
    assert arrow({"src": ["x"], "id": ["1"]}, "N") == [{"id": "1", "src": "x"}]


@pytest.mark.parametrize(
    ("name", "columns", "message"),
    [
        ("T", {"k": ["a"], "nope": [1]}, "node type 'T' has no property 'nope'"),
        ("T", {"k": ["a"], "from": ["x"]}, "node type 'T' has no property 'from'"),
        ("T", {"k": ["a"], "_rowid": [1]}, "node type 'T' has no property '_rowid'"),
        ("Likes", {"from": ["a"], "w": [0.5]}, "edge Likes: there is no column 'to'"),
        ("Likes", {"dst": ["a"]}, "edge Likes: there is no column 'from'"),
        ("Likes", {"from": ["a"], "src": ["a"], "to": ["b"]}, "columns 'from' and 'src' have the same meaning"),
    ],
)
def test_unknown_and_missing_columns_are_refused(name, columns, message):
    with pytest.raises(RecordError, match=message):
        read_arrow(name, pa.table(columns), CATALOG, Faults())


def test_a_repeated_column_is_refused():
    table = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["k", "k"])
    with pytest.raises(RecordError, match="columns 'k' and 'k' have the same meaning"):
        read_arrow("T", table, CATALOG, Faults())


@pytest.mark.parametrize("bad", [pa.array([None, "1"]), pa.array([7, 8])])
def test_an_end_that_is_not_text_is_refused(bad):
    with pytest.raises(RecordError, match=r"^line 1: edge Likes: 'from' must be the id of a node, a string$"):
        read_arrow("Likes", pa.table({"from": bad, "to": ["1", "2"]}), CATALOG, Faults())
    faults = Faults(collect=True)
    table = pa.table({"from": ["a", "b", "c"], "to": ["1", None, "3"]})
    assert [row["src"] for row in rows_of(read_arrow("Likes", table, CATALOG, faults))] == ["a", "c"]
    assert [(error.line, error.rule) for error in faults.found] == [(2, "endpoint")]


def test_a_table_without_columns_has_rows():
    table = pa.table({"v": [1, 2]}).select([])
    assert table.num_rows == 2
    assert rows_of(read_arrow("N", table, CATALOG, Faults())) == [{"id": "made"}, {"id": "made"}]


def test_an_empty_table_has_a_type():
    assert arrow({"k": pa.array([], pa.utf8())}) == []


class Stream:
    """An object with the Arrow C stream interface, like a polars DataFrame."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_other_table_objects():
    table = pa.table({"k": ["a"], "i": [1]})
    for form in (table, table.to_batches()[0], Stream(table)):
        assert rows_of(read_arrow("T", form, CATALOG, Faults())) == [{"id": "a", "k": "a", "i": 1}]
    with pytest.raises(InputError, match="'T': cannot load a list"):
        read_arrow("T", [1], CATALOG, Faults())


if find_spec("pandas"):

    def test_a_pandas_frame():
        import pandas as pd  # noqa: PLC0415

        frame = pd.DataFrame(
            {"k": ["a", "b"], "d": [1.5, None], "at": pd.to_datetime(["2024-01-01", None])}, index=[7, 9]
        )
        assert rows_of(read_arrow("T", frame, CATALOG, Faults())) == [
            {"id": "a", "k": "a", "d": 1.5, "at": 1_704_067_200_000},
            {"id": "b", "k": "b"},
        ]


def test_an_unknown_type_is_refused():
    with pytest.raises(TypeNotFound) as caught:
        read_arrow("Like", pa.table({"k": ["a"]}), CATALOG, Faults())
    assert caught.value.hint == "did you mean 'Likes'?"


def test_a_pandas_frame_with_missing_or_mixed_values():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {
            "k": [Path("a"), "b"],
            "i": [7.0, float("nan")],
            "big": pd.array([None, 3], "Int64"),
            "ok": [None, True],
            "at": [pd.NaT, pd.Timestamp("1970-01-01T00:00:01")],
            "d": [decimal.Decimal("0.5"), pd.NA],
            "mood": pd.Categorical([None, "a"]),
        }
    )
    assert rows_of(read_arrow("T", frame, CATALOG, Faults())) == [
        {"id": "a", "k": "a", "i": 7, "d": 0.5},
        {"id": "b", "k": "b", "big": 3, "ok": True, "at": 1000, "mood": "a"},
    ]
    with pytest.raises(RecordError, match=r"T\.i: expected I32\?, found the number 7\.5"):
        read_arrow_rows(pd.DataFrame({"k": ["a"], "i": [7.5]}))
    with pytest.raises(InputError, match="a column name must be text, not int"):
        read_arrow_rows(pd.DataFrame({"k": ["a"], 7: [1]}))
    edges = pd.DataFrame({"from": [7.0], "to": [8]})
    assert rows_of(read_arrow("B", edges, KEYED, Faults())) == [{"id": "made", "src": "7", "dst": "8"}]


def read_arrow_rows(data: Any) -> list[dict[str, Any]]:
    return rows_of(read_arrow("T", data, CATALOG, Faults()))


def test_a_parquet_file_written_by_pandas(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": ["a", "b"], "i": [1.0, None]}, index=["x", "y"])
    frame.to_parquet(tmp_path / "T.parquet")
    assert rows_of(read_file(tmp_path / "T.parquet", Faults())) == [
        {"id": "a", "k": "a", "i": 1},
        {"id": "b", "k": "b"},
    ]


# -- text that is not UTF-8 --------------------------------------------------------------------------

BYTES = pa.array([b"ok", b"caf\xe9", None], pa.binary())
TEXT = pa.Array.from_buffers(pa.utf8(), 3, BYTES.buffers())
INVALID = {
    "text": ("mood", TEXT),
    "large text": ("mood", TEXT.cast(pa.large_utf8())),
    "a dictionary": ("mood", TEXT.dictionary_encode()),
    "a list": ("words", pa.ListArray.from_arrays(pa.array([0, 1, 2, 2], pa.int32()), TEXT)),
    "a list of a dictionary": (
        "words",
        pa.ListArray.from_arrays(pa.array([0, 1, 2, 2], pa.int32()), TEXT.dictionary_encode()),
    ),
    "a key": ("k", TEXT),
    "an id": ("id", TEXT),
    "a number": ("i", TEXT),
    "a Blob": ("blob", TEXT),
}


@pytest.mark.parametrize("form", ["arrow", "parquet", "memory"])
@pytest.mark.parametrize("case", INVALID)
def test_text_that_is_not_utf8_is_refused(tmp_path, case, form):
    name, column = INVALID[case]
    table = pa.table({"k": ["a", "b", "c"], name: column})
    faults = Faults(collect=True)
    if form == "memory":
        found = read_arrow("T", table, CATALOG, faults)
    else:
        path = tmp_path / f"T.{form}"
        if form == "parquet":
            pq.write_table(table, path)
        else:
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
        found = read_file(path, faults)
    rows_of(found, faults)
    wrong = [error for error in faults.found if error.line == 2]
    assert [error.property_name for error in wrong] == [name]
    assert "text that is not valid UTF-8" in wrong[0].reason
    assert form == "memory" or wrong[0].source == str(tmp_path / f"T.{form}")


def test_an_end_that_is_not_utf8_is_refused():
    table = pa.table({"from": TEXT.slice(0, 2), "to": ["1", "2"]})
    with pytest.raises(RecordError, match=r"^line 2: edge Likes: 'from' must be the id of a node"):
        read_arrow("Likes", table, CATALOG, Faults())


@pytest.mark.parametrize("form", ["arrow", "parquet"])
def test_a_column_name_that_is_not_utf8_is_refused(tmp_path, form):
    path = tmp_path / f"T.{form}"
    table = pa.table({"abcXYZ": [1]})
    if form == "parquet":
        pq.write_table(table, path, store_schema=False)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    path.write_bytes(path.read_bytes().replace(b"abcXYZ", b"abc\xff\xfeZ"))
    with pytest.raises(InputError, match="a column name is not valid UTF-8"):
        read_file(path, Faults())


def test_a_column_with_damaged_offsets_is_refused():
    data = pa.py_buffer(b"abc")
    offsets = pa.py_buffer(pa.array([0, 99, 3], pa.int32()).buffers()[1].to_pybytes())
    column = pa.Array.from_buffers(pa.utf8(), 2, [None, offsets, data])
    with pytest.raises(InputError, match="column 'k' is damaged"):
        read_arrow("T", pa.Table.from_arrays([column], names=["k"]), CATALOG, Faults())


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".parquet", ".PARQUET", ".arrow", ".feather"])
def test_parquet_and_arrow_files(tmp_path, ending):
    folder = tmp_path / "k=1"
    folder.mkdir()
    path = folder / f"T{ending}"
    table = pa.table(
        {"k": ["a"], "day": pa.array([3], pa.date32()), "vec": pa.array([[1, 2]], pa.list_(pa.float32(), 2))}
    )
    if ending.lower() == ".parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    found = read_file(path, Faults())
    assert rows_of(found) == [{"id": "a", "k": "a", "day": 3, "vec": [1.0, 2.0]}]
    assert found["node:T"].source == str(path)


@pytest.mark.parametrize("name", ["T.parquet", "T.arrow"])
def test_a_file_of_another_format_is_refused(tmp_path, name):
    path = tmp_path / name
    path.write_text("not at all")
    with pytest.raises(InputError, match=f"'{path}' cannot be read: ") as caught:
        read_file(path, Faults())
    assert caught.value.code == "unreadable_file"


def test_a_file_named_after_no_type_is_refused(tmp_path):
    pq.write_table(pa.table({"k": ["a"]}), tmp_path / "Nobody.parquet")
    with pytest.raises(TypeNotFound, match="there is no node or edge type 'Nobody'"):
        read_file(tmp_path / "Nobody.parquet", Faults())


# -- CSV ---------------------------------------------------------------------------------------------


def csv(tmp_path: Any, text: str | bytes, name: str = "T", faults: Faults | None = None) -> list[dict[str, Any]]:
    path = tmp_path / f"{name}.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    faults = faults or Faults()
    return rows_of(read_file(path, faults), faults)


def test_csv_cells_of_every_type(tmp_path):
    text = (
        "k,i,big,f,d,ok,day,at,days,nums,words,vec,blob,mood\n"
        "a,-7,18446744073709551615,.5,1e-3,true,2024-01-01,2024-01-01T00:00:00Z,"
        '"[""2024-01-01"", 2]","[1,2]","[""x""]","[1, 2.5]",base64:AA==,a\n'
        "b,+7,,5.,-2,false,,,[],,,,base64:,\n"
    )  # fmt: skip
    assert csv(tmp_path, text) == [
        {
            "id": "a", "k": "a", "i": -7, "big": 2**64 - 1, "f": 0.5, "d": 0.001, "ok": True, "day": 19_723,
            "at": 1_704_067_200_000, "days": [19_723, 2], "nums": [1, 2], "words": ["x"], "vec": [1.0, 2.5],
            "blob": b"\x00", "mood": "a",
        },
        {"id": "b", "k": "b", "i": 7, "f": 5.0, "d": -2.0, "ok": False, "days": [], "blob": b""},
    ]  # fmt: skip


def test_csv_quotes_line_ends_and_byte_order_marks(tmp_path):
    text = '\ufeffk,mood\r\n"he said ""hi"", twice",a\r\n"two\nlines",\r\n\r\n日本,b\r\n'
    assert csv(tmp_path, text) == [
        {"id": 'he said "hi", twice', "k": 'he said "hi", twice', "mood": "a"},
        {"id": "two\nlines", "k": "two\nlines"},
        {"id": "日本", "k": "日本", "mood": "b"},
    ]


def test_csv_edges(tmp_path):
    assert csv(tmp_path, "src,to,w\na,1,0.5\nb,2,\n", "Likes") == [
        {"id": "made", "src": "a", "dst": "1", "w": 0.5},
        {"id": "made", "src": "b", "dst": "2"},
    ]
    with pytest.raises(RecordError, match="line 3: edge Likes: 'to' must be the id of a node, a string"):
        csv(tmp_path, "from,to\na,1\nb,\n", "Likes")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("k,i\na,1\nb,x\n", 3, "T.i: expected I32?, found the string 'x'"),
        ("k,i\na,1.5\n", 2, "T.i: expected I32?, found the string '1.5'"),
        ("k,i\na,4294967296\n", 2, "T.i: 4294967296 exceeds Int32 range"),
        ("k,i\na,1_0\n", 2, "T.i: expected I32?, found the string '1_0'"),
        ("k,d\na,1_0\n", 2, "T.d: expected F64?, found the string '1_0'"),
        ("k,d\na,nan\n", 2, "T.d: expected F64?, found the string 'nan'"),
        ("k,d\na,1e999\n", 2, "T.d: the number inf is not a finite number"),
        ("k,ok\na,tRUE\n", 2, "T.ok: expected Bool?, found the string 'tRUE'"),
        ("k,ok\na,1\n", 2, "T.ok: expected Bool?, found the string '1'"),
        ("k,nums\na,1;2\n", 2, "T.nums: expected [I32]?, found the string '1;2'"),
        ("k,vec\na,[1]\n", 2, "T.vec: expected 2 dimensions, got 1"),
        ("k,day\na,2024-13-01\n", 2, "T.day: '2024-13-01' is not a date of the calendar"),
        ("k,i\n,1\n", 2, "T.k is required (String)"),
        # Line numbers are those of the file, also after cells with line breaks.
        ('k,i\n"x\ny",1\n\n"z\n\n",q\n', 5, "T.i: expected I32?, found the string 'q'"),
        ("k,i\na,1\nb\n", 3, "a row has 2 cells, this one has 1"),
        ("k,i\na,1,2\n", 2, "a row has 2 cells, this one has 3"),
        ('k,i\na,"1\n2\n', 3, "not valid CSV: unexpected end of data"),
        ('k,i\na,"1"x\n', 2, "not valid CSV: ',' expected after '\"'"),
    ],
)
def test_a_bad_csv_cell_is_reported_with_its_line(tmp_path, text, line, reason):
    with pytest.raises(RecordError) as caught:
        csv(tmp_path, text)
    assert caught.value.reason.startswith(reason)
    assert caught.value.line == line
    assert caught.value.message.startswith(f"{tmp_path / 'T.csv'}, line {line}: ")


def test_cells_in_the_forms_of_other_tools(tmp_path):
    faults = Faults()
    text = '\ufeff;k;i;d;ok;words\n0;a;1900.0;1.0;TRUE;\n1;"";-3.00;;False;\n'
    assert csv(tmp_path, text, faults=faults) == [
        {"id": "a", "k": "a", "i": 1900, "d": 1.0, "ok": True},
        {"id": "", "k": "", "i": -3, "ok": False},
    ]
    path = tmp_path / "T.csv"
    assert faults.notes == [
        f"{path}: the delimiter is a semicolon",
        f"{path}: the first column has no name and is ignored",
    ]


def test_an_explicit_delimiter(tmp_path):
    path = tmp_path / "T.csv"
    path.write_text("k\tmood\na,b\ta\n")
    (file,) = find_files([str(path)], {}, bool, format=TableFormat("\t"))
    faults = Faults()
    assert rows_of(dict(read_table_file(file, CATALOG, faults))) == [{"id": "a,b", "k": "a,b", "mood": "a"}]
    assert faults.notes == []


@pytest.mark.parametrize("column", [pa.array([7], pa.int64()), pa.array([7], pa.uint8()), pa.array(["7"])])
def test_an_end_may_be_given_as_the_key_of_its_type(column):
    table = pa.table({"from": column, "to": pa.array([8], pa.int32())})
    assert rows_of(read_arrow("B", table, KEYED, Faults())) == [{"id": "made", "src": "7", "dst": "8"}]


@pytest.mark.parametrize(("name", "column"), [("B", pa.array([1.0])), ("B", pa.array([True])), ("C", pa.array([8]))])
def test_an_end_of_another_type_than_the_key_is_refused(name, column):
    table = pa.table({"from": [7], "to": column})
    with pytest.raises(RecordError, match=rf"^line 1: edge {name}: 'to' must be the id of a node, a string$"):
        read_arrow(name, table, KEYED, Faults())


def test_an_integer_end_in_csv(tmp_path):
    path = tmp_path / "B.csv"
    path.write_text("from,to\n7,8.0\n")
    (file,) = find_files([str(path)], {}, bool)
    assert rows_of(dict(read_table_file(file, KEYED, Faults()))) == [{"id": "made", "src": "7", "dst": "8"}]


def test_bad_csv_rows_can_be_collected(tmp_path):
    faults = Faults(collect=True)
    assert csv(tmp_path, "k,i\na,1\nb\nc,x\nd,4\n", faults=faults) == [
        {"id": "a", "k": "a", "i": 1},
        {"id": "d", "k": "d", "i": 4},
    ]
    assert [(error.line, error.rule) for error in faults.found] == [(3, "csv"), (4, "value")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "T.csv' is empty"),
        ("k,nope\na,1\n", "node type 'T' has no property 'nope'"),
        ("k,k\na,b\n", "columns 'k' and 'k' have the same meaning"),
        ("k\n\xff\n".encode("latin-1"), "T.csv, line 2: the text is not UTF-8 (byte 0xff)"),
    ],
)
def test_a_csv_file_without_a_table_is_refused(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        csv(tmp_path, text)
    assert message in caught.value.message


def test_a_csv_file_with_only_a_header_is_an_empty_table(tmp_path):
    assert csv(tmp_path, "k,i\n") == []


def test_a_long_cell_is_read(tmp_path):
    assert csv(tmp_path, f"k\n{'x' * 300_000}\n")[0]["k"] == "x" * 300_000


def test_a_normalized_column_name_matches_the_property(tmp_path):
    assert csv(tmp_path, "K,I\na,1\n") == [{"id": "a", "k": "a", "i": 1}]
    catalog = compile_schema("node Flower {\n name: String @key\n sepal_length_cm: F64?\n}\n")
    table = pa.table({"Name": ["iris"], "Sepal Length (cm)": [5.1]})
    found = rows_of(read_arrow("Flower", table, catalog, Faults()))
    assert found == [{"id": "iris", "name": "iris", "sepal_length_cm": 5.1}]
    with pytest.raises(RecordError, match="columns 'k' and 'K' have the same meaning"):
        csv(tmp_path, "k,K\na,b\n")


def test_an_ambiguous_normalized_column_name_matches_no_property():
    catalog = compile_schema("node P {\n name: String @key\n aB: I32?\n ab: I32?\n}\n")
    assert rows_of(read_arrow("P", pa.table({"name": ["x"], "ab": [1]}), catalog, Faults()))[0]["ab"] == 1
    with pytest.raises(RecordError, match="node type 'P' has no property 'AB'"):
        read_arrow("P", pa.table({"name": ["x"], "AB": [1]}), catalog, Faults())
