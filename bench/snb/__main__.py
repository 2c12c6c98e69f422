"""`python -m bench snb --scale 1`: a social-network workload beside Ladybug and DuckDB, answers compared first.

The results are not LDBC benchmark results: generator, queries and rules are our own. Networks are generated and loaded
once per scale below `--folder`, and reused.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from bench.snb.generate import SCALES
from bench.snb.side_by_side import OURS, Source, network, run, run_mix, table
from bench.snb.systems import MEMORY, SYSTEMS, System, load
from bench.snb.versions import check, plan
from bench.snb.workload import GROUPS, Query, queries

NOTE = "These are not LDBC benchmark results."


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench snb", description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, choices=SCALES, default=0.1)
    parser.add_argument("--official", type=Path, help="files of LDBC's generator (composite-merged-fk) instead of ours")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "omnigraph-bench")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated; ours is always there")
    parser.add_argument("--groups", default=",".join(GROUPS), help="comma-separated")
    parser.add_argument("--only", default="", help="names of queries, comma-separated")
    parser.add_argument("--memory", default=MEMORY, help="memory of each system")
    parser.add_argument("--sets", type=int, default=20, help="sets of parameters of each query")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20.0, help="per query, all systems together")
    parser.add_argument("--versions", action="store_true", help="read a branch, a past commit and a merge instead")
    parser.add_argument("--operations", type=int, default=500, help="operations of the mixed run; 0 for none")
    given = parser.parse_args(arguments)
    source: Source = given.official.resolve() if given.official else given.scale
    systems = list(dict.fromkeys([OURS, *filter(None, given.systems.split(","))]))
    only = set(filter(None, given.only.split(",")))
    chosen = [q for q in queries() if q.group in given.groups.split(",") and (not only or q.name in only)]
    if given.versions:
        return versions(source, given.folder, chosen, given.sets)
    how = {"sets": given.sets, "rounds": given.rounds, "budget_s": given.seconds, "memory": given.memory}
    lines = run(source, given.folder, systems, chosen, **how)
    print(f"\n{name_of(source)}, {machine()}; milliseconds, medians and 95th percentiles")
    print(table(lines, systems))
    if given.operations:
        mixed = [name for name in systems if SYSTEMS[name].change is not System.change]
        print(run_mix(source, given.folder, mixed, given.operations, given.memory))
    print(NOTE)
    return 0


def name_of(source: Source) -> str:
    """The network in words."""
    return f"files of {source.name}" if isinstance(source, Path) else f"scale {source:g}"


def versions(source: Source, folder: Path, chosen: list[Query], sets: int) -> int:
    """Update a branch and main, and compare the reads of every version with the oracle."""
    data = network(source, folder)
    made = plan(data, chosen, sets)
    with tempfile.TemporaryDirectory(dir=folder) as root:
        compared = check(load(data, Path(root) / "graph"), made, chosen)
    print(
        f"{len(made.branch)} updates of a branch and {len(made.main)} of main, {name_of(source)}; {compared:,} answers"
    )
    print("on the branch, on main, before all updates and after the merge are those of DuckDB")
    print(NOTE)
    return 0


def machine() -> str:
    """A description of this machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0))
    return f"Python {platform.python_version()} on {platform.machine()}, {cores} cores, {memory:.0f} GiB"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
