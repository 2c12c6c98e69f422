"""The lint report of a file: its structure, its findings, and the operation of each query."""

from __future__ import annotations

import pytest

from omnigraph.query.compile import compile_query
from omnigraph.query.lint import Finding, LintReport, QueryReport, describe_operation, lint
from omnigraph.schema.check import compile_schema
from support.queries import CATALOG, PARAMS

GOOD = "query good() { match { $p: Person } return { $p.name } }"
BAD = "query bad() { match { $p: Person } return { $p.nme } }"
NO_PARAMETERS = 'query fixed() { insert City { name: "a" } }'
SCHEMA_FILE = {"kind": "file", "path": "s.pg"}


def report(text, catalog=CATALOG):
    return lint(catalog, text, query_path="q.gq", schema_source=SCHEMA_FILE).to_dict()


# -- structure ---------------------------------------------------------------------------------------


def test_a_valid_file():
    assert report(GOOD) == {
        "status": "ok",
        "schema_source": {"kind": "file", "path": "s.pg"},
        "query_path": "q.gq",
        "queries_processed": 1,
        "errors": 0,
        "warnings": 0,
        "infos": 0,
        "results": [
            {
                "name": "good",
                "kind": "read",
                "status": "ok",
                "warnings": [],
                "operation": {
                    "result": [{"name": "p.name", "kind": "string", "nullable": False}],
                    "reads": [{"kind": "node", "type_name": "Person"}],
                    "writes": [],
                },
            }
        ],
        "findings": [],
    }


def test_an_empty_file_is_valid():
    data = report("// nothing yet")
    assert (data["status"], data["queries_processed"], data["results"], data["findings"]) == ("ok", 0, [], [])


def test_the_schema_can_come_from_a_graph():
    source = {"kind": "graph", "uri": "file://g"}
    assert lint(CATALOG, GOOD, query_path="q.gq", schema_source=source).to_dict()["schema_source"] == source


def test_a_type_error_fails_only_its_query():
    data = report(f"{GOOD}\n{BAD}\n{GOOD.replace('good', 'better')}")
    assert [(result["name"], result["status"]) for result in data["results"]] == [
        ("good", "ok"),
        ("bad", "error"),
        ("better", "ok"),
    ]
    bad = data["results"][1]
    assert bad["error"] == "type error: T6: node type 'Person' has no property 'nme'"
    assert "operation" not in bad
    assert [(found["code"], found["line"], found["column"]) for found in bad["diagnostics"]] == [("T6", 2, 48)]
    assert (data["status"], data["errors"], data["queries_processed"]) == ("error", 1, 3)


def test_several_errors_of_a_query_count_as_one():
    data = report("query bad() { match { $p: Persn  $c: Cty } return { $x } }")
    assert data["errors"] == 1
    assert len(data["results"][0]["diagnostics"]) == 3
    assert data["results"][0]["error"].startswith("type error: T1: ")


def test_q000_a_syntax_error_gives_one_finding_and_no_results():
    data = report(f"{GOOD}\nquery broken( {{ }}\nquery worse() {{ match {{ }} }}\n")
    assert (data["status"], data["queries_processed"], data["results"]) == ("error", 0, [])
    assert (data["errors"], data["warnings"], data["infos"]) == (1, 0, 0)
    (finding,) = data["findings"]
    assert (finding["severity"], finding["code"], finding["query_names"]) == ("error", "Q000", [])
    assert finding["message"] == "parse error: expected a parameter ('$name: Type'), found '{'"
    assert [found["line"] for found in finding["diagnostics"]] == [2, 3]
    assert "type_name" not in finding
    assert "property" not in finding


def test_kinds_of_queries():
    assert [result["kind"] for result in report(f"{GOOD} {NO_PARAMETERS} {BAD}")["results"]] == [
        "read",
        "mutation",
        "read",
    ]


# -- warnings of a query -----------------------------------------------------------------------------


def warnings(text):
    return [result["warnings"] for result in report(text)["results"]]


def test_warning_for_a_mutation_without_parameters():
    with_parameters = "query given($n: String) { insert City { name: $n } }"
    (fixed, given) = warnings(f"{NO_PARAMETERS} {with_parameters}")
    assert fixed == ["the mutation has no parameters: it writes the same thing every time"]
    assert given == []


def test_a_mutation_with_an_error_keeps_its_warning():
    data = report('query fixed() { insert Cty { name: "a" } }')
    assert (data["errors"], data["warnings"]) == (1, 1)


def test_no_warning_for_a_read_without_parameters():
    assert warnings(GOOD) == [[]]


def test_warning_for_a_duplicate_name():
    assert warnings(f"{GOOD} {GOOD}") == [
        [],
        ["an earlier query is also called 'good', and a lookup by name finds that one"],
    ]


def test_warning_for_a_hop_that_never_matches():
    text = "query q() { match { $p: Person not { $p worksAt{2,3} $c } } return { $p.name } }"
    assert warnings(text) == [
        ["the hop over 'WorksAt' never matches: its ends are of different types, so it cannot be 2 long"]
    ]


@pytest.mark.parametrize("hop", ["$p knows $q", "$p worksAt $q", "$p worksAt{1,5} $q", "$p knows{2,2} $q"])
def test_no_warning_for_a_hop_that_can_match(hop):
    assert warnings(f"query q() {{ match {{ $p: Person {hop} }} return {{ 1 }} }}") == [[]]


def test_a_file_with_warnings_is_valid():
    data = report(f"{NO_PARAMETERS} {NO_PARAMETERS}")
    assert (data["status"], data["errors"], data["warnings"]) == ("ok", 0, 3)


# -- L201 --------------------------------------------------------------------------------------------

L201 = compile_schema("""
node Task {
    slug: String @key
    title: String
    due: Date?
    rank: I32?
    tags: [String]?
    text: String?
    vector: Vector(2)? @embed("text")
}
node Other { a: String?  b: String? }
node Bed { ward: String  number: I32  note: String? @key(ward, number) }
""")


def unset(text):
    """Return (type, property, queries) of each L201."""
    data = report(text, L201)
    assert all((found["severity"], found["code"]) == ("warning", "L201") for found in data["findings"])
    assert data["warnings"] == len(data["findings"]) + sum(len(result["warnings"]) for result in data["results"])
    return [(found["type_name"], found["property"], found["query_names"]) for found in data["findings"]]


SET_DUE = "query set_due($d: Date, $s: String) { update Task set { due: $d } where slug = $s }"
SET_RANK = "query rank_it($r: I32, $s: String) { update Task set { rank: $r } where slug = $s }"


def test_l201_names_the_nullable_properties_no_update_sets():
    assert unset(SET_DUE) == [
        ("Task", "rank", ["set_due"]),
        ("Task", "tags", ["set_due"]),
        ("Task", "text", ["set_due"]),
    ]


def test_l201_message():
    finding = report(SET_DUE, L201)["findings"][0]
    assert finding["message"] == "no update sets the nullable property 'Task.rank'"


def test_l201_combines_all_updates():
    assert unset(f"{SET_DUE} {SET_RANK}") == [
        ("Task", "tags", ["rank_it", "set_due"]),
        ("Task", "text", ["rank_it", "set_due"]),
    ]


def test_l201_ignores_required_key_and_embedded_properties():
    names = {name for _, name, _ in unset("query t($t: String) { update Task set { title: $t } where slug = $t }")}
    assert names == {"due", "rank", "tags", "text"}
    assert unset("query b($n: String) { update Bed set { note: $n } where ward = $n }") == []


def test_l201_counts_several_updates_of_one_query():
    due, rank = "update Task set { due: $d } where rank = $r", "update Task set { rank: $r } where due = $d"
    both = f"query both($d: Date, $r: I32) {{ {due} {rank} }}"
    assert unset(both) == [("Task", "tags", ["both"]), ("Task", "text", ["both"])]


def test_l201_needs_a_valid_update():
    broken = "query broken($d: Date) { update Task set { due: $d, rank: $d } where slug = $d }"
    assert unset(broken) == []
    assert unset(f"{SET_DUE} {broken}") == unset(SET_DUE)


@pytest.mark.parametrize(
    "text",
    [
        'query i($s: String) { insert Task { slug: $s, title: "t" } }',
        "query d($s: String) { delete Task where slug = $s }",
        "query r() { match { $t: Task } return { $t.due } }",
    ],
    ids=["insert", "delete", "read"],
)
def test_l201_concerns_only_updates(text):
    assert unset(text) == []


def test_l201_ignores_inserts():
    insert = 'query i($s: String) { insert Task { slug: $s, title: "t", rank: 1, tags: [], text: $s } }'
    assert unset(f"{SET_DUE} {insert}") == unset(SET_DUE)


def test_findings_are_sorted_by_type_and_property():
    other = "query o($a: String) { update Other set { b: $a } where a = $a }"
    assert [(type_name, name) for type_name, name, _ in unset(f"{SET_RANK} {other}")] == [
        ("Other", "a"),
        ("Task", "due"),
        ("Task", "tags"),
        ("Task", "text"),
    ]


def test_counts_include_findings_and_results():
    failed = QueryReport("a", "read", diagnostics=compile_failure())
    warned = QueryReport("b", "mutation", warnings=("x", "y"))
    findings = (Finding("error", "Q000", "e"), Finding("warning", "L201", "w"), Finding("info", "I1", "i"))
    made = LintReport(SCHEMA_FILE, "q.gq", (failed, warned), findings)
    assert (made.errors, made.warnings, made.infos, made.ok) == (2, 3, 1, False)


def compile_failure():
    (result,) = lint(CATALOG, BAD, query_path="q.gq", schema_source=SCHEMA_FILE).results
    return result.diagnostics


# -- operations --------------------------------------------------------------------------------------


def operation(text):
    return describe_operation(CATALOG, compile_query(CATALOG, text))


ALL_KINDS = compile_schema("""
node Thing {
    string: String?  enum: enum(a, b)?  bool: Bool?  i32: I32?  u32: U32?  i64: I64?  u64: U64?  f32: F32?  f64: F64?
    date: Date?  datetime: DateTime?  vector: Vector(7)?  strings: [String]?  bools: [Bool]?  i32s: [I32]?
    u32s: [U32]?  i64s: [I64]?  u64s: [U64]?  f32s: [F32]?  f64s: [F64]?  dates: [Date]?  datetimes: [DateTime]?
    required: String
}
""")


@pytest.mark.parametrize(
    ("property_", "expected"),
    [
        ("string", {"kind": "string"}),
        ("enum", {"kind": "string"}),
        ("bool", {"kind": "bool"}),
        ("i32", {"kind": "int"}),
        ("u32", {"kind": "int"}),
        ("i64", {"kind": "bigint"}),
        ("u64", {"kind": "bigint"}),
        ("f32", {"kind": "float"}),
        ("f64", {"kind": "float"}),
        ("date", {"kind": "date"}),
        ("datetime", {"kind": "datetime"}),
        ("vector", {"kind": "vector", "vector_dim": 7}),
        ("strings", {"kind": "list", "item_kind": "string"}),
        ("bools", {"kind": "list", "item_kind": "bool"}),
        ("i32s", {"kind": "list", "item_kind": "int"}),
        ("u32s", {"kind": "list", "item_kind": "int"}),
        ("i64s", {"kind": "list", "item_kind": "bigint"}),
        ("u64s", {"kind": "list", "item_kind": "bigint"}),
        ("f32s", {"kind": "list", "item_kind": "float"}),
        ("f64s", {"kind": "list", "item_kind": "float"}),
        ("dates", {"kind": "list", "item_kind": "date"}),
        ("datetimes", {"kind": "list", "item_kind": "datetime"}),
    ],
)
def test_kind_of_a_property(property_, expected):
    plan = compile_query(ALL_KINDS, f"query q() {{ match {{ $t: Thing }} return {{ $t.{property_} }} }}")
    (column,) = describe_operation(ALL_KINDS, plan)["result"]
    assert column == {"name": f"t.{property_}", **expected, "nullable": True}


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("$p.name", {"name": "p.name", "kind": "string", "nullable": False}),
        ("$w.since", {"name": "w.since", "kind": "date", "nullable": True}),
        ("$text", {"name": "text", "kind": "string", "nullable": False}),
        ("$maybe", {"name": "maybe", "kind": "string", "nullable": True}),
        ("$vector", {"name": "vector", "kind": "vector", "vector_dim": 3, "nullable": False}),
        ("$texts", {"name": "texts", "kind": "list", "item_kind": "string", "nullable": False}),
        ("1", {"name": "literal", "kind": "bigint", "nullable": False}),
        ("1.5", {"name": "literal", "kind": "float", "nullable": False}),
        ("[true]", {"name": "literal", "kind": "list", "item_kind": "bool", "nullable": False}),
        ("now()", {"name": "now", "kind": "datetime", "nullable": False}),
        ('search($p.bio, "x")', {"name": "search", "kind": "bool", "nullable": False}),
        ('bm25($p.bio, "x")', {"name": "bm25", "kind": "float", "nullable": False}),
        ("nearest($p.face, $vector)", {"name": "nearest", "kind": "float", "nullable": True}),
        ("count($p)", {"name": "count", "kind": "bigint", "nullable": False}),
        ("sum($p.age)", {"name": "sum", "kind": "bigint", "nullable": True}),
        ("avg($p.age) as mean", {"name": "mean", "kind": "float", "nullable": True}),
        ("median($p.age)", {"name": "median", "kind": "float", "nullable": True}),
        ("min($p.name)", {"name": "min", "kind": "string", "nullable": True}),
        ("max($p.age)", {"name": "max", "kind": "int", "nullable": True}),
    ],
)
def test_result_of_an_item(item, expected):
    text = f"query q({PARAMS}) {{ match {{ $p: Person $p $w:knows $q }} return {{ {item} }} }}"
    assert operation(text)["result"] == [expected]


def test_a_whole_node_is_described_field_by_field():
    text = "query q() { match { $c: City optional { $b basedIn $c } } return { $c, $b } }"
    city, company = operation(text)["result"]
    assert (city["name"], city["kind"], city["nullable"]) == ("c", "object", False)
    assert city["fields"][0] == {"name": "id", "kind": "string", "nullable": False}
    assert [field["name"] for field in city["fields"]] == ["id", *CATALOG.nodes["City"].properties]
    assert (company["kind"], company["nullable"]) == ("object", True)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            "{ a: $p.name, b: [$p.age] } as o",
            {
                "kind": "object",
                "fields": [
                    {"name": "a", "kind": "string", "nullable": False},
                    {
                        "name": "b",
                        "kind": "list",
                        "item_kind": "int",
                        "item": {"kind": "int", "nullable": True},
                        "nullable": False,
                    },
                ],
                "nullable": False,
            },
        ),
        (
            "collect({ n: $p.age }) as o",
            {
                "kind": "list",
                "item_kind": "object",
                "item": {
                    "kind": "object",
                    "fields": [{"name": "n", "kind": "int", "nullable": True}],
                    "nullable": False,
                },
                "nullable": False,
            },
        ),
        ("count($p) + 1 as o", {"kind": "bigint", "nullable": True}),
    ],
)
def test_result_types_of_objects_and_lists(item, expected):
    (column,) = operation(f"query q() {{ match {{ $p: Person }} return {{ {item} }} }}")["result"]
    assert column == {"name": "o", **expected}


def touched(text):
    """Return the types that a query reads and writes, such as `node Person`."""
    found = operation(text)
    return tuple([f"{entry['kind']} {entry['type_name']}" for entry in found[part]] for part in ("reads", "writes"))


READS = {
    "a scan": ("$p: Person", ["node Person"]),
    "a hop reads its edge and both ends": ("$p: Person $p worksAt $_", ["edge WorksAt", "node Company", "node Person"]),
    "backwards too": ("$c: Company $c worksAt $_", ["edge WorksAt", "node Company", "node Person"]),
    "a hop over one type": ("$p knows{1,3} $q", ["edge Knows", "node Person"]),
    "inside not": (
        "$p: Person not { $p worksAt $c not { $c basedIn $_ } }",
        ["edge BasedIn", "edge WorksAt", "node City", "node Company", "node Person"],
    ),
    "a binding inside not": ("$p: Person not { $t: City $t.name = $p.name }", ["node City", "node Person"]),
    "each once": ("$p: Person $q: Person $p knows $q $q knows $p", ["edge Knows", "node Person"]),
}


@pytest.mark.parametrize(("match", "reads"), READS.values(), ids=READS)
def test_types_read_by_a_read(match, reads):
    assert touched(f"query q() {{ match {{ {match} }} return {{ 1 }} }}") == (reads, [])


WRITES = {
    "node insert": ('insert City { name: "a" }', ["node City"], ["node City"]),
    "edge insert reads its ends": (
        'insert WorksAt { from: "a", to: "b", role: "c" }',
        ["edge WorksAt", "node Company", "node Person"],
        ["edge WorksAt"],
    ),
    "edge insert over one type": (
        'insert Knows { from: "a", to: "b" }', ["edge Knows", "node Person"], ["edge Knows"],
    ),
    "update": ("update Person set { age: 1 } where age = 2", ["node Person"], ["node Person"]),
    "node delete takes every edge at it": (
        'delete Company where name = "a"',
        ["edge BasedIn", "edge WorksAt", "node Company"],
        ["edge BasedIn", "edge WorksAt", "node Company"],
    ),
    "node delete with an edge to itself": (
        'delete City where name = "a"',
        ["edge BasedIn", "edge Twins", "node City"],
        ["edge BasedIn", "edge Twins", "node City"],
    ),
    "node delete without edges": ('delete Note where title = "a"', ["node Note"], ["node Note"]),
    "edge delete": ('delete Knows where from = "a"', ["edge Knows"], ["edge Knows"]),
    "several": (
        'insert City { name: "a" } insert BasedIn { from: "b", to: "a" } update Person set { age: 1 } where age = 2',
        ["edge BasedIn", "node City", "node Company", "node Person"],
        ["edge BasedIn", "node City", "node Person"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("statements", "reads", "writes"), WRITES.values(), ids=WRITES)
def test_types_read_and_written_by_a_mutation(statements, reads, writes):
    assert touched(f"query q() {{ {statements} }}") == (reads, writes)


def test_result_of_a_mutation_with_return():
    text = 'query q() { insert City { name: "a" } as $c return { $c.name, $c } }'
    assert [(column["name"], column["kind"]) for column in operation(text)["result"]] == [
        ("c.name", "string"),
        ("c", "object"),
    ]


def test_result_of_a_mutation_is_its_counts():
    assert operation('query q() { insert City { name: "a" } }')["result"] == [
        {"name": "affected_nodes", "kind": "bigint", "nullable": False},
        {"name": "affected_edges", "kind": "bigint", "nullable": False},
    ]


# -- L202 --------------------------------------------------------------------------------------------


def test_warning_for_undefined_annotations():
    schema = """
    interface Owned { by: String? @source("hr") }
    node Person @owner("a") @description("b") implements Owned { name: String @key @display(order) }
    edge Knows: Person -> Person @owner("a")
    """
    query = "query q() { match { $p: Person } return { $p.name } }"
    report = lint(compile_schema(schema), query, query_path="q.gq", schema_source=SCHEMA_FILE)
    found = [(f.severity, f.code, f.type_name, f.property) for f in report.findings]
    assert found == [
        ("warning", "L202", "Knows", None),
        ("warning", "L202", "Owned", "by"),
        ("warning", "L202", "Person", None),
        ("warning", "L202", "Person", "name"),
    ]
    assert report.ok
    assert report.warnings == 4
    assert report.findings[0].message.startswith("'@owner' on 'Knows' is not an annotation of the schema language")


# -- counts of merged edges --------------------------------------------------------------------------

FILMS = """
node Person { name: String @key }
node Film { title: String @key }
edge Acted: Person -> Film
edge Wrote: Person -> Film { @unique(src, dst) }
edge Debut: Person -> Film @card(0..1)
edge Knows: Person -> Person
edge Held: Person -> Film @valid(from: since, to: until) {
 since: Date
 until: Date?
 @unique(src, dst)
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("match { $p: Person $p acted $f } return { $p.name, count($f) as c }", "'$p $e:acted $f' has one row"),
        ("match { $f: Film $p acted $f } return { count($p.name) + 1 as c }", "'$p $e:acted $f' has one row"),
        ("match { $p: Person optional { $p acted $f } } return { $p, count($f) as c }", "'$p $e:acted $f'"),
        ("match { $p: Person $p acted|wrote $f } return { $p, count($f) as c }", "edges of several types"),
        ("match { $p: Person $p knows{1,3} $f } return { $p, count($f) as c }", "'path' has one row for each route"),
        ("match { $p: Person $p <knows> $f } return { $p, count($f) as c }", "edges in both directions"),
        ("match { $p: Person $p acted $f } with { $p, count($f) as $n } return { $p, $n }", "'$p $e:acted $f'"),
        ("match { $p: Person $p acted $f } with { $p, $f } return { $p, count($f) as c }", "'$p $e:acted $f'"),
        ("match { $p: Person $p held $f } return { $p, count($f) as c }", "'$p $e:held $f'"),
    ],
)
def test_a_count_over_merged_edges_is_a_warning(text, message):
    data = report(text, compile_schema(FILMS))
    assert [(finding["code"], finding["query_names"]) for finding in data["findings"]] == [("L301", ["inline"])]
    assert message in data["findings"][0]["message"]
    assert (data["errors"], data["warnings"]) == (0, 1)


@pytest.mark.parametrize(
    "text",
    [
        "match { $p: Person $p $e:acted $f } return { $p.name, count($f) as c }",
        "match { $p: Person $p acted $f } return { $p.name, count(distinct $f) as c }",
        "match { $p: Person $p wrote $f } return { $p.name, count($f) as c }",
        "match { $p: Person $p debut $f } return { $p.name, count($f) as c }",
        "match { $p: Person $p acted $f } return { $p.name, $f.title }",
        "match { $p: Person not { $p acted $f } } return { count($p) as c }",
        "valid at now() match { $p: Person $p held $f } return { $p.name, count($f) as c }",
        "match { $p: Person $p acted $f } with { $p, count(distinct $f) as $n } return { count($p) as c }",
    ],
)
def test_a_count_of_rows_that_are_single_edges_has_no_warning(text):
    data = report(text, compile_schema(FILMS))
    assert (data["errors"], data["findings"]) == (0, [])
