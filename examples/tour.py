"""The whole story in one go: a graph from its schema to time travel, by the commands anybody would type.

The data are those of `omnigraph demo`: a field station with people, projects and some thousand notes, made from seeded
words. Each step says what it does and how long it took; a step that is to fail says so, and has to. The load runs on
Spark, as a large one would; `--engine memory` spares starting it.
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
    ("A schema declares node and edge types. Is this one sound?", "schema check station.pg", 0),
    ("A graph is a folder, made from a schema.", "init --schema station.pg station.omni --as maren-friis", 0),
    (
        "Some 3,400 nodes and 13,000 edges in one commit; the notes get vectors on the way, made here from words.",
        "load --data station.jsonl --mode merge --engine ENGINE --message 'the notes so far' --as maren-friis",
        0,
    ),
    ("Compaction and indexes are a commit like any other.", "optimize", 0),
    ("Queries are checked before anything runs.", "lint --query station.gq", 0),
    (
        "A mistake is told with its place and a way out (this fails, as it should).",
        "read -e 'query q() { match { $p: Persn } return { $p.name } }'",
        1,
    ),
    (
        "What do the notes say of this? Meaning and words are ranked each by itself, then fused.",
        'read --alias recall "flooding in the harbour"',
        0,
    ),
    ("Who works on the same projects? Two hops and an aggregate.", "read --alias colleagues ana-abt", 0),
    ("Which active projects has nobody written about this year? A negation.", "read -q station.gq -n silent", 0),
    ("How does a query run?", "explain -q station.gq -n recall", 0),
    ("Changes go to a branch; it copies nothing, and main does not see them.", "branch create review/spring", 0),
    ("A project starts …", f"{CHANGE} -n start -b review/spring {FERRY} --as ana-abt", 0),
    ("… another one is done.", f"{CHANGE} -n set_status -b review/spring -p code=harbour-watch -p status=done", 0),
    ("What did the branch change?", "diff main review/spring", 0),
    ("Meanwhile main says otherwise.", f"{CHANGE} -n set_status -p code=harbour-watch -p status=paused", 0),
    ("A merge shows every conflict and writes nothing (this fails, as it should).", "branch merge review/spring", 1),
    ("What would it do?", "branch merge review/spring --preview", 0),
    (
        "A conflict is settled by saying how; the rest comes along, as one commit with two parents.",
        "branch merge review/spring --resolve theirs --delete-branch --message 'spring, as reviewed'",
        0,
    ),
    ("Now …", "read --alias project harbour-watch", 0),
    ("… and as it was after the first load: every commit can be read.", "read --alias project harbour-watch --at 2", 0),
    ("What happened?", "commit list", 0),
    (
        "What would break the graph is refused (this fails, as it should).",
        'change -e \'query q() { insert Wrote { from: "nobody", to: "note-0001" } }\'',
        1,
    ),
    ("Is every invariant of the stored graph true?", "verify", 0),
]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="The whole story in one go.")
    parser.add_argument("--engine", choices=("spark", "memory"), default="spark", help="what the load runs on")
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
                    print(f"step {number} ended with {code}, not {expected}", file=sys.stderr)
                    return 1
                print(f"({time.perf_counter() - start:.2f} s)", flush=True)
        finally:
            os.chdir(here)
    print(f"\nAll of it in {time.perf_counter() - started:.1f} s. To go on by yourself:\n  .venv/bin/omnigraph demo")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
