"""Load a graph with Spark: files, invalid records, an upsert, DataFrames, and an export.

Run it with `python examples/spark_load.py`, or cell by cell in an editor that supports `# %%`. It requires
`pip install 'omnigraph[spark]'` and Java 17 or newer. All files are written to a temporary folder.
"""

# %% The input: a folder of files, as another job writes it
from __future__ import annotations

import json
import random
import tempfile
from itertools import pairwise
from pathlib import Path

import omnigraph as og
from omnigraph.pipeline.runner import Progress
from omnigraph.spark import load, open_session

SCHEMA = """
node Station { code: String @key  name: String  depth_m: F64?  @range(depth_m, 0..11000) }
node Sample  { id2: String @key  taken: Date  salinity: F64? }
edge TakenAt: Sample -> Station @card(1..1)
edge Near: Station -> Station { km: F64  @unique(src, dst) }
"""

work = Path(tempfile.mkdtemp(prefix="spark-load-"))
incoming = work / "incoming"
incoming.mkdir()
chance = random.Random(7)  # noqa: S311 (not cryptographic)
stations = [f"st-{n:03}" for n in range(200)]

with (incoming / "stations.jsonl").open("w") as file:
    for code in stations:
        data = {"code": code, "name": code.upper(), "depth_m": round(chance.uniform(1, 400), 1)}
        file.write(json.dumps({"type": "Station", "data": data}) + "\n")
with (incoming / "samples.jsonl").open("w") as file:
    for n in range(5_000):
        data = {"id2": f"s{n}", "taken": f"2026-{n % 12 + 1:02}-01", "salinity": round(chance.gauss(35, 1), 2)}
        file.write(json.dumps({"type": "Sample", "data": data}) + "\n")
        file.write(json.dumps({"edge": "TakenAt", "from": f"s{n}", "to": chance.choice(stations)}) + "\n")
    # Two invalid records: a station that does not exist, and a value that is not a number.
    file.write('{"edge": "TakenAt", "from": "s1", "to": "st-999"}\n')
    file.write('{"type": "Sample", "data": {"id2": "s5000", "taken": "2026-01-01", "salinity": "high"}}\n')
with (incoming / "Near.csv").open("w") as file:
    file.write("from,to,km\n")
    for one, other in pairwise(stations):
        file.write(f"{one},{other},{chance.uniform(1, 30):.1f}\n")


# %% A graph and a session; an existing session works as well (`SparkSession.builder…getOrCreate()`)
def show(progress: Progress) -> None:
    """Print the progress of a load."""
    print(f"\r  {progress.step}: {progress.done} of {progress.total} tasks ", end="", flush=True)


graph = og.init(work / "sea.omni", SCHEMA)
with open_session() as spark:
    # %% Load a folder as one commit. Nothing is written if a constraint is violated
    try:
        graph.load(incoming, mode="append", spark=spark)
    except og.errors.OmniGraphError as error:
        print(f"rejected: {error.message}")

    # %% Set invalid records aside and load the rest. A second run with the same job id does nothing
    for attempt in ("first", "second"):
        result = graph.load(
            incoming,
            mode="append",
            spark=spark,
            rejects=work / "rejects.parquet",
            job_id="incoming-2026-11",
            message="the incoming folder",
            watch=show,
        )
        print(f"\n{attempt} run: commit {result.commit_id}, {dict(result.tables)}")
    spark.read.parquet(str(work / "rejects.parquet")).select("line", "rule", "reason").show(truncate=False)

    # %% Load a DataFrame onto a branch, review the changes, and merge
    saltier = spark.range(0, 100).selectExpr(
        "concat('s', id) as id2", "date'2026-06-01' as taken", "cast(36.5 as double) as salinity"
    )
    load(spark, graph.uri, nodes={"Sample": saltier}, branch="recalibrated", from_branch="main")
    print(f"{sum(1 for _ in graph.diff('main', 'recalibrated'))} samples changed on branch 'recalibrated'")
    print(graph.merge("recalibrated").outcome)

    # %% Export, one Parquet file per fragment of a table
    rows = graph.export(work / "out", format="parquet", partitioned=True, spark=spark)
    print(f"{rows} rows exported to {work / 'out'}")
    spark.read.parquet(str(work / "out" / "Sample.*.parquet")).groupBy("taken").count().orderBy("taken").limit(3).show()

# %% Query the graph in process
deepest = """query deepest() {
    match { $s: Station }
    return { $s.code, $s.depth_m }
    order { $s.depth_m desc }
    limit 3
}"""
print(graph.query(deepest).to_pylist())
assert graph.verify() == []
