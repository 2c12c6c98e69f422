"""Run the benchmarks named on the command line, or all of them, in their short form, and print one table.

`python -m bench.storage --full`, and likewise `bench.write` and `bench.commit`, use the sizes the targets were set for.
`python -m bench snb --scale 1` runs the social-network workload beside its peers.
"""

from __future__ import annotations

import platform
import sys

from bench import (
    agents,
    authenticate,
    commit,
    compile_query,
    compile_schema,
    fairness,
    http,
    mcp_exchange,
    merge,
    pipeline,
    planning,
    start,
    statistics_cost,
    storage,
    text,
    ui,
    visibility,
    write,
)
from bench.read import side_by_side
from bench.search import side_by_side as search
from bench.snb import side_by_side as snb
from bench.snb.__main__ import main as snb_main

BENCHMARKS = {
    "agents": agents.figures,
    "authenticate": authenticate.figures,
    "commit": commit.figures,
    "compile_query": compile_query.figures,
    "compile_schema": compile_schema.figures,
    "fairness": fairness.figures,
    "http": http.figures,
    "mcp": mcp_exchange.figures,
    "merge": merge.figures,
    "pipeline": pipeline.figures,
    "planning": planning.figures,
    "read": side_by_side.figures,
    "search": search.figures,
    "snb": snb.figures,
    "start": start.figures,
    "statistics": statistics_cost.figures,
    "storage": storage.figures,
    "text": text.figures,
    "ui": ui.figures,
    "visibility": visibility.figures,
    "write": write.figures,
}

NAMED_ONLY = {"ui"}
"""Benchmarks that run only when named: they need a browser."""


def main(names: list[str]) -> int:
    if names[:1] == ["snb"] and len(names) > 1 and names[1].startswith("-"):
        return snb_main(names[1:])
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    print(f"Python {platform.python_version()} on {platform.machine()}; names end in their unit, medians throughout")
    for name in names or [name for name in BENCHMARKS if name not in NAMED_ONLY]:
        print(f"\n{name}")
        for figure, value in BENCHMARKS[name]().items():
            print(f"  {figure:<50} {value:12,.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
