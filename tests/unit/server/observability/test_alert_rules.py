"""The alert rules of docs/guides/monitor.md name metrics that exist, with labels that they have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from omnigraph.server.observability.metric_table import METRICS

PAGE = Path(__file__).parents[4] / "docs" / "guides" / "monitor.md"
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
LABELS = {
    f"omnigraph_{metric.name}{suffix}": {*metric.labels, "le"}
    for metric in METRICS
    for suffix in _SUFFIXES[metric.kind]
}


def rules() -> list[dict[str, Any]]:
    block = re.search(r"(?s)```yaml file=omnigraph-alerts.yml\n(.*?)```", PAGE.read_text(encoding="utf-8"))
    assert block is not None
    found: list[dict[str, Any]] = [rule for group in yaml.safe_load(block[1])["groups"] for rule in group["rules"]]
    return found


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule["alert"]))
def test_a_rule_uses_metrics_and_labels_of_the_server(rule: dict[str, Any]) -> None:
    names = re.findall(r"\bomnigraph_\w+", rule["expr"])
    assert set(names) <= set(LABELS)
    known = {label for name in names for label in LABELS[name]} | {"job"}
    selectors = re.findall(r"(\w+)=~?\"", rule["expr"])
    grouped = [label.strip() for labels in re.findall(r"by \(([^)]*)\)", rule["expr"]) for label in labels.split(",")]
    shown = re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"])
    assert {*selectors, *grouped, *shown} <= known
    assert rule["expr"].count("(") == rule["expr"].count(")")


def test_the_rules_have_different_names() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names)) > 5
