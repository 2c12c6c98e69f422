"""The supervisor of worker processes: the error of a worker that does not start."""

from __future__ import annotations

import signal

import pytest

from omnigraph.errors import StorageError
from omnigraph.server.deployment.settings import default_settings
from omnigraph.server.deployment.state_builder import StartOptions
from omnigraph.server.main import start_process
from omnigraph.server.process.lifecycle import RELOAD_SIGNAL, STOP_SIGNALS
from omnigraph.server.process.listening import bind
from omnigraph.server.process.workers import Supervisor


def test_the_error_of_the_first_worker_is_raised(tmp_path):
    before = {number: signal.getsignal(number) for number in (*STOP_SIGNALS, *filter(None, [RELOAD_SIGNAL]))}
    options = StartOptions((str(tmp_path / "none.omni"),), environ={})
    try:
        with bind(default_settings(bind="127.0.0.1:0")) as listener:
            supervisor = Supervisor(start_process, options, listener, 2)
            with pytest.raises(StorageError, match="graph 'default' cannot be opened"):
                supervisor.run(lambda: pytest.fail("no worker serves"))
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
