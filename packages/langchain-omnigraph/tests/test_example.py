"""The langgraph example: an agent that writes on a branch and proposes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "reviewed_agent.py"


def test_the_agent_writes_on_a_branch_and_proposes(capsys):
    spec = importlib.util.spec_from_file_location("reviewed_agent", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example
    spec.loader.exec_module(example)
    example.main()
    assert capsys.readouterr().out.splitlines() == [
        "recall: ['commit', 'rows']",
        "correct: ['branch', 'commit', 'affected_nodes', 'affected_edges']",
        "propose: ['proposal', 'state', 'source', 'target', 'blocked_by']",
        "on main still: [{'f.slug': 'deploy'}]",
        "ready: Deployments moved to Tuesday ['insert edge:Supersedes', 'insert node:Fact']",
        "after the landing: The billing service is deployed on Tuesdays.",
    ]
