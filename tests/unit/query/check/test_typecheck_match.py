"""Match blocks: for each rule a query that violates it and the most similar valid query."""

from __future__ import annotations

import pytest

from omnigraph.errors import TypeCheckError
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import compile_schema
from support.queries import CATALOG, NO_CODE, Mistake, diagnostics, mistakes, plan, read, read_plan, steps

# id: (match block with one error, its code, the underlined text, the same block without the error)
BINDINGS = {
    "T1-unknown": ("$p: Persn", "T1", "Persn", "$p: Person"),
    "T1-case": ("$p: PERSON", "T1", "PERSON", "$p: Person"),
    "T1-among-several": ("$p: City|Persn", "T1", "Persn", "$p: City|Person"),
    "T1-edge": ("$p: Knows", "T1", "Knows", "$p: Person"),
    "T1-in-not": (
        "$p: Person not { $p knows $q $q: Persn }", "T1", "Persn", "$p: Person not { $p knows $q $q: Person }",
    ),
    "T1-restated": ("$p: Person $p: Persn", "T1", "Persn", "$p: Person $p: Person"),
    "T2-unknown": ('$p: Person { nme: "x" }', "T2", "nme", '$p: Person { name: "x" }'),
    "T2-id": ('$p: Person { id: "x" }', "T2", "id", '$p: Person { name: "x" }'),
    "T2-case": ('$p: Person { nAme: "x" }', "T2", "nAme", '$p: Person { name: "x" }'),
    "T2-restated": (
        '$p: Person $p: Person { nme: "x" }', "T2", "nme", '$p: Person $p: Person { name: "x" }',
    ),
    "T3-string-for-number": ('$p: Person { age: "4" }', "T3", '"4"', "$p: Person { age: 4 }"),
    "T3-number-for-string": ("$p: Person { name: 4 }", "T3", "4", '$p: Person { name: "4" }'),
    "T3-string-for-date": (
        '$p: Person { born: "2000-01-01" }', "T3", '"2000-01-01"', '$p: Person { born: date("2000-01-01") }',
    ),
    "T3-datetime-for-date": (
        '$p: Person { born: datetime("2000-01-01") }',
        "T3",
        'datetime("2000-01-01")',
        '$p: Person { seen: datetime("2000-01-01") }',
    ),
    "T3-date-for-datetime": (
        '$p: Person { seen: date("2000-01-01") }',
        "T3",
        'date("2000-01-01")',
        '$p: Person { born: date("2000-01-01") }',
    ),
    "T3-number-for-bool": ("$p: Person { active: 1 }", "T3", "1", "$p: Person { active: true }"),
    "T3-bool-for-string": ("$p: Person { bio: true }", "T3", "true", '$p: Person { bio: "true" }'),
    "T3-enum-non-member": ('$p: Person { mood: "happy" }', "T3", '"happy"', '$p: Person { mood: "calm" }'),
    "T3-wrong-item": ("$p: Person { nicknames: 1 }", "T3", "1", '$p: Person { nicknames: "1" }'),
    "T3-list-for-list": (
        '$p: Person { nicknames: ["Al"] }', "T3", '["Al"]', '$p: Person { nicknames: "Al" }',
    ),
    "T3-list-for-scalar": ('$p: Person { name: ["Al"] }', "T3", '["Al"]', '$p: Person { name: "Al" }'),
    "T3-blob": ('$p: Person { photo: "x" }', "T3", 'photo: "x"', '$p: Person { bio: "x" }'),
    "T3-blob-param": ("$p: Person { photo: $blob }", "T3", "photo: $blob", "$p: Person { bio: $text }"),
    "T3-vector": ("$p: Person { face: [1, 2, 3] }", "T3", "[1, 2, 3]", "$p: Person { marks: 1 }"),
    "T3-vector-length": ("$p: Person { face: [1, 2] }", "T3", "[1, 2]", "$p: Person { marks: 1 }"),
    "T3-text-for-vector": ('$p: Person { face: "x" }', "T3", '"x"', '$p: Person { bio: "x" }'),
    "T7-param": ("$p: Person { age: $text }", "T7", "$text", "$p: Person { age: $count }"),
    "T7-date-param": ("$p: Person { born: $text }", "T7", "$text", "$p: Person { born: $day }"),
    "T7-date-for-datetime": ("$p: Person { seen: $day }", "T7", "$day", "$p: Person { seen: $moment }"),
    "T7-list-param-for-list": (
        "$p: Person { nicknames: $texts }", "T7", "$texts", "$p: Person { nicknames: $text }",
    ),
    "T7-list-param-for-scalar": ("$p: Person { name: $texts }", "T7", "$texts", "$p: Person { name: $text }"),
    "T7-item-param": ("$p: Person { nicknames: $count }", "T7", "$count", "$p: Person { marks: $count }"),
    "T7-vector-param": ("$p: Person { face: $vector }", "T7", "$vector", "$p: Person { marks: $count }"),
    "T7-blob-param": ("$p: Person { bio: $blob }", "T7", "$blob", "$p: Person { bio: $text }"),
    "T7-now-for-date": ("$p: Person { born: now() }", "T7", "now()", "$p: Person { seen: now() }"),
    "T7-now-for-text": ("$p: Person { bio: now() }", "T7", "now()", "$p: Person { seen: now() }"),
    "no-code-other-type": ("$p: Person $p: City", NO_CODE, "$p: City", "$p: Person $p: Person"),
    "no-code-other-type-than-hop": (
        "$p knows $q not { $q: City }", NO_CODE, "$q: City", "$p knows $q not { $q: Person }",
    ),
    "no-code-not-a-param": (
        "$p: Person { name: $txt }", NO_CODE, "$txt", "$p: Person { name: $text }",
    ),
    "no-code-a-variable-is-no-param": (
        "$p: Person $q: Person { name: $p }", NO_CODE, "$p", "$p: Person $q: Person { name: $text }",
    ),
    "no-code-anonymous-pattern": (
        '$_: Person { name: "x" }', NO_CODE, '$_: Person { name: "x" }', '$p: Person { name: "x" }',
    ),
}  # fmt: skip

HOPS = {
    "T4-unknown": ("$p: Person $p likes $q", "T4", "likes", "$p: Person $p knows $q"),
    "T4-contains-is-an-edge-word": ("$p: Person $p contains $q", "T4", "contains", "$p: Person $p knows $q"),
    "T4-in-not": ("$p: Person not { $p likes $_ }", "T4", "likes", "$p: Person not { $p knows $_ }"),
    "T5-left": ("$c: City $c worksAt $x", "T5", "$c", "$c: Company $c worksAt $x"),
    "T5-right": ("$c: City $x worksAt $c", "T5", "$c", "$c: Company $x worksAt $c"),
    "T5-right-of-known-left": (
        "$p: Person $c: City $p worksAt $c", "T5", "$c", "$p: Person $c: Company $p worksAt $c",
    ),
    "T5-both-at-one-side": (
        "$p: Person $q: Person $p worksAt $q", "T5", "$q", "$p: Person $q: Person $p knows $q",
    ),
    "T5-left-of-known-right": (
        "$c: City $p: Company $c worksAt $p", "T5", "$c", "$c: City $p: Company $p basedIn $c",
    ),
    "T5-both-wrong": ("$c: City $d: City $c worksAt $d", "T5", "$c", "$c: City $d: City $c twins $d"),
    "T5-same-variable": ("$p: Person $p worksAt $p", "T5", "$p", "$p: Person $p knows $p"),
    "T5-same-new-variable": ("$x worksAt $x", "T5", "$x", "$x knows $x"),
    "T5-through-a-hop": ("$p: Person $p worksAt $c $c knows $q", "T5", "$c", "$p: Person $p knows $c $c knows $q"),
    "T5-through-a-later-hop": ("$c knows $q $c: City", "T5", "$c", "$c knows $q $c: Person"),
    "T5-in-not": (
        "$c: City not { $c worksAt $_ }", "T5", "$c", "$c: Company not { $c worksAt $_ }",
    ),
    "T15-min-0": ("$p: Person $p knows{0,2} $q", "T15", "{0,2}", "$p: Person $p knows{1,2} $q"),
    "T15-min-and-max-0": ("$p: Person $p knows{0,0} $q", "T15", "{0,0}", "$p: Person $p knows{1,1} $q"),
    "T15-max-below-min": ("$p: Person $p knows{3,2} $q", "T15", "{3,2}", "$p: Person $p knows{2,2} $q"),
    "T15-no-max": ("$p: Person $p knows{1,} $q", "T15", "{1,}", "$p: Person $p knows{1,9} $q"),
    "T15-no-max-in-not": (
        "$p: Person not { $p knows{2,} $_ }", "T15", "{2,}", "$p: Person not { $p knows{2,3} $_ }",
    ),
    "T22-two-types": ("$p: Person $p <worksAt> $c", "T22", "worksAt", "$p: Person $p <knows> $c"),
    "T22-in-not": ("$p: Person not { $p <worksAt> $_ }", "T22", "worksAt", "$p: Person not { $p <knows> $_ }"),
    "T23-bounds": ("$p: Person $p $w:knows{1,2} $q", "T23", "{1,2}", "$p: Person $p $_:knows{1,2} $q"),
    "T23-bounds-of-one": ("$p: Person $p $w:knows{1,1} $q", "T23", "{1,1}", "$p: Person $p $w:knows $q"),
    "T23-reused-edge-variable": (
        "$p $w:knows $q $q $w:knows $r", "T23", "$w", "$p $w:knows $q $q $v:knows $r",
    ),
    "T23-reused-binding": (
        "$p: Person $c: City $p $c:knows $q", "T23", "$c", "$p: Person $c: City $p $w:knows $q",
    ),
    "T23-reused-outer-node": (
        "$p: Person $c: City not { $p $c:knows $_ }", "T23", "$c", "$p: Person $c: City not { $p $w:knows $_ }",
    ),
    "T23-reused-outer-edge": (
        "$p $w:knows $q not { $q $w:knows $p }", "T23", "$w", "$p $w:knows $q not { $q $v:knows $p }",
    ),
    "T23-is-the-left-end": ("$p: Person $p $p:knows $q", "T23", "$p", "$p: Person $p $w:knows $q"),
    "T23-is-the-right-end": ("$p: Person $p $q:knows $q", "T23", "$q", "$p: Person $p $w:knows $q"),
    "T23-rebound-as-node": ("$p $w:knows $q $w: Person", "T23", "$w", "$p $w:knows $q $q: Person"),
    "T23-rebound-as-node-in-not": (
        "$p $w:knows $q not { $w: Person }", "T23", "$w: Person", "$p $w:knows $q not { $q: Person }",
    ),
    "T23-as-left-end": ("$p $w:knows $q $w knows $r", "T23", "$w", "$p $w:knows $q $q knows $r"),
    "T23-as-right-end": ("$p $w:knows $q $r knows $w", "T23", "$w", "$p $w:knows $q $r knows $q"),
    "T23-as-end-before": ("$w knows $r $p $w:knows $q", "T23", "$w", "$q knows $r $p $w:knows $q"),
    "T23-as-end-in-not": (
        "$p $w:knows $q not { $p knows $w }", "T23", "$w", "$p $w:knows $q not { $p knows $q }",
    ),
    "T23-bare": ("$p $w:knows $q $w = 1", "T23", "$w", '$p $w:knows $q $w.remark = "1"'),
    "T23-search": (
        '$p $w:knows $q search($w.remark, "x")', "T23", "$w.remark", '$p $w:knows $q search($q.bio, "x")',
    ),
    "T23-match_text": (
        '$p $w:knows $q match_text($w.remark, "x")', "T23", "$w.remark", '$p $w:knows $q match_text($q.bio, "x")',
    ),
    "T23-fuzzy": ('$p $w:knows $q fuzzy($w.remark, "x")', "T23", "$w.remark", '$p $w:knows $q fuzzy($q.bio, "x")'),
}  # fmt: skip

CONDITIONS = {
    "T6-unbound": ('$p: Person $q.name = "x"', "T6", "$q", '$p: Person $p.name = "x"'),
    "T6-unbound-on-the-right": ('$p: Person "x" = $q.name', "T6", "$q", '$p: Person "x" = $p.name'),
    "T6-introduced-below": ('$p.name = "x" $p: Person', "T6", "$p", '$p: Person $p.name = "x"'),
    "T6-hop-below": ('$q.name = "x" $p knows $q', "T6", "$q", '$p knows $q $q.name = "x"'),
    "T6-edge-below": ('$w.remark = "x" $p $w:knows $q', "T6", "$w", '$p $w:knows $q $w.remark = "x"'),
    "T6-anonymous": ('$p knows $_ $_.name = "x"', "T6", "$_", '$p knows $q $q.name = "x"'),
    "T6-anonymous-edge": ('$p $_:knows $q $_.remark = "x"', "T6", "$_", '$p $w:knows $q $w.remark = "x"'),
    "T6-property": ('$p: Person $p.nme = "x"', "T6", "nme", '$p: Person $p.name = "x"'),
    "T6-property-of-other-type": ("$p: Person $p.founded = $day", "T6", "founded", "$p: Person $p.born = $day"),
    "T6-property-of-edge": ('$p $w:knows $q $w.note = "x"', "T6", "note", '$p $w:knows $q $w.remark = "x"'),
    "T6-id": ('$p: Person $p.id = "x"', "T6", "id", '$p: Person $p.name = "x"'),
    "T6-edge-id": ('$p $w:knows $q $w.id = "x"', "T6", "id", '$p $w:knows $q $w.remark = "x"'),
    "T6-edge-src": ('$p $w:knows $q $w.src = "x"', "T6", "src", '$p $w:knows $q $p.name = "x"'),
    "T6-edge-dst": ('$p $w:knows $q $w.dst = "x"', "T6", "dst", '$p $w:knows $q $q.name = "x"'),
    "T6-param-has-no-properties": ('$p: Person $text.name = "x"', "T6", "$text", '$p: Person $text = "x"'),
    "T6-search": ('$p: Person search($q.bio, "x")', "T6", "$q", '$p: Person search($p.bio, "x")'),
    "T6-search-property": ('$p: Person search($p.boi, "x")', "T6", "boi", '$p: Person search($p.bio, "x")'),
    "T7-string-number": ("$p: Person $p.name = 4", "T7", "$p.name = 4", "$p: Person $p.age = 4"),
    "T7-string-date": (
        '$p: Person $p.born >= "2000-01-01"',
        "T7",
        '$p.born >= "2000-01-01"',
        '$p: Person $p.born >= date("2000-01-01")',
    ),
    "T7-date-datetime": ("$p: Person $p.born < $p.seen", "T7", "$p.born < $p.seen", "$p: Person $p.born < $day"),
    "T7-now-date": ("$p: Person $p.born < now()", "T7", "$p.born < now()", "$p: Person $p.seen < now()"),
    "T7-now-string": ("$p: Person now() = $p.name", "T7", "now() = $p.name", "$p: Person now() = $p.seen"),
    "T7-list-list": (
        "$p: Person $p.nicknames = $texts", "T7", "$p.nicknames = $texts", "$p: Person $p.nicknames contains $text",
    ),
    "T7-list-scalar": (
        '$p: Person $p.nicknames = "x"', "T7", '$p.nicknames = "x"', '$p: Person $p.nicknames contains "x"',
    ),
    "T7-scalar-list": (
        '$p: Person $p.name = ["x"]', "T7", '$p.name = ["x"]', '$p: Person ["x"] contains $p.name',
    ),
    "T7-vector": ("$p: Person $p.face = $vector", "T7", "$p.face = $vector", "$p: Person $p.age = $count"),
    "T7-vector-list": ("$p: Person $p.face = [1, 2, 3]", "T7", "$p.face = [1, 2, 3]", "$p: Person $p.age = 1"),
    "T7-blob": ("$p: Person $p.photo = $p.photo", "T7", "$p.photo = $p.photo", "$p: Person $p.bio = $p.bio"),
    "T7-blob-string": ('$p: Person $p.photo = "x"', "T7", '$p.photo = "x"', '$p: Person $p.bio = "x"'),
    "T7-node": ("$p knows $q $p = $q", "T7", "$p", "$p knows $q $p.name = $q.name"),
    "T7-node-value": ('$p: Person "x" = $p', "T7", "$p", '$p: Person "x" = $p.name'),
    "T7-contains-number": ("$p: Person $p.age contains 1", "T7", "$p.age contains 1", "$p: Person $p.marks contains 1"),
    "T7-contains-wrong-item": (
        '$p: Person $p.marks contains "1"', "T7", '$p.marks contains "1"', "$p: Person $p.marks contains 1",
    ),
    "T7-contains-list": (
        "$p: Person $p.nicknames contains $texts",
        "T7",
        "$p.nicknames contains $texts",
        "$p: Person $p.nicknames contains $text",
    ),
    "T7-contains-part-of-number": (
        "$p: Person $p.name contains 1", "T7", "$p.name contains 1", '$p: Person $p.name contains "1"',
    ),
    "T7-contains-date": (
        "$p: Person $p.born contains $day", "T7", "$p.born contains $day", "$p: Person $p.born = $day",
    ),
    "T7-contains-vector": (
        "$p: Person $p.face contains 1", "T7", "$p.face contains 1", "$p: Person $p.marks contains 1",
    ),
    "T7-contains-node": (
        "$p: Person $p.nicknames contains $p", "T7", "$p", "$p: Person $p.nicknames contains $p.name",
    ),
    "T7-starts_with-number": (
        "$p: Person $p.age starts_with 1", "T7", "$p.age starts_with 1", '$p: Person $p.name starts_with "1"',
    ),
    "T7-starts_with-list": (
        "$p: Person $p.nicknames starts_with $text",
        "T7",
        "$p.nicknames starts_with $text",
        "$p: Person $p.name starts_with $text",
    ),
    "T7-in-not": (
        "$p: Person not { $p.name = 4 }", "T7", "$p.name = 4", "$p: Person not { $p.age = 4 }",
    ),
    "T9-no-outer-variable": (
        "$p: Person not { $q: City }", "T9", "not { $q: City }", "$p: Person not { $p: Person }",
    ),
    "T9-no-outer-in-hop": (
        "$p: Person not { $a knows $b }", "T9", "not { $a knows $b }", "$p: Person not { $p knows $b }",
    ),
    "T9-no-outer-in-filter": (
        "$p: Person not { 1 = 1 }", "T9", "not { 1 = 1 }", "$p: Person not { $p.age = 1 }",
    ),
    "T9-only-a-parameter": (
        '$p: Person not { $text = "x" }', "T9", 'not { $text = "x" }', "$p: Person not { $text = $p.name }",
    ),
    "T9-outer-comes-later": (
        "$p: Person not { $q: Person } $q: Person",
        "T9",
        "not { $q: Person }",
        "$p: Person $q: Person not { $q: Person }",
    ),
    "T9-nested": (
        "$p: Person not { $p knows $q not { $a knows $b } }",
        "T9",
        "not { $a knows $b }",
        "$p: Person not { $p knows $q not { $q knows $b } }",
    ),
    "T19-search-of-number": ('$p: Person search($p.age, "x")', "T19", "$p.age", '$p: Person search($p.bio, "x")'),
    "T19-search-of-list": (
        '$p: Person search($p.nicknames, "x")', "T19", "$p.nicknames", '$p: Person search($p.bio, "x")',
    ),
    "T19-search-of-node": ('$p: Person search($p, "x")', "T19", "$p", '$p: Person search($p.bio, "x")'),
    "T19-search-of-text": ('$p: Person search("a", "x")', "T19", '"a"', '$p: Person search($p.bio, "x")'),
    "T19-search-of-param": ('$p: Person search($text, "x")', "T19", "$text", "$p: Person search($p.bio, $text)"),
    "T19-search-for-number": ("$p: Person search($p.bio, 1)", "T19", "1", '$p: Person search($p.bio, "1")'),
    "T19-search-for-property": (
        "$p: Person search($p.bio, $p.name)", "T19", "$p.name", "$p: Person search($p.bio, $text)",
    ),
    "T19-search-for-list": (
        "$p: Person search($p.bio, $texts)", "T19", "$texts", "$p: Person search($p.bio, $maybe)",
    ),
    "T19-fuzzy-of-number": ('$p: Person fuzzy($p.age, "x")', "T19", "$p.age", '$p: Person fuzzy($p.bio, "x")'),
    "T19-fuzzy-for-number": ("$p: Person fuzzy($p.bio, 1)", "T19", "1", '$p: Person fuzzy($p.bio, "1")'),
    "T19-fuzzy-decimal-edits": (
        '$p: Person fuzzy($p.bio, "x", 1.5)', "T19", "1.5", '$p: Person fuzzy($p.bio, "x", 0)',
    ),
    "T19-fuzzy-text-edits": ('$p: Person fuzzy($p.bio, "x", "1")', "T19", '"1"', '$p: Person fuzzy($p.bio, "x", 1)'),
    "T19-fuzzy-float-param": (
        '$p: Person fuzzy($p.bio, "x", $ratio)', "T19", "$ratio", '$p: Person fuzzy($p.bio, "x", $count)',
    ),
    "T19-fuzzy-property-edits": (
        '$p: Person fuzzy($p.bio, "x", $p.age)', "T19", "$p.age", '$p: Person fuzzy($p.bio, "x", $count)',
    ),
    "T20-match_text-of-number": (
        '$p: Person match_text($p.age, "x")', "T20", "$p.age", '$p: Person match_text($p.bio, "x")',
    ),
    "T20-match_text-of-node": ('$p: Person match_text($p, "x")', "T20", "$p", '$p: Person match_text($p.bio, "x")'),
    "T20-match_text-for-number": (
        "$p: Person match_text($p.bio, 1)", "T20", "1", "$p: Person match_text($p.bio, $text)",
    ),
    "no-code-bare-unbound": ('$p: Person $q = "x"', NO_CODE, "$q", '$p: Person $p.name = "x"'),
    "no-code-bare-anonymous": ('$p knows $_ $_ = "x"', NO_CODE, "$_", '$p knows $q $q.name = "x"'),
    "no-code-mixed-list": ('$p: Person [1, "a"] contains 1', NO_CODE, '"a"', "$p: Person [1, 2] contains 1"),
    "no-code-mixed-dates": (
        '$p: Person [date("2000-01-01"), datetime("2000-01-01")] contains $day',
        NO_CODE,
        'datetime("2000-01-01")',
        '$p: Person [date("2000-01-01"), date("2000-01-02")] contains $day',
    ),
    "T39-nested-list": ("$p: Person [[1]] contains 1", "T39", "[[1]]", "$p: Person [1] contains 1"),
    "T39-object": ("$p: Person $p.age = { a: 1 }", "T39", "{ a: 1 }", "$p: Person $p.age = 1"),
    "T25-number": ("$p: Person $p.age or $flag", "T25", "$p.age", "$p: Person $p.active or $flag"),
    "T25-node": ("$p: Person not $p", "T25", "$p", "$p: Person not $p.active"),
    "T25-null": ("$p: Person not null", "T25", "null", "$p: Person not $p.active"),
    "T26-text": ("$p: Person $p.name + 1 = 2", "T26", "$p.name + 1", "$p: Person $p.age + 1 = 2"),
    "T26-date": ("$p: Person $p.born - 1 = $day", "T26", "$p.born - 1", "$p: Person $p.age - 1 = 2"),
    "T26-remainder": ("$p: Person $p.height % 2 = 1", "T26", "$p.height % 2", "$p: Person $p.age % 2 = 1"),
    "T26-sign": ("$p: Person $p.age = -$text", "T26", "-$text", "$p: Person $p.age = -$count"),
    "T26-lower": ('$p: Person lower($p.age) = "a"', "T26", "$p.age", '$p: Person lower($p.name) = "a"'),
    "T26-length": ("$p: Person length($p.age) = 1", "T26", "$p.age", "$p: Person length($p.marks) = 1"),
    "T26-coalesce": (
        "$p: Person coalesce($p.age, $text) = 1", "T26", "coalesce($p.age, $text)",
        "$p: Person coalesce($p.age, $ratio) = 1",
    ),
    "T26-coalesce-wide": (
        "$p: Person coalesce($p.wealth, -1) = 1", "T26", "coalesce($p.wealth, -1)",
        "$p: Person coalesce($p.wealth, 1) = 1",
    ),
    "T27-pattern": ('$p: Person $p.name matches "("', "T27", '"("', '$p: Person $p.name matches "()"'),
    "T27-property": ("$p: Person $p.name matches $p.bio", "T27", "$p.bio", "$p: Person $p.name matches $text"),
    "T28-equal": ("$p: Person $p.name = null", "T28", "null", "$p: Person $p.name = $maybe"),
    "T28-in": ("$p: Person null in $texts", "T28", "null", '$p: Person "a" in $texts'),
    "T7-in": ("$p: Person $p.age in $texts", "T7", "$p.age in $texts", "$p: Person $p.name in $texts"),
    "T7-in-items": ("$p: Person $p.age in [$count, $text]", "T7", "$p.age in [$count, $text]",
                    "$p: Person $p.age in [$count, $ratio]"),
    "T7-matches": ('$p: Person $p.age matches "1"', "T7", '$p.age matches "1"', '$p: Person $p.name matches "1"'),
    "T7-icontains": ('$p: Person $p.age icontains "1"', "T7", '$p.age icontains "1"',
                     '$p: Person $p.name icontains "1"'),
    "T7-node-plus": ("$p: Person $p + 1 = 2", "T7", "$p", "$p: Person $p.age + 1 = 2"),
    "T24-blob-null": ("$p: Person $p.photo is null", "T24", "$p.photo", "$p: Person $p.face is null"),
    "no-code-word": ("$p: Person $p.name = ann", NO_CODE, "ann", '$p: Person $p.name = "ann"'),
    "no-code-nearest": (
        "$p: Person nearest($p.face, $vector) < 0.5",
        NO_CODE,
        "nearest($p.face, $vector)",
        "$p: Person $p.height < 0.5",
    ),
    "no-code-bm25": (
        '$p: Person bm25($p.bio, "x") > 1', NO_CODE, 'bm25($p.bio, "x")', '$p: Person search($p.bio, "x") = true',
    ),
    "no-code-rrf": (
        '$p: Person rrf(bm25($p.bio, "x"), bm25($p.name, "x")) > 1',
        NO_CODE,
        'rrf(bm25($p.bio, "x"), bm25($p.name, "x"))',
        "$p: Person $p.age > 1",
    ),
    "no-code-aggregate": ("$p: Person count($p) > 1", NO_CODE, "count($p)", "$p: Person $p.age > 1"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "code", "at", "good"),
    [pytest.param(*case, id=id_) for cases in (BINDINGS, HOPS, CONDITIONS) for id_, case in cases.items()],
)
def test_rule_and_similar_valid_query(bad, code, at, good):
    assert mistakes(read(bad)) == [(code, at)]
    plan(read(good))


# -- parameters --------------------------------------------------------------------------------------

PARAM_DECLARATIONS = {
    "reserved": ("$__nanograph_now: DateTime", "$__nanograph_now", "$nanograph_now: DateTime"),
    "unknown-type": ("$a: Text", "Text", "$a: String"),
    "a-node-type": ("$a: Person", "Person", "$a: String"),
    "twice": ("$a: String, $a: String", "$a", "$a: String, $b: String"),
    "twice-with-another-type": ("$a: String, $a: I64", "$a", "$a: String, $b: I64"),
    "no-dimension": ("$a: Vector(0)", "$a: Vector(0)", "$a: Vector(1)"),
    "too-many-dimensions": ("$a: Vector(2147483648)", "$a: Vector(2147483648)", "$a: Vector(2147483647)"),
    "list-of-blob": ("$a: [Blob]", "Blob", "$a: Blob"),
    "list-of-vector": ("$a: [Vector]", "Vector", "$a: [F32]"),
}


@pytest.mark.parametrize(("bad", "at", "good"), PARAM_DECLARATIONS.values(), ids=PARAM_DECLARATIONS)
def test_invalid_parameter_declaration(bad, at, good):
    body = "{ match { $p: Person } return { $p.name } }"
    assert mistakes(f"query q({bad}) {body}") == [(NO_CODE, at)]
    plan(f"query q({good}) {body}")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("$a: Text", "a parameter cannot be of type 'Text'"),
        ("$a: [Text]", "a parameter cannot be of type 'Text'"),
        ("$a: [Blob]", "a list parameter cannot hold Blob"),
        ("$a: [Vector]", "a list parameter cannot hold Vector"),
        ("$a: Vector(0)", "a vector has 1 to 2147483647 dimensions"),
        ("$a: String, $a: I64", "parameter '$a' is declared twice"),
        ("$__nanograph_now: DateTime", "'$__nanograph_now' is reserved"),
    ],
)
def test_message_for_a_parameter(bad, message):
    (found,) = diagnostics(f"query q({bad}) {{ match {{ $p: Person }} return {{ 1 }} }}")
    assert found.message == message


@pytest.mark.parametrize(
    ("bad", "hint"),
    [
        ("$a: Sting", "did you mean 'String'?"),
        (
            "$a: Kilo",
            "the types are String, Blob, Bool, I32, I64, U32, U64, F32, F64, Date, DateTime, Uuid, Vector(n) "
            "and lists of scalars",
        ),
        ("$a: [Blob]", "it holds plain scalars"),
        ("$__nanograph_now: DateTime", "write now() where it is needed"),
    ],
)
def test_hint_for_a_parameter(bad, hint):
    (found,) = diagnostics(f"query q({bad}) {{ match {{ $p: Person }} return {{ 1 }} }}")
    assert found.hint == hint


def test_duplicate_declaration_underlines_the_second():
    (found,) = diagnostics("query q($a: String, $a: I64) {\n match { $p: Person { name: $a } } return { 1 } }")
    assert (found.line, found.column) == (1, 21)


# -- orientation -------------------------------------------------------------------------------------

ORIENTATIONS = {
    "left-is-source": (
        "$p: Person $p worksAt $c",
        ["scan    $p: Person", "expand  $p -WorksAt-> $c: Company"],
    ),
    "left-is-destination": (
        "$c: Company $c worksAt $p",
        ["scan    $c: Company", "expand  $c <-WorksAt- $p: Person"],
    ),
    "right-is-destination": (
        "$c: Company $p worksAt $c",
        ["scan    $c: Company", "expand  $c <-WorksAt- $p: Person"],
    ),
    "right-is-source": (
        "$p: Person $c worksAt $p",
        ["scan    $p: Person", "expand  $p -WorksAt-> $c: Company"],
    ),
    "neither": (
        "$a worksAt $b",
        ["scan    $a: Person", "expand  $a -WorksAt-> $b: Company"],
    ),
    "both": (
        "$p: Person $c: Company $c worksAt $p",
        ["scan    $p: Person", "expand  $p -WorksAt-> $c: Company"],
    ),
    "one-type-left-bound": (
        "$p: Person $p knows $q",
        ["scan    $p: Person", "expand  $p -Knows-> $q: Person"],
    ),
    "one-type-right-bound": (
        "$q: Person $p knows $q",
        ["scan    $q: Person", "expand  $q <-Knows- $p: Person"],
    ),
    "one-type-neither": (
        "$p knows $q",
        ["scan    $p: Person", "expand  $p -Knows-> $q: Person"],
    ),
    "undirected-left-bound": (
        "$p: Person $p <knows> $q",
        ["scan    $p: Person", "expand  $p <-Knows-> $q: Person"],
    ),
    "undirected-right-bound": (
        "$q: Person $p <knows> $q",
        ["scan    $q: Person", "expand  $q <-Knows-> $p: Person"],
    ),
    "with-an-edge-variable": (
        "$c: Company $c $w:worksAt $p",
        ["scan    $c: Company", "expand  $c <-$w:WorksAt- $p: Person"],
    ),
    "type-known-through-another-hop": (
        "$c basedIn $t $c worksAt $p",
        ["scan    $c: Company", "expand  $c -BasedIn-> $t: City", "expand  $c <-WorksAt- $p: Person"],
    ),
}


@pytest.mark.parametrize(("match", "expected"), ORIENTATIONS.values(), ids=ORIENTATIONS)
def test_orientation(match, expected):
    assert [line.strip() for line in steps(match)] == expected


def test_a_hop_without_known_end_is_forward_even_if_a_later_hop_disagrees():
    assert mistakes(read("$c worksAt $p $c basedIn $t")) == [("T5", "$c")]


IN_NOT = {
    "left-is-source": ("$p: Person", "$p worksAt $c", "expand  $p -WorksAt-> $c: Company"),
    "left-is-destination": ("$c: Company", "$c worksAt $p", "expand  $c <-WorksAt- $p: Person"),
    "right-is-destination": ("$c: Company", "$p worksAt $c", "expand  $c <-WorksAt- $p: Person"),
    "right-is-source": ("$p: Person", "$c worksAt $p", "expand  $p -WorksAt-> $c: Company"),
    "anonymous-destination": ("$c: Company", "$c worksAt $_", "expand  $c <-WorksAt- $_: Person"),
    "anonymous-source": ("$c: Company", "$_ worksAt $c", "expand  $c <-WorksAt- $_: Person"),
    "one-type-left-bound": ("$p: Person", "$p knows $q", "expand  $p -Knows-> $q: Person"),
    "one-type-right-bound": ("$p: Person", "$q knows $p", "expand  $p <-Knows- $q: Person"),
    "undirected": ("$p: Person", "$p <knows> $_", "expand  $p <-Knows-> $_: Person"),
    "both-bound": ("$c: Company $p: Person", "$c worksAt $p", "check   $c <-WorksAt- $p"),
    "both-bound-one-type": ("$p: Person $q: Person", "$q knows $p", "check   $q -Knows-> $p"),
    "bounds": ("$p: Person", "$p knows{2,3} $q", "expand  $p -Knows{2,3}-> $q: Person"),
    "edge-variable": ("$c: Company", "$c $w:worksAt $_", "expand  $c <-$w:WorksAt- $_: Person"),
}


@pytest.mark.parametrize(("outer", "inner", "expected"), IN_NOT.values(), ids=IN_NOT)
def test_orientation_in_not(outer, inner, expected):
    assert steps(f"{outer} not {{ {inner} }}")[-1].strip() == expected


def test_neither_side_bound_in_not_scans_the_source():
    assert [line.strip() for line in steps("$p: Person not { $a worksAt $b  $b.name = $p.name }")[1:]] == [
        "without any match, for each $p:",
        "scan    $a: Person",
        "expand  $a -WorksAt-> $b: Company",
        "filter  $b.name = $p.name",
    ]


# -- order, repeated bindings, scopes ----------------------------------------------------------------


def test_edge_names_are_case_insensitive():
    assert steps("$p: Person $p worksat $c") == steps("$p: Person $p worksAt $c")
    assert steps("$p: Person $p wORKSAT $c") == steps("$p: Person $p worksAt $c")


@pytest.mark.parametrize(
    "clauses",
    [
        "$p: Person  $c: Company  $p worksAt $c  $c basedIn $t",
        "$p: Person  $c: Company  $c basedIn $t  $p worksAt $c",
        "$p: Person  $c basedIn $t  $c: Company  $p worksAt $c",
        "$c basedIn $t  $p worksAt $c  $p: Person  $c: Company",
        "$p worksAt $c  $c: Company  $c basedIn $t  $p: Person",
    ],
)
def test_the_order_of_bindings_and_hops_does_not_change_the_variables(clauses):
    columns = read_plan(clauses, "$p, $c, $t").columns
    assert [getattr(column.expr, "type_name", None) for column in columns] == ["Person", "Company", "City"]


def test_a_repeated_binding_adds_its_pattern_and_no_scan():
    assert steps('$p: Person { age: 4 } $p: Person { mood: "calm" }') == steps('$p: Person { age: 4, mood: "calm" }')


def test_a_pattern_can_follow_the_hop_that_introduces_its_variable():
    assert [line.strip() for line in steps('$p: Person $p knows $q $q: Person { name: "x" }')] == [
        "scan    $p: Person",
        'expand  $p -Knows-> $q: Person where $q.name = "x"',
    ]


def test_a_property_can_be_matched_twice():
    assert steps('$p: Person { nicknames: "a", nicknames: "b" }') == [
        '  scan    $p: Person where $p.nicknames contains "a" and $p.nicknames contains "b"'
    ]


def test_a_repeated_binding_in_not_is_the_outer_variable():
    assert [line.strip() for line in steps("$p: Person not { $p: Person { age: 4 } }")] == [
        "scan    $p: Person",
        "without any match, for each $p:",
        "filter  $p.age = 4",
    ]


def test_each_anonymous_variable_is_a_different_node():
    assert [line.strip() for line in steps("$p: Person $p knows $_ $_ knows $p $p worksAt $_")] == [
        "scan    $p: Person",
        "expand  $p -Knows-> $_: Person",
        "expand  $p <-Knows- $_: Person",
        "expand  $p -WorksAt-> $_: Company",
    ]


def test_an_anonymous_edge_variable_binds_nothing():
    assert steps("$p: Person $p $_:knows $q $p $_:knows $r") == steps("$p: Person $p knows $q $p knows $r")


def test_edge_variable_properties_are_typed():
    columns = read_plan("$p $w:knows $q", "$w.since, $w.remark").columns
    assert [str(column.type) for column in columns] == ["Date?", "String?"]


def test_an_edge_variable_is_allowed_on_an_undirected_hop():
    assert steps("$p: Person $p $w:<knows> $q")[-1] == "  expand  $p <-$w:Knows-> $q: Person"


def test_a_variable_of_a_not_block_is_not_visible_outside():
    (found,) = diagnostics(read("$p: Person not { $p knows $friend }", "$friend.name"))
    assert (found.code, found.hint) == ("T6", "'$friend' is visible only inside its 'not' block")


def test_a_name_of_a_not_block_can_be_reused_for_a_new_variable():
    shown = [line.strip() for line in steps("$p: Person not { $p knows $q } $q: City")]
    assert shown == [
        "scan    $p: Person",
        "scan    $q: City",
        "without any match, for each $p:",
        "expand  $p -Knows-> $q#1: Person",
    ]


def test_sibling_not_blocks_do_not_see_each_other():
    assert [line.strip() for line in steps("$p: Person not { $p knows $q } not { $p worksAt $q }")] == [
        "scan    $p: Person",
        "without any match, for each $p:",
        "expand  $p -Knows-> $q: Person",
        "without any match, for each $p:",
        "expand  $p -WorksAt-> $q#1: Company",
    ]
    assert mistakes(read('$p: Person not { $p knows $q } not { $q.name = "x" }')) == [("T6", "$q")]


def test_a_nested_not_sees_the_variables_of_all_outer_blocks():
    shown = [line.strip() for line in steps("$p: Person not { $p knows $q not { $q knows $p $p.age = $q.age } }")]
    assert shown == [
        "scan    $p: Person",
        "without any match, for each $p:",
        "expand  $p -Knows-> $q: Person",
        "without any match, for each $q, $p:",
        "filter  $p.age = $q.age",
        "check   $q -Knows-> $p",
    ]


def test_an_outer_variable_mentioned_in_a_nested_block_counts():
    plan(read("$p: Person not { $q: City not { $q.name = $p.name } }"))


def test_a_not_block_can_use_several_outer_variables():
    (_, _, without, *_) = steps("$p: Person $q: Person not { $p knows $r $r knows $q }")
    assert without == "  without any match, for each $p, $q:"


def test_a_parameter_hides_a_variable_only_as_a_bare_name():
    text = "query q($p: String) { match { $p: Person { name: $p } $p.name = $p } return { $p, $p.age } }"
    compiled = compile_query(CATALOG, text)
    assert [str(column.type) for column in compiled.columns] == ["String", "I32?"]


def test_an_edge_and_a_node_can_share_a_name():
    catalog = compile_schema("node Rank { name: String }  edge Rank: Rank -> Rank { weight: F64? }")
    compile_query(catalog, "query q() { match { $a: Rank  $a $w:rank $b  $w.weight > 1 } return { $b.name } }")
    with pytest.raises(TypeCheckError) as caught:
        compile_query(catalog, "query q() { match { $a $w:rank $b not { $w: Rank } } return { $b.name } }")
    assert caught.value.code == "T23"


# -- one message per error ---------------------------------------------------------------------------

ONCE = {
    "unknown-type-and-its-uses": (
        '$p: Persn { name: "x" } $p knows $q $p.name = $q.name not { $p worksAt $_ }', "$p.name, $p, count($p)",
    ),
    "unknown-edge-and-its-ends": ("$p: Person $p likes $q $q knows $r $q.name = $r.name", "$q, $r.name, count($q)"),
    "unknown-edge-with-variable": ('$p: Person $p $w:likes $q $w.weight = 1', "$w.weight"),
    "wrong-end-and-the-other": ("$c: City $c worksAt $p $p.name = $c.name", "$p.name"),
    "bad-bounds-and-the-far-end": ("$p: Person $p knows{0,1} $q $q.name = $p.name", "$q.name"),
    "edge-variable-is-an-end": ("$p: Person $p $p:knows $q $q.age = 4", "$q.name"),
    "wrong-variable-in-not": ("$p: Person not { $q.name = $p.name }", "$p.name"),
    "wrong-type-in-not": ("$p: Person not { $x: Persn }", "$p.name"),
    "wrong-property-in-not": ("$p: Person not { $p.nme = 4 }", "$p.name"),
    "node-compared-with-node": ("$p knows $q $p != $q", "$p.name"),
}  # fmt: skip


@pytest.mark.parametrize(("match", "give"), ONCE.values(), ids=ONCE)
def test_an_error_is_reported_once(match, give):
    assert len(mistakes(read(match, give, "order { $p.name }"))) == 1


def test_an_invalid_parameter_is_reported_once():
    text = "query q($a: Text) { match { $p: Person { name: $a } $p.name = $a search($p.bio, $a) } return { $a } }"
    assert mistakes(text) == [(NO_CODE, "Text")]


def test_independent_errors_are_reported_in_text_order():
    match = """
        $p: Person { nme: "x", age: "4" }
        $c: Cty
        $p likes $q
        $p knows{2,1} $r
        $x.name = $p.nick
        search($p.age, 5)
        not { $p.born = "x"  $p hates $_ }
        not { $a knows $b }
    """
    assert mistakes(read(match, "sum($p.name), $z", "order { $p.heigt }")) == [
        Mistake("T2", "nme"),
        Mistake("T3", '"4"'),
        Mistake("T1", "Cty"),
        Mistake("T4", "likes"),
        Mistake("T15", "{2,1}"),
        Mistake("T6", "$x"),
        Mistake("T6", "nick"),
        Mistake("T19", "$p.age"),
        Mistake("T19", "5"),
        Mistake("T7", '$p.born = "x"'),
        Mistake("T4", "hates"),
        Mistake("T9", "not { $a knows $b }"),
        Mistake("T8", "$p.name"),
        Mistake(NO_CODE, "$z"),
        Mistake("T6", "heigt"),
    ]


def test_positions_are_lines_and_characters():
    (found,) = diagnostics(
        'query q() {\n  match {\n    $p: Person { bio: "é" }\n    $p.nme = "x"\n  }\n  return { 1 }\n}'
    )
    assert (found.line, found.column) == (4, 8)
    assert found.place == "<query>:4:8, in query 'q'"
    assert found.headline == "type error: T6: node type 'Person' has no property 'nme'"


# -- messages ----------------------------------------------------------------------------------------

MESSAGES = {
    "T3": ('$p: Person { age: "4" }', "'Person.age' is I32, but \"4\" (String) is not"),
    "T3-float": ('$p: Person { height: "2" }', "'Person.height' is F32, but \"2\" (String) is not"),
    "T3-enum": ('$p: Person { mood: "happy" }', "\"happy\" (String) is not a value of 'Person.mood'"),
    "T5-right": (
        "$p: Person $c: City $p worksAt $c",
        "'$c' is a City, but 'worksAt' leads from $p (Person) to a Company",
    ),
    "T5-right-backwards": (
        "$p: Company $c: City $p worksAt $c",
        "'$c' is a City, but 'worksAt' leads from $p (Company) to a Person",
    ),
    "T5-left": ("$c: City $c worksAt $p", "'$c' is a City, which 'worksAt' does not touch"),
    "T5-only-right": ("$c: City $p worksAt $c", "'$c' is a City, which 'worksAt' does not touch"),
    "T5-same": ("$p worksAt $p", "'$p' cannot be both ends of 'worksAt'"),
    "T7": ("$p: Person $p.name = 4", "cannot compare $p.name (String) with 4 (I64)"),
    "T7-contains": ("$p: Person $p.age contains 4", "cannot apply 'contains' to $p.age (I32?) and 4 (I64)"),
    "T7-pattern": ("$p: Person { age: $text }", "cannot match 'Person.age' (I32?) with $text (String)"),
    "T7-node": ("$p: Person $p = 1", "$p is a whole node and cannot be compared"),
    "T22": ("$p: Person $p <worksAt> $c", "'worksAt' leads from Person to Company and cannot be followed both ways"),
    "T23-rebound": ("$p $w:knows $q not { $w: Person }", "the edge variable '$w' cannot be bound to a node"),
    "T23-bounds": ("$p $w:knows{1,2} $q", "the edge variable '$w' needs a single hop, without '{1,2}'"),
    "rebound": ("$p: Person $p: City", "'$p' is bound to Person already and cannot be a City"),
}


@pytest.mark.parametrize(("match", "message"), MESSAGES.values(), ids=MESSAGES)
def test_message(match, message):
    (found,) = diagnostics(read(match))
    assert found.message == message


# -- hints -------------------------------------------------------------------------------------------

# id: (match block with one error, its hint)
HINTS = {
    "misspelt-type": ("$p: Persn", "did you mean 'Person'?"),
    "unknown-type": ("$p: Rhubarb", "the node types are 'City', 'Company', 'Note', 'Person'"),
    "misspelt-interface": ("$p: Nammed", "did you mean 'Named'?"),
    "edge": ("$p: Knows", "'Knows' is an edge; it is followed between two variables: '$a knows $b'"),
    "misspelt-property": ('$p: City { nam: "x" }', "did you mean 'name'?"),
    "unknown-property": ('$p: City { rhubarb: "x" }', "its properties are 'name'"),
    "enum": ('$p: Person { mood: "clam" }', "did you mean 'calm'?"),
    "list-pattern": ('$p: Person { nicknames: ["x"] }', "a list property is matched by one item it holds"),
    "vector-pattern": ("$p: Person { face: [1, 2, 3] }", "rank by nearest(…) instead"),
    "misspelt-parameter": ("$p: Person { name: $txet }", "did you mean '$text'?"),
    "undeclared-parameter": (
        "$p: Person { mood: $feeling }", "declare it in the query's parentheses: '$feeling: String'",
    ),
    "undeclared-parameter-for-a-list": (
        "$p: Person { marks: $m }", "declare it in the query's parentheses: '$m: I32'",
    ),
    "join-in-a-pattern": (
        "$p: Person $q: Person { name: $p }", "to compare two nodes, write a clause: '$q.name = $p.name'",
    ),
    "misspelt-edge": ("$p: Person $p knwos $q", "did you mean 'knows'?"),
    "unknown-edge": ("$p: Person $p rhubarb $q", "the edges are 'basedIn', 'knows', 'twins', 'worksAt'"),
    "wrong-end": ("$c: City $c worksAt $p", "edge WorksAt: Person -> Company"),
    "another-edge-fits": (
        "$c: Company $t: City $c worksAt $t",
        "edge WorksAt: Person -> Company; between Company and City there is 'basedIn'",
    ),
    "undirected": (
        "$p: Person $p <worksAt> $c", "'<worksAt>' needs an edge between nodes of one type: write 'worksAt'",
    ),
    "min-0": ("$p: Person $p knows{0,2} $q", "write {1,2}"),
    "bounds-swapped": ("$p: Person $p knows{3,2} $q", "write {2,3}"),
    "no-max": ("$p: Person $p knows{2,} $q", "give a maximum length: 'knows{2,4}'"),
    "misspelt-variable": ('$person: Person $persn.name = "x"', "did you mean '$person'?"),
    "one-letter-variable": ('$p: Person $x.name = "x"', "known here: '$p'"),
    "introduced-below": ('$p.name = "x" $p: Person', "'$p' is introduced further down: move this below it"),
    "introduced-below-the-block": (
        "$p: Person not { $q.name = $p.name } $q: City", "'$q' is introduced further down: move this below it",
    ),
    "anonymous": ('$p knows $_ $_.name = "x"', "'$_' denotes a different node each time: give the variable a name"),
    "inside-not": ('$p: Person not { $p knows $q } $q.name = "x"', "'$q' is visible only inside its 'not' block"),
    "date": ('$p: Person $p.born > "2000-01-01"', 'write date("2000-01-01")'),
    "datetime": ('$p: Person "2000-01-01" < $p.seen', 'write datetime("2000-01-01")'),
    "date-for-datetime": ('$p: Person $p.seen = date("2000-01-01")', 'a DateTime is written datetime("…")'),
    "quoted-number": ('$p: Person $p.age = "4"', "write the number without quotes"),
    "quoted-bool": ('$p: Person $p.active = "true"', "write true or false, without quotes"),
    "bare-number": ("$p: Person $p.name = 4", 'write the text in quotes: "4"'),
    "list-and-item": (
        '$p: Person $p.nicknames = "x"', "test for one item: '$p.nicknames contains \"x\"'",
    ),
    "item-and-list": ("$p: Person $p.name = $texts", "test for one item: '$texts contains $p.name'"),
    "contains-of-a-number": (
        "$p: Person $p.age contains 1", "'contains' tests a list for an item, or a String for a substring",
    ),
    "whole-nodes": (
        "$p knows $q $p = $q", "compare one of its properties; for the same node, use the same variable in both places",
    ),
    "null": (
        "$p: Person $p.age = null", "write '$p.age is null'",
    ),
    "forgotten-dollar": ("$p: Person $p.name = text", "variables are written with a dollar sign: '$text'"),
    "forgotten-variable": ("$p: Person $p.name = bio", "a property is read from a variable: '$p.bio'"),
    "forgotten-quotes": ("$p: Person $p.name = ann", 'text is written in double quotes: "ann"'),
    "one-letter-word": ("$p: Person $p.name = x", 'text is written in double quotes: "x"'),
    "rank-in-a-filter": ("$p: Person nearest($p.face, $vector) < 1", "put it into 'order', with a 'limit'"),
}  # fmt: skip


@pytest.mark.parametrize(("match", "hint"), HINTS.values(), ids=HINTS)
def test_hint(match, hint):
    (found,) = diagnostics(read(match))
    assert found.hint == hint
