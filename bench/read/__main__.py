"""`python -m bench.read --size M`: reads compared with peers, results compared first.

Graphs are generated once per size below `--folder` and reused. The exit status is 1 if a workload misses its target.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench.read import acceptance, aged, before, cold, threads
from bench.read.graph import SIZES
from bench.read.report import OURS, short, table
from bench.read.side_by_side import WORKLOADS, run
from bench.read.systems import SYSTEMS

OTHERS = {"cold": cold.figures, "aged": aged.figures, "threads": threads.figures}


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.read", description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="S")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "omnigraph-bench")
    parser.add_argument("--systems", default=",".join(SYSTEMS), help="comma-separated; ours is always there")
    parser.add_argument("--only", default="", help="workloads whose name holds this text")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.2, help="per system, workload and round")
    parser.add_argument("--before", metavar="REF", help="instead of peers: an older commit of this repository")
    parser.add_argument("--of", choices=OTHERS, help="instead of peers: a new process, a graph lived in, threads")
    parser.add_argument("--forms", action="store_true", help="formulations beside peers, warm and in new processes")
    parser.add_argument("--runs", type=int, default=5, help="new processes of each system and workload, with --forms")
    given = parser.parse_args(arguments)
    if given.of:
        for figure, value in OTHERS[given.of](given.size, given.folder).items():
            print(f"{figure:<58} {value:10,.2f}")
        return 0
    if given.before:
        how = {"rounds": given.rounds, "seconds": given.seconds, "only": given.only}
        found = before.compare(given.size, given.folder, given.before, **how)
        print(f"\nsize {given.size}\n{before.table(found, given.before)}")
        return 1 if any(one.ratio > before.AT_MOST for one in found) else 0
    systems = list(dict.fromkeys([OURS, *filter(None, given.systems.split(","))]))
    workloads = [workload for workload in WORKLOADS if given.only in workload.name]
    if given.forms:
        how = {"rounds": given.rounds, "seconds": given.seconds, "runs": given.runs}
        accepted = acceptance.accept(given.size, given.folder, systems, workloads, **how)
        print(f"\nsize {given.size}\n{acceptance.table(accepted)}")
        return 1 if any(any(one.short()) for one in accepted) else 0
    lines, peaks, graphs = run(given.size, given.folder, systems, workloads, rounds=given.rounds, seconds=given.seconds)
    print(f"\nsize {given.size}\n{table(lines, systems, graphs)}\n")
    print("peak memory, MiB: " + ", ".join(f"{name} {peak:,.0f}" for name, peak in peaks.items()))
    behind = short(lines, graphs)
    if behind:
        print("falls short: " + "; ".join(behind))
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
