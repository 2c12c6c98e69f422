"""Places of terms in texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.search.analyzer import analyse
from omnigraph.engine.search.text_places import PLACES_MAX, find_places, surface_words


def test_places_are_those_of_the_words():
    text = "The herons: a Heron, two HERONS' nests"
    found = find_places(text, {"heron", "two"})
    assert [text[start:end] for start, end in found["heron"]] == ["herons", "Heron", "HERONS"]
    assert [text[start:end] for start, end in found["two"]] == ["two"]


def test_bigrams_have_places_of_two_letters():
    text = "見る 夜鷺の川"
    found = find_places(text, {"夜鷺", "鷺の"})
    assert [text[start:end] for start, end in found["夜鷺"]] == ["夜鷺"]
    assert [text[start:end] for start, end in found["鷺の"]] == ["鷺の"]


def test_a_run_whose_length_changes_is_marked_whole():
    text = "a ﾊﾞﾊﾞﾅ b"
    term = analyse(text)[1]
    ((start, end),) = find_places(text, {term})[term][:1]
    assert text[start:end] == "ﾊﾞﾊﾞﾅ"


def test_the_number_of_places_is_limited():
    assert len(find_places("heron " * 500, {"heron"})["heron"]) == PLACES_MAX


def test_words_of_a_text_by_term():
    assert surface_words("Night herons and a heron") == {"night": "Night", "heron": "herons"}


@given(st.text(max_size=60))
def test_the_terms_are_those_of_the_analysis(text):
    assert set(surface_words(text)) == set(analyse(text))
