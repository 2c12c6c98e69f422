"""Graphs of the tests: real ones in temporary folders, with local embeddings."""

from __future__ import annotations

import os
from pathlib import Path

import omnigraph as og

LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "local-hashed-ngrams-v1"}
ENVIRON = {**{name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_")}, **LOCAL}

NOTES = """
node Author {
    name: String @key
}

node Note {
    slug: String @key
    text: String @index
    kind: enum(memo, report)?
    year: I32?
    tags: [String]?
    extra: String?
    meaning: Vector(64)? @embed("text")
    given: Vector(6)?
}

edge Wrote: Author -> Note {
    @unique(src, dst)
}
"""

QUERIES = """
query recall($question: String, $author: String?)
    @description("Notes that answer a question, with their authors")
{
    match {
        $note: Note
        $by wrote $note
        $author is null or $by.name = $author
    }
    return { $note, $by, why() }
    order { rrf(nearest($note.meaning, $question), bm25($note.text, $question)) }
    limit 10
}

query titles($words: String, $limit: I64) @expose(false) {
    match {
        $n: Note
        search($n.text, $words)
    }
    return { id($n) as id, type($n) as type, $n.text, $n.year as year }
    order { bm25($n.text, $words) }
    limit $limit
}

query reach($question: String, $from: String) @expose(false) {
    match {
        $a: Author { name: $from }
        $p: path { $a wrote $note }
    }
    return { $note, $p as p }
    order { nearest($note.meaning, $question) }
    limit 10
}

query write_note($slug: String, $text: String, $year: I32?, $author: String)
    @description("Add a note of an author") @instruction("Write one sentence")
{
    insert Note { slug: $slug, text: $text, year: $year }
    insert Wrote { from: $author, to: $slug }
}
"""

RECORDS = [
    {"type": "Author", "data": {"name": "Ana"}},
    {"type": "Author", "data": {"name": "Bo"}},
    {"type": "Note", "data": {"slug": "n1", "text": "Rivers flood in spring when the snow melts.", "year": 1999}},
    {"type": "Note", "data": {"slug": "n2", "text": "The invoice for the pumps is due in June.", "year": 2004}},
    {"type": "Note", "data": {"slug": "n3", "text": "Flooding of the river damaged the bridge.", "year": 2010}},
    {"type": "Note", "data": {"slug": "n4", "text": "The bridge was painted green.", "kind": "report"}},
    {"edge": "Wrote", "from": "Ana", "to": "n1"},
    {"edge": "Wrote", "from": "Ana", "to": "n2"},
    {"edge": "Wrote", "from": "Bo", "to": "n3"},
    {"edge": "Wrote", "from": "Bo", "to": "n4"},
]


def make_graph(folder: Path) -> og.Graph:
    """Return an empty graph."""
    return og.init(folder / "notes.omni", NOTES, actor="ana", sync=False, environ=ENVIRON)


def open_graph(folder: Path) -> og.Graph:
    """Return an existing graph."""
    return og.open(folder, actor="ana", sync=False, environ=ENVIRON)


def make_notes(folder: Path) -> og.Graph:
    """Return a graph with notes, authors and stored queries."""
    graph = make_graph(folder)
    graph.store_query(QUERIES, message="questions")
    graph.load(RECORDS, mode="merge", message="notes")
    return graph
