"""A tour of what OmniGraph does today, on the files in `examples/team`.

Each step shows the command, runs it, and says how long it took.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

TEAM = Path(__file__).parent / "team"

STEPS = [
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
    (
        "The schema grows: what would change?",
        ["schema", "plan", "--from", "team.pg", "--to", "team_next.pg"],
    ),
    (
        "And back again? Some changes would lose data, and are refused.",
        ["schema", "plan", "--from", "team_next.pg", "--to", "team.pg"],
    ),
    ("Files have one layout, comments kept.", ["fmt", "--check", "."]),
]


def main() -> int:
    for number, (why, command) in enumerate(STEPS, 1):
        print(f"\n── {number}. {why}\n$ omnigraph {' '.join(command)}", flush=True)
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "omnigraph", *command], cwd=TEAM, check=False)  # noqa: S603
        expected = 1 if "mistakes.gq" in command else 0
        if done.returncode != expected:
            print(f"step {number} ended with {done.returncode}, not {expected}", file=sys.stderr)
            return 1
        print(f"({time.perf_counter() - start:.2f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
