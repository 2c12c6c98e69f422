"""Text tables: alignment, widths in terminal cells, control characters."""

from __future__ import annotations

import pytest

from omnigraph.text_table import TableStyle, record_table, table_lines, text_width


def lines(names, columns, style=None, **options):
    return [line.rstrip() for line in table_lines(names, columns, style, **options)]


def test_numbers_are_right_aligned_and_text_is_left_aligned():
    assert lines(["name", "n"], [["a", "bcd"], [1, 1000]]) == [
        "name |    n",
        "-----+-----",
        "a    |    1",
        "bcd  | 1000",
    ]


@pytest.mark.parametrize("column", [[True, False], [None, None], ["1", "2"], [1, "x"]])
def test_only_numbers_are_right_aligned(column):
    assert lines(["a name"], [column])[2].startswith(("true", "null", "1"))


def test_the_widest_columns_are_narrowed_to_fit():
    shown = lines(["a", "b"], [["x" * 50], ["y" * 20]], TableStyle(total_width=40))
    assert {len(line) for line in shown[1:]} == {40}
    assert shown[2] == "x" * 17 + "… | " + "y" * 18 + "…"
    narrow = lines(["a", "b"], [["x" * 50], ["y" * 20]], TableStyle(total_width=3))
    assert narrow[2] == "xxxxx… | yyyyy…", "a column keeps a few characters, however narrow the terminal"


def test_wide_characters_take_two_cells_and_combining_marks_none():
    assert (text_width("日本"), text_width("e\u0301"), text_width("abc")) == (4, 1, 3)
    shown = lines(["k", "v"], [["日本語", "ab"], ["x", "y"]], TableStyle(max_width=4))
    assert shown == ["k    | v", "-----+--", "日…  | x", "ab   | y"]


def test_wrapped_cells_of_wide_characters_stay_within_their_column():
    shown = lines(["k"], [["日本語x"]], TableStyle(max_width=3, cells="wrap"))
    assert shown[2:] == ["日", "本", "語x"]


def test_control_characters_never_reach_the_terminal():
    shown = "\n".join(lines(["v"], [["a\x1b[31mb\nc\x9b"]]))
    assert "\x1b" not in shown
    assert "\x9b" not in shown
    assert "a\\x1b[31mb\\nc\\x9b" in shown


def test_decorations_do_not_change_the_layout():
    style = TableStyle(header=lambda text: f"<{text}>", muted=lambda text: f"[{text}]")
    assert lines(["a", "b"], [[None, "xyz"], [1, None]], style) == [
        "<a    |    b>",
        "[-----+-----]",
        "[null] |    1",
        "xyz  | [null]",
    ]


def test_records():
    assert record_table([]) == "(no rows)"
    assert record_table([{"a": 1, "b": "x"}]) == "a | b\n--+--\n1 | x"
