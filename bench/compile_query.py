"""From query text to plan, compared with a general parser generator that only parses.

Ours is the whole of `compile_query`: lexing, parsing, type checking, lowering to a plan. The peer is a Lark parse of
the same text by the same grammar (`query.lark`) without further work. The target ratio is 1 or less.

The parts are timed separately with warm caches, so their sum is slightly less than the whole.
"""

from __future__ import annotations

from bench.grammar import lark_parser
from bench.measure import medians_us
from omnigraph.lang.spans import Source
from omnigraph.lang.tokens import lex
from omnigraph.query.check.typecheck import check_query
from omnigraph.query.compile import compile_query
from omnigraph.query.plan.lower import lower
from omnigraph.query.syntax.parser import parse_source
from omnigraph.schema.check import compile_schema

ROUNDS = 60
CALLS = 40

SCHEMA = """
node Person {
    email: String @key
    name: String
    team: String?
}

node Project {
    slug: String @key
    status: enum(open, paused, closed)
    budget: F64?
}

node Task {
    code: String @key
    hours: F64?
    due: Date?
}

edge Leads: Person -> Project {
    since: Date
}

edge Contains: Project -> Task
edge Blocks: Task -> Task
"""

QUERY = """
query free_work($team: String, $before: Date) {
    match {
        $p: Person { team: $team }
        $p $l:leads $j
        $j contains $t
        $j: Project { status: "open" }
        $t.due < $before
        not { $_ blocks $t }
    }
    return { $p.name, $j.slug as project, count($t) as tasks, sum($t.hours) as hours }
    order { hours desc, $p.name asc }
}
""".strip()


def figures(*, rounds: int = ROUNDS, calls: int = CALLS) -> dict[str, float]:
    catalog = compile_schema(SCHEMA)
    parser = lark_parser()
    source = Source(QUERY, "<query>")
    (query,) = parse_source(source)[0].queries
    checked = check_query(catalog, query, source)
    times = medians_us(
        {
            "ours": lambda: compile_query(catalog, QUERY),
            "lark": lambda: parser.parse(QUERY),
            "lex": lambda: lex(QUERY),
            "lex and parse": lambda: parse_source(source),
            "typecheck": lambda: check_query(catalog, query, source),
            "lower": lambda: lower(checked),
        },
        rounds=rounds,
        calls=calls,
    )
    return {
        "compile_us": times["ours"],
        "compile_lex_us": times["lex"],
        "compile_parse_us": times["lex and parse"] - times["lex"],
        "compile_typecheck_us": times["typecheck"],
        "compile_lower_us": times["lower"],
        "lark_parse_us": times["lark"],
        "compile_to_lark_ratio": times["ours"] / times["lark"],
    }


if __name__ == "__main__":
    for name, value in figures().items():
        print(f"{name:<24} {value:10.2f}")
