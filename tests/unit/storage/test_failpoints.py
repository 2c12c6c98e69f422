"""Failpoints: named points at which a test can stop a write."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

import omnigraph
from omnigraph.storage import failpoints
from omnigraph.storage.failpoints import NAMES, FailpointError, arm, arm_from_environment, reach


@pytest.fixture(autouse=True)
def _disarmed():
    yield
    failpoints._armed.clear()


def test_nothing_happens_when_nothing_is_armed():
    for name in NAMES:
        reach(name)


def test_an_armed_failpoint_raises_within_the_block_only():
    with arm("intent.write"):
        reach("intent.written")
        with pytest.raises(FailpointError, match=r"intent\.write"):
            reach("intent.write")
    reach("intent.write")


def test_a_custom_action_runs():
    reached = []
    with arm("table.staged", lambda: reached.append("here")):
        reach("table.staged")
        reach("table.staged")
    assert reached == ["here", "here"]


def test_the_block_disarms_after_an_error():
    with pytest.raises(FailpointError), arm("table.staged"):
        reach("table.staged")
    reach("table.staged")


def test_an_unknown_failpoint_cannot_be_armed():
    with pytest.raises(AssertionError), arm("no.such.place"):
        pass
    with pytest.raises(AssertionError, match=r"no\.such\.place"):
        arm_from_environment("no.such.place=error")


def test_the_environment_arms_several_failpoints():
    arm_from_environment("table.staged=error,intent.write=2:error")
    with pytest.raises(FailpointError):
        reach("table.staged")
    reach("intent.write")
    reach("intent.write")
    with pytest.raises(FailpointError):
        reach("intent.write")


def test_an_empty_variable_arms_nothing():
    arm_from_environment("")
    assert not failpoints._armed


def test_kill_sends_sigkill(monkeypatch):
    sent = []
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    arm_from_environment("publish.before_commit=1:kill")
    reach("publish.before_commit")
    assert sent == []
    reach("publish.before_commit")
    assert sent == [(os.getpid(), signal.SIGKILL)]


def test_listed_and_used_failpoints_are_the_same():
    own = Path(failpoints.__file__)
    files = [path for path in Path(omnigraph.__file__).parent.rglob("*.py") if path != own]
    reached = {name for path in files for name in re.findall(r'reach\("([^"]+)"\)', path.read_text(encoding="utf-8"))}
    assert reached == set(NAMES)
