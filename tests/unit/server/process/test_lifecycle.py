"""The life of a server process: readiness, drain, cancelled reads, writes that are left, reload of certificates."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from support.serving import make_graph, running
from support.waiting import wait_for


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_graph(tmp_path_factory.mktemp("graph") / "g.omni")


def test_requests_in_flight_are_answered_and_new_ones_refused(graph):
    with running(graph) as served:
        assert served.holder.phase == "serving"
        read, write = served.get_later("/read"), served.get_later("/write")
        wait_for(lambda: served.app.in_flight_reads == served.app.in_flight_writes == 1)
        served.lifecycle.stop()
        assert served.holder.phase == "draining"
        wait_for(lambda: _is_refused(served), "the end of listening")
        served.app.released.set()
        assert (read().status, write().status) == (200, 200)
        assert served.join() == 0


def _is_refused(served) -> bool:
    try:
        served.get("/ok")
    except OSError:
        return True
    return False


def test_the_server_accepts_requests_until_the_drain_time_ends(graph):
    with running(graph, drain_s=1) as served:
        served.lifecycle.stop()
        assert served.holder.phase == "draining"
        assert served.get("/ok").status == 200
        assert served.join() == 0


def test_reads_are_cancelled_after_their_time(graph):
    with running(graph, read_grace_s=0.2) as served:
        read = served.get_later("/read")
        wait_for(lambda: served.app.in_flight_reads == 1)
        served.lifecycle.stop()
        assert read().status == 503
        assert served.app.cancelled.is_set()
        assert served.join() == 0


def test_a_write_outlives_cancelled_reads(graph):
    with running(graph, read_grace_s=0.1) as served:
        write, read = served.get_later("/write"), served.get_later("/read")
        wait_for(lambda: served.app.in_flight_reads == served.app.in_flight_writes == 1)
        served.lifecycle.stop()
        assert read().status == 503
        served.app.released.set()
        assert write().status == 200
        assert served.join() == 0


def test_a_write_that_is_left_gives_exit_code_1(graph, caplog):
    with running(graph, read_grace_s=0.1, shutdown_grace_s=0.3) as served:
        write = served.get_later("/write")
        wait_for(lambda: served.app.in_flight_writes == 1)
        served.lifecycle.stop()
        assert served.join() == 1
        with pytest.raises(OSError):  # noqa: PT011 (which error depends on the moment of the reset)
            write()
    assert "1 writes did not finish in time" in caplog.text


def test_a_stop_before_the_start_ends_the_process(graph):
    before = set(threading.enumerate())
    with running(graph) as served:
        served.lifecycle.stop()
        assert served.join() == 0
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("omnigraph-reload")]


def test_a_reload_runs_beside_requests(graph):
    with running(graph) as served:
        state = served.holder.current
        served.lifecycle.reload()
        wait_for(lambda: served.holder.current is not state)
        report = served.holder.last_reload
        assert report is not None
        assert (report.ok, report.reason, report.changed) == (True, "SIGHUP", ())
