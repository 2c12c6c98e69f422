"""docs/metrics.md agrees with the table of metrics. `OMNIGRAPH_UPDATE_GOLDEN=1` rewrites it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from omnigraph.server.observability.metric_reference import END, START, metrics_reference
from omnigraph.server.observability.metric_table import METRICS

PAGE = Path(__file__).parents[4] / "docs" / "metrics.md"


def test_table_of_metrics_is_current() -> None:
    before, rest = PAGE.read_text(encoding="utf-8").split(START)
    held, after = rest.split(END)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        PAGE.write_text(f"{before}{START}\n\n{metrics_reference()}\n\n{END}{after}", encoding="utf-8")
    else:
        assert held.strip() == metrics_reference()


def test_every_metric_is_described_in_a_sentence() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(set(names)) == len(names)
    for metric in METRICS:
        assert re.fullmatch(r"[A-Z0-9].*\.", metric.description), metric.name


def test_labels_are_bounded() -> None:
    bounded = {"method", "route", "graph", "status", "lane", "state", "limit", "action", "decision", "reason", "kind"}
    bounded |= {"table", "op", "owner", "result", "version", "storage_format", "python", "webhook"}
    assert {label for metric in METRICS for label in metric.labels} <= bounded
