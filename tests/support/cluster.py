"""Spark beyond this process, on 127.0.0.1, from PySpark's own files: a standalone cluster, a Connect server."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

HOST = "127.0.0.1"
_START_S = 120.0
_HOME = Path(pyspark.__file__).parent
_ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
"""The import path of workers: the package and the tasks of the tests."""


def environment(folder: Path) -> dict[str, str]:
    """The environment of every cluster process."""
    for name in ("logs", "work", "local"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return {
        **os.environ,
        "PYTHONPATH": PATHS,
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": HOST,
        "SPARK_LOG_DIR": str(folder / "logs"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_DAEMON_MEMORY": "768m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }


@contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[str]:
    """Start a master and workers with one core each; yield the address of the master."""
    port = _free_port()
    address = f"spark://{HOST}:{port}"
    spark_class, deploy = str(_HOME / "bin" / "spark-class"), "org.apache.spark.deploy"
    with ExitStack() as stack:
        command = [spark_class, f"{deploy}.master.Master", "--host", HOST, "--port", str(port), "--webui-port", "0"]
        stack.enter_context(_running(command, folder, "master"))
        _wait_for(port, folder / "master.log")
        for number in range(workers):
            options = ["--host", HOST, "--cores", "1", "--memory", "1500m", "--webui-port", "0"]
            command = [spark_class, f"{deploy}.worker.Worker", *options, address]
            stack.enter_context(_running(command, folder, f"worker-{number}"))
        _wait_for_words(folder / "master.log", "Registering worker", workers)
        yield address


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a Spark Connect server with token authentication; yield its address with the token."""
    port, token = _free_port(), secrets.token_hex(16)
    settings = {
        "spark.master": "local[2,4]",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.connect.grpc.binding.address": HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    command = [str(_HOME / "bin" / "spark-submit")]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    with _running([*command, "spark-internal"], folder, "connect"):
        _wait_for(port, folder / "connect.log")
        # With a numeric address, a client requires encryption.
        yield f"sc://localhost:{port}/;token={token}"


@contextmanager
def _running(command: Sequence[str], folder: Path, name: str) -> Iterator[None]:
    """Run a program and its children until the block ends."""
    settings = environment(folder)
    with (folder / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env=settings, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port


def _wait_for(port: int, log: Path) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex((HOST, port)) == 0:
                return
        time.sleep(0.2)
    raise AssertionError(f"nothing answers on port {port}: {log.read_text()[-2000:]}")


def _wait_for_words(log: Path, words: str, times: int) -> None:
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if log.read_text(errors="replace").count(words) >= times:
            return
        time.sleep(0.2)
    raise AssertionError(f"'{words}' was not said {times} times: {log.read_text()[-2000:]}")
