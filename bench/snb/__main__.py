"""`python -m bench snb --scale 1`: a social-network workload beside Ladybug and DuckDB, answers compared first.

The results are not LDBC benchmark results: generator, queries and rules are our own. Networks are generated and loaded
once per scale below `--folder`, and reused.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
from pathlib import Path

from bench.snb.generate import SCALES
from bench.snb.side_by_side import OURS, run, table
from bench.snb.systems import SYSTEMS
from bench.snb.workload import GROUPS, queries


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench snb", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, choices=SCALES, default=0.1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "omnigraph-bench")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated; ours is always there")
    parser.add_argument("--groups", default=",".join(GROUPS), help="comma-separated")
    parser.add_argument("--only", default="", help="names of queries, comma-separated")
    parser.add_argument("--sets", type=int, default=5, help="sets of parameters of each query")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="per query, all systems together")
    given = parser.parse_args(arguments)
    systems = list(dict.fromkeys([OURS, *filter(None, given.systems.split(","))]))
    only = set(filter(None, given.only.split(",")))
    chosen = [q for q in queries() if q.group in given.groups.split(",") and (not only or q.name in only)]
    how = {"sets": given.sets, "rounds": given.rounds, "budget_s": given.seconds}
    lines = run(given.scale, given.folder, systems, chosen, **how)
    print(f"\nscale {given.scale:g}, Python {platform.python_version()} on {platform.machine()}, medians")
    print(f"{table(lines, systems)}\nThese are not LDBC benchmark results.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
