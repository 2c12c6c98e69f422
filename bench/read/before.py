"""`python -m bench.read --before REF`: every read workload on this checkout and on an older commit, alternating.

Both versions run in separate processes with the workloads of this checkout, on copies of one stored graph. This
checkout writes the graph; the older commit must be able to read it. Ratios compare adjacent rounds, so other load on
the machine matters little.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from multiprocessing.connection import Client, Listener
from pathlib import Path
from statistics import median
from typing import Any

from bench.formulations import Clause, Condition, Node, hop
from bench.read.graph import SIZES, Data, make
from bench.read.side_by_side import WORKLOADS, Disagreement
from bench.read.systems import OmniGraph
from bench.read.workers import Asked, prepare, serve
from bench.read.workloads import Workload

ROOT = Path(__file__).parents[2]
AT_MOST = 1.05
"""Allowed ratio to the previous time."""


def ranked(data: Data) -> tuple[Workload, ...]:
    """Searches and rankings on the same graph, for words and a vector that occur in it."""
    posts = data.read("post")
    words: dict[str, Any] = {"t": " ".join(posts["text"][0].as_py().split()[:2])}
    vector: dict[str, Any] = {"v": posts["vec"][1].as_py()}

    def best(name: str, rank: str, *clauses: Clause, **params: Any) -> Workload:
        rest = f"return {{ $p.key }} order {{ {rank} }} limit 10"
        return Workload(name, (*clauses, hop("a wrote p")) if clauses else (post,), rest, keyed=False, params=params)

    post = Node("p", "Post")
    found = Condition("search($p.text, $t)", "", "", ("p",))
    city = Node("a", "Person", (("city", '"c7"'),))
    listed = "return { $p.key, $p.likes } order { $p.likes desc }"
    return (
        best("BM25 top 10", "bm25($p.text, $t)", **words),
        best("BM25 top 10 behind a hop", "bm25($p.text, $t)", city, **words),
        best("hybrid RRF", "rrf(nearest($p.vec, $v), bm25($p.text, $t))", **vector, **words),
        Workload("posts with a word, counted", (post, found), "return { count($p) as n }", keyed=False, params=words),
        Workload("posts of a person by likes", (Node("a", "Person", (("key", "$start"),)), hop("a wrote p")), listed),
    )


@dataclass(frozen=True)
class Compared:
    """One workload: milliseconds before and now, and the ratio of each round."""

    name: str
    before_ms: float
    now_ms: float
    ratios: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Median ratio of now to before."""
        return median(self.ratios)


class VersionWorker(Asked):
    """This benchmark in a process that imports the package from another folder."""

    def __init__(self, source: Path, folder: Path, data: Data, workloads: Sequence[Workload]) -> None:
        paths = os.pathsep.join([str(source), str(ROOT)])
        with Listener(family="AF_UNIX") as listener:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.read.before", str(listener.address)],
                env={**os.environ, "PYTHONPATH": paths},
            )
            super().__init__(str(source), listener.accept())
        self._here.send((folder, data, tuple(workloads)))

    def close(self) -> None:
        """Terminate the process."""
        self._here.close()
        self._process.wait(20)


def compare(size: str, folder: Path, ref: str, *, rounds: int, seconds: float, only: str = "") -> list[Compared]:
    """Every workload whose name contains `only`, before and now."""
    data = make(SIZES[size], folder)
    workloads = [workload for workload in (*WORKLOADS, *ranked(data)) if only in workload.name]
    ours = data.folder.parent / OmniGraph.name
    prepare(OmniGraph(ours), data, ours)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        place = Path(scratch)
        sources = {"before": _older(ref, place / "source") / "src", "now": ROOT / "src"}
        workers: dict[str, VersionWorker] = {}
        try:
            for name, source in sources.items():
                copy = place / name
                shutil.copytree(ours, copy, ignore=shutil.ignore_patterns("__cache"))
                workers[name] = VersionWorker(source, copy, data, workloads)
                workers[name].prepare()
            return [
                _compared(number, workload, workers, rounds, seconds)
                for number, workload in enumerate(workloads)
                if _understands(workers["before"], number, workload)
            ]
        finally:
            for worker in workers.values():
                worker.close()


def table(found: Sequence[Compared], ref: str) -> str:
    """The figures as a table."""
    width = max(len(one.name) for one in found) + 2
    lines = [f"{'ms':<{width}}{ref[:10]:>12}{'now':>12}{'ratio':>9}"]
    for one in found:
        slower = "  SLOWER" if one.ratio > AT_MOST else ""
        lines.append(f"{one.name:<{width}}{one.before_ms:>12.3f}{one.now_ms:>12.3f}{one.ratio:>9.2f}{slower}")
    lines.append(f"{'median':<{width}}{'':>24}{median(one.ratio for one in found):>9.2f}  asked ≤ {AT_MOST} each")
    return "\n".join(lines)


def _understands(older: VersionWorker, place: int, workload: Workload) -> bool:
    """True if the older commit accepts the workload; a new construct has no earlier time."""
    try:
        older.answers(place)
    except RuntimeError as error:
        if "ParseError" not in str(error) and "TypeCheckError" not in str(error):
            raise
        print(f"  {workload.name}: unknown before", flush=True)
        return False
    return True


def _compared(
    place: int, workload: Workload, workers: dict[str, VersionWorker], rounds: int, seconds: float
) -> Compared:
    answers = {name: worker.answers(place) for name, worker in workers.items()}
    if answers["before"] != answers["now"]:
        raise Disagreement(f"{workload.name}: before {str(answers['before'])[:300]}, now {str(answers['now'])[:300]}")
    taken: dict[str, list[float]] = {"before": [], "now": []}
    for number in range(rounds):
        for name in ("before", "now") if number % 2 else ("now", "before"):
            taken[name].append(median(workers[name].time(place, seconds)) * 1000)
    ratios = tuple(now / before for before, now in zip(taken["before"], taken["now"], strict=True))
    found = Compared(workload.name, median(taken["before"]), median(taken["now"]), ratios)
    print(f"  {found.name}: {found.before_ms:.3f} before, {found.now_ms:.3f} now, {found.ratio:.2f}", flush=True)
    return found


def _older(ref: str, folder: Path) -> Path:
    """The extracted tree of a commit."""
    packed = subprocess.run(["git", "archive", ref], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


if __name__ == "__main__":
    with Client(sys.argv[1]) as pipe:
        place, data, workloads = pipe.recv()
        serve(OmniGraph.name, place, data, workloads, pipe)
