"""A tour of the command line, from the schema of a graph to reads of earlier commits.

The data are those of `omnigraph demo`: a field station with people, projects and some thousand notes, generated from a
seed. Each step prints its purpose and its run time. Some steps must fail, which their description states. The load runs
on Spark, like a large load; `--engine memory` avoids the start of Spark.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from omnigraph.cli.main import run
from omnigraph.demo.build import write_files

CHANGE = "change -q station.gq"
FERRY = "-p handle=ana-abt -p code=ferry-timetable -p title='Ferry timetable'"
STEPS: list[tuple[str, str, int]] = [
    ("A schema declares node and edge types. Check it.", "schema check station.pg", 0),
    ("A graph is a folder, created from a schema.", "init --schema station.pg station.omni --as maren-friis", 0),
    (
        "Load 3,400 nodes and 13,000 edges in one commit; embeddings of the notes are computed locally.",
        "load --data station.jsonl --mode merge --engine ENGINE --message 'the notes so far' --as maren-friis",
        0,
    ),
    ("Compact tables and build indexes, as one commit.", "optimize", 0),
    ("Check queries without running them.", "lint --query station.gq", 0),
    (
        "An error has a position and a hint (must fail).",
        "read -e 'query q() { match { $p: Persn } return { $p.name } }'",
        1,
    ),
    (
        "Search the notes: vector and text search are ranked separately, then fused.",
        'read --alias recall "flooding in the harbour"',
        0,
    ),
    ("Colleagues on the same projects: two hops and an aggregate.", "read --alias colleagues ana-abt", 0),
    ("Active projects without notes this year: a negation.", "read -q station.gq -n silent", 0),
    ("Show the plan of a query.", "explain -q station.gq -n recall", 0),
    ("Create a branch for changes; it copies no data.", "branch create review/spring", 0),
    ("Insert a project on the branch.", f"{CHANGE} -n start -b review/spring {FERRY} --as ana-abt", 0),
    (
        "Update another project on the branch.",
        f"{CHANGE} -n set_status -b review/spring -p code=harbour-watch -p status=done",
        0,
    ),
    ("Show the changes of the branch.", "diff main review/spring", 0),
    ("Update the same project on main.", f"{CHANGE} -n set_status -p code=harbour-watch -p status=paused", 0),
    (
        "A merge with conflicts reports them and writes nothing (must fail).",
        "branch merge review/spring",
        1,
    ),
    ("Preview the merge.", "branch merge review/spring --preview", 0),
    (
        "Resolve the conflict; the merge is one commit with two parents.",
        "branch merge review/spring --resolve theirs --delete-branch --message 'spring, as reviewed'",
        0,
    ),
    ("Read the merged project.", "read --alias project harbour-watch", 0),
    ("Read it as of the first load: every commit is readable.", "read --alias project harbour-watch --at 2", 0),
    ("List the commits.", "commit list", 0),
    (
        "A change that violates a constraint is rejected (must fail).",
        'change -e \'query q() { insert Wrote { from: "nobody", to: "note-0001" } }\'',
        1,
    ),
    ("Check every invariant of the stored graph.", "verify", 0),
]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="A tour of the command line.")
    parser.add_argument("--engine", choices=("spark", "memory"), default="spark", help="the engine of the load")
    engine = parser.parse_args(arguments).engine
    started = time.perf_counter()
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)
        try:
            for number, (why, words, expected) in enumerate(STEPS, 1):
                command = words.replace("ENGINE", engine)
                print(f"\n── {number}. {why}\n$ omnigraph {command}", flush=True)
                start = time.perf_counter()
                code = run(["--quiet", *shlex.split(command)])
                sys.stdout.flush()
                if code != expected:
                    print(f"step {number} exited with {code}, not {expected}", file=sys.stderr)
                    return 1
                print(f"({time.perf_counter() - start:.2f} s)", flush=True)
        finally:
            os.chdir(here)
    print(f"\nDone in {time.perf_counter() - started:.1f} s. To continue on your own:\n  .venv/bin/omnigraph demo")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
