"""Places of terms in UTF-16 code units."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.utf16 import utf16_length
from omnigraph.operations.search.search_result import RankerShare, SearchHit, SearchResult


def utf16_places(result: SearchResult) -> SearchResult:
    """Return a result whose places count UTF-16 code units, as JavaScript does."""
    return replace(
        result, hits=tuple(replace(hit, why=tuple(_utf16(each, hit) for each in hit.why)) for hit in result.hits)
    )


def _utf16(share: RankerShare, hit: SearchHit) -> RankerShare:
    text = hit.row.get(share.property) if share.property is not None else None
    if not share.terms or not isinstance(text, str) or text.isascii():
        return share
    terms = tuple(
        replace(
            term, places=tuple((utf16_length(text[:start]), utf16_length(text[:end])) for start, end in term.places)
        )
        for term in share.terms
    )
    return replace(share, terms=terms)
