"""A tour of what OmniGraph does today, on the files in `examples/team`.

First the compiler, from the command line: schema, queries, plans, mistakes, schema changes. Then a graph, from
Python: created, loaded, queried by meaning, branched, changed, merged, read as it was. Each step says what it does
and how long it took.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import omnigraph as og

TEAM = Path(__file__).parent / "team"

COMMANDS = [
    ("A schema declares node and edge types. Is this one sound?", ["schema", "check", "team.pg"]),
    ("Queries are checked against it before anything runs.", ["lint", "--schema", "team.pg", "--query", "team.gq"]),
    (
        "A plan shows how a query will run: here a hop, then meaning and words fused into one ranking.",
        ["explain", "--schema", "team.pg", "--query", "team.gq", "--name", "recall"],
    ),
    (
        "Mistakes are told with their place and a way out (this command fails, as it should).",
        ["lint", "--schema", "team.pg", "--query", "mistakes.gq"],
    ),
    ("The schema grows: what would change?", ["schema", "plan", "--from", "team.pg", "--to", "team_next.pg"]),
    ("Files have one layout, comments kept.", ["fmt", "--check", "."]),
]


def main() -> int:
    number = 0
    for number, (why, command) in enumerate(COMMANDS, 1):
        print(f"\n── {number}. {why}\n$ omnigraph {' '.join(command)}", flush=True)
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "omnigraph", *command], cwd=TEAM, check=False)  # noqa: S603
        expected = 1 if "mistakes.gq" in command else 0
        if done.returncode != expected:
            print(f"step {number} ended with {done.returncode}, not {expected}", file=sys.stderr)
            return 1
        print(f"({time.perf_counter() - start:.2f} s)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for step in graph_steps(Path(folder) / "team.omni"):
            number += 1
            start = time.perf_counter()
            print(f"\n── {number}. {step.__doc__}", flush=True)
            step()
            print(f"({time.perf_counter() - start:.2f} s)", flush=True)
    return 0


def graph_steps(root: Path) -> list[Callable[[], None]]:
    """The steps of the second half; they share one graph."""
    queries = TEAM / "team.gq"
    # Vectors made offline, from the words themselves: no key, no download.
    environ = {**os.environ, "OMNIGRAPH_EMBED_PROVIDER": "local"}
    made: list[og.Graph] = []

    def create() -> None:
        """A graph is a folder. This one is created and loaded: one commit, notes embedded on the way."""
        graph = og.init(root, TEAM / "team.pg", actor="ana", environ=environ)
        made.append(graph)
        result = graph.load(TEAM / "team.jsonl", mode="merge", message="first load")
        print(", ".join(f"{rows} {key}" for key, rows in result.tables), f"\n{result.embedded_rows} notes embedded")

    def recall() -> None:
        """Which notes about Atlas speak of floods on rivers? Traversal, vectors and words in one query."""
        _show(made[0].query(queries, "recall", {"project": "atlas", "question": "flooding of rivers"}))

    def teammates() -> None:
        """Who works with Ana?"""
        _show(made[0].query(queries, "teammates", {"handle": "ana"}))

    def branch() -> None:
        """Changes go to a branch; main does not see them."""
        graph = made[0]
        graph.branch_create("review/loom")
        review = graph.on("review/loom")
        result = review.mutate(queries, "start", {"handle": "dov", "code": "kiln", "title": "Kiln"}, message="kiln")
        counts = f"{result.affected_nodes} node and {result.affected_edges} edge"
        print(f"on the branch: {counts}, commit {result.commit_id}")
        for name in graph.branches():
            print(f"  {name}: {graph.on(name).to_arrow('Project').num_rows} projects")

    def review() -> None:
        """What did the branch change? And what if main changed the same thing?"""
        graph = made[0]
        for change in graph.diff("main", "review/loom"):
            print(f"  {change.op} {change.table_key} {change.id}")
        for name, status in (("review/loom", "active"), ("main", "done")):
            change = 'query q() { update Project set { status: "STATUS" } where code = "loom" }'
            graph.on(name).mutate(change.replace("STATUS", status), message=f"loom is {status}")
        try:
            graph.merge("review/loom")
        except og.errors.MergeConflict as error:
            print(f"error: {error}\nhint: {error.hint}")
            print(f"  {error.conflicts[0].message}")

    def merge() -> None:
        """A conflict is settled by saying how; the rest of the branch comes along, as one commit with two parents."""
        graph = made[0]
        result = graph.merge("review/loom", resolve="theirs", message="take the branch", delete_branch=True)
        print(f"{result.outcome}: {graph.to_arrow('Project').num_rows} projects on main, branches {graph.branches()}")

    def refused() -> None:
        """What would break the graph is refused, and nothing is written."""
        try:
            made[0].mutate('query q() { insert WorksOn { from: "nobody", to: "atlas", since: date("2026-01-01") } }')
        except og.errors.ConstraintViolation as error:
            print(f"error: {error}")

    def travel() -> None:
        """Every commit can be read as it was."""
        graph = made[0]
        before = graph.snapshot().commit_id
        graph.mutate(queries, "leave", {"handle": "bo"}, message="Bo leaves")
        print(f"now:    {[row['p.name'] for row in graph.query(PEOPLE)]}")
        print(f"before: {[row['p.name'] for row in graph.query(PEOPLE, at=before)]}")
        for commit in graph.commits():
            print(f"  {commit.id}  {commit.kind:<9} {commit.message or ''}")

    def upkeep() -> None:
        """Compaction and indexes are a commit like any other; verify proves the whole graph."""
        graph = made[0]
        changed = [stats.table_key for stats in graph.optimize() if stats.committed]
        print(f"optimized {len(changed)} tables; problems found by verify: {len(graph.verify())}")

    return [create, recall, teammates, branch, review, merge, refused, travel, upkeep]


PEOPLE = "query people() { match { $p: Person } return { $p.name } order { $p.name } }"


def _show(result: og.Result) -> None:
    for row in result:
        print("  " + " | ".join(str(value) for value in row.values()))
    print(f"  {len(result)} rows in {result.elapsed_ms:.1f} ms")


if __name__ == "__main__":
    sys.exit(main())
