"""Writers killed at random times, with concurrent compaction and cleanup."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import omnigraph as og
from support.store import Worker, check_sound, check_usable, collect, new_graph, repository_of, seeds, settle

GRACE_S = 15.0
"""Longer than the time between promotion and publish in this test."""


@dataclass
class Storm:
    """Counts of the run."""

    kills: int = 0
    kills_of_maintenance: int = 0
    acknowledged: int = 0
    commits: int = 0
    unacknowledged: int = 0
    in_groups: int = 0
    """Commits that pin a part of a version."""
    optimized: int = 0
    versions_removed: int = 0
    rolled_forward: int = 0
    rolled_back: int = 0
    seconds: float = 0.0


def storm(folder: Path, *, kills: int, writers: int, seconds: float, threads: int = 1) -> Storm:
    """Kill writers until `kills` or `seconds` are reached, then check that no commit is lost, duplicated or partial.

    Writers with several threads publish their commits in groups.
    """
    root = folder / "storm"
    new_graph(root, 6, age=timedelta(hours=1))
    known = sorted(seeds(6))
    done = rage(folder, root, kills=kills, writers=writers, seconds=seconds, known=known, threads=threads)
    collect(check_usable(root))
    return done


def count_parts(graph: og.Graph) -> int:
    """Return the number of commits that pin a part of a version."""
    repository = repository_of(graph)
    every = repository.all_pins(repository.state()).values()
    return sum(any(pin.part is not None for pin in pins) for pins in every)


def rage(
    folder: Path,
    uri: str | Path,
    *,
    kills: int,
    writers: int,
    seconds: float,
    known: list[str],
    environ: Mapping[str, str] | None = None,
    threads: int = 1,
) -> Storm:
    """Run the kills and the checks common to all stores."""
    done = Storm()
    chance = random.Random(kills)
    acknowledged = list(known)
    started = time.monotonic()
    number = 0
    with ExitStack() as stack:

        def start(do: str, **what: object) -> Worker:
            nonlocal number
            number += 1
            return stack.enter_context(Worker(folder, uri, do, name=f"{do}-{number}", environ=environ, **what))

        def retire(worker: Worker) -> None:
            worker.kill()
            acknowledged.extend(worker.wrote())
            said = worker.said()
            done.optimized += sum(bool(line.get("optimized")) for line in said)
            done.versions_removed += sum(line.get("cleaned", 0) for line in said)
            assert "Traceback" not in worker.trouble(), worker.trouble()

        def write() -> Worker:
            return start("commits") if threads == 1 else start("grouped", threads=threads)

        maintenance = start("maintain", grace_s=GRACE_S)
        alive = [write() for _ in range(writers)]
        while done.kills < kills and time.monotonic() - started < seconds:
            victim = alive.pop(0)
            # From here on the writer is inside a commit or between two commits; every second one of several threads
            # has published a group, also on a busy machine.
            least = threads if threads > 1 and done.kills % 2 == 0 else 0
            assert victim.wait_for(lambda worker, least=least: len(worker.said()) > least), victim.trouble()
            time.sleep(chance.uniform(0.0, 0.1))
            retire(victim)
            done.kills += 1
            alive.append(write())
            if done.kills % 10 == 0:
                retire(maintenance)
                done.kills_of_maintenance += 1
                maintenance = start("maintain", grace_s=GRACE_S)
        for worker in (*alive, maintenance):
            retire(worker)
        done.kills += len(alive)
    done.seconds = round(time.monotonic() - started, 1)
    settled = settle(uri, environ=environ)
    done.rolled_forward = sum(entry.outcome == "rolled_forward" for entry in settled.report)
    done.rolled_back = sum(entry.outcome == "rolled_back" for entry in settled.report)
    graph = og.open(uri, environ=environ)
    commits = check_sound(graph, acknowledged, in_flight=done.kills * threads)
    done.acknowledged = len(acknowledged)
    done.commits = len(commits)
    done.in_groups = count_parts(graph)
    done.unacknowledged = sum(commit.kind == "write" for commit in commits) - len(acknowledged)
    return done
