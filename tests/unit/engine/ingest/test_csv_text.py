"""The CSV tokenizer and writer: null and empty text, quotes, delimiters, encodings, limits."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.engine.ingest.csv_text import CsvReader, csv_lines, sniff_delimiter
from omnigraph.errors import InputError, RecordError
from omnigraph.table_format import DELIMITERS, check_delimiter


def read(
    text: str | bytes, delimiter: str | None = None
) -> tuple[list[str] | None, list[tuple[int, list[str | None]]]]:
    reader = CsvReader(io.BytesIO(text.encode() if isinstance(text, str) else text), "f.csv", delimiter)
    return reader.header, list(reader)


def test_an_empty_cell_is_null_and_a_quoted_one_is_empty_text():
    assert read('a,b,c\n,"",x\n"",,\n') == (["a", "b", "c"], [(2, [None, "", "x"]), (3, ["", None, None])])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end):
    text = end.join(["a,b", "1,2", '"x\ny",""', "", "3,", '"q""r",4'])
    numbers = [2, 3, 6, 7]
    rows = [["1", "2"], ["x\ny", ""], ["3", None], ['q"r', "4"]]
    assert read(text) == (["a", "b"], list(zip(numbers, rows, strict=True)))


def test_a_byte_order_mark_and_a_quoted_header():
    assert read(b'\xef\xbb\xbf"a","b c"\n1,2\n') == (["a", "b c"], [(2, ["1", "2"])])


def test_a_quote_inside_a_cell_without_quotes_is_text():
    assert read('a,b\n5" pipe,6\n')[1] == [(2, ['5" pipe', "6"])]


def test_an_empty_file_has_no_header():
    assert read("") == (None, [])
    assert read("\n\n") == (None, [])


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [("a,b", ","), ("a;b", ";"), ("a\tb", "\t"), ("a|b", "|"), ("a", ","), ('"a,b";c', ";"), ("a;b,c", ","), ("", ",")],
)
def test_the_delimiter_is_detected_from_the_header(header, delimiter):
    assert sniff_delimiter(header) == delimiter


def test_an_unsupported_delimiter_is_refused():
    assert check_delimiter(r"\t") == "\t"
    assert check_delimiter(None) is None
    with pytest.raises(InputError, match="the delimiter must be one of comma, semicolon, tab, vertical bar"):
        check_delimiter("::")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('a\n"x', 2, "not valid CSV: unexpected end of data"),
        ('a,b\n"x"y,1\n', 2, "not valid CSV: ',' expected after '\"'"),
        ('a,b\n"x\nz"y,1\n', 3, "not valid CSV: ',' expected after '\"'"),
    ],
)
def test_malformed_text_is_refused(text, line, reason):
    with pytest.raises(RecordError) as caught:
        read(text)
    assert (caught.value.line, caught.value.reason) == (line, reason)


def test_text_in_another_encoding_is_reported_with_its_line():
    with pytest.raises(InputError) as caught:
        read("name\nAna\nJosé\n".encode("latin-1"))
    assert caught.value.message == "f.csv, line 3: the text is not UTF-8 (byte 0xe9)"
    assert caught.value.code == "not_utf8"


@pytest.mark.parametrize("text", ["a\n" + "x" * 60 + "\n", 'a\n"' + "x\n" * 40 + '"\n'])
def test_a_record_above_the_size_limit_is_refused(tune, text):
    tune(record_bytes_max=50)
    with pytest.raises(RecordError, match="line 2: the record is larger than the limit of 50 bytes"):
        read(text)


CELLS = (
    st.none() | st.text(alphabet=st.characters(codec="utf-8")) | st.sampled_from(["", '"', ",", "\r\n", "a\rb", ";"])
)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=8), st.sampled_from(sorted(DELIMITERS)))
def test_written_text_is_read_back_unchanged(rows, delimiter):
    text = "".join(f"{line}\n" for line in csv_lines([["a", "b"], *rows], delimiter))
    assert [cells for _, cells in read(text, delimiter)[1]] == rows


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")), min_size=2, max_size=2))
)
def test_results_agree_with_the_csv_module(rows):
    sink = io.StringIO(newline="")
    csv.writer(sink).writerows([["a", "b"], *rows])
    assert [[cell or "" for cell in cells] for _, cells in read(sink.getvalue())[1]] == rows
