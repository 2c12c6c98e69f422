"""Spark sessions for tests: one fast-starting JVM per run; a cluster and a Connect server on loopback."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from omnigraph.spark import SessionOptions, open_session
from omnigraph.spark.java import find_java

FAST = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "2",
    # Small jobs end before the optimising compiler pays off.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    # Workers import functions of the tests.
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[1]),
}
INTERPRETED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""Interpret plans: compiling takes longer for a few rows. The sessions on a cluster and on Connect compile them."""
_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_START_S = 90
_HERE = Path(__file__).parents[1]


@contextmanager
def local_session() -> Iterator[Any]:
    """A session in this process, with two cores and the retries of a cluster."""
    with open_session(SessionOptions(master="local[2,4]", config={**FAST, **INTERPRETED})) as spark:
        yield spark


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[SessionOptions]:
    """Start a master and two worker processes; yield the session options."""
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        master = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port)]
        _daemon_of(stack, ["spark-class", *master, "--webui-port", "0"], folder / "master.log", port)
        for number in (1, 2):
            worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g"]
            place = ["-d", str(folder / f"worker-{number}"), "--webui-port", "0", url]
            _daemon_of(stack, ["spark-class", *worker, *place], folder / f"worker-{number}.log")
        config = {
            **FAST,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "600m",
            "spark.executor.extraJavaOptions": _JVM,
        }
        yield SessionOptions(master=url, config=config)


@contextmanager
def connect_server(folder: Path) -> Iterator[SessionOptions]:
    """Start a Spark Connect server with a token; yield the session options."""
    port, token = _free_port(), secrets.token_hex(8)
    settings = {
        **FAST,
        "spark.driver.extraJavaOptions": _JVM,
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
    }
    conf = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    server = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2,4]"]
    with ExitStack() as stack:
        _daemon_of(stack, ["spark-submit", *server, *conf], folder / "connect.log", port, memory="1g")
        yield SessionOptions(remote=f"sc://localhost:{port}/;token={token}")


def run_elsewhere(options: SessionOptions, folder: Path, module: str = "support.spark_places") -> str:
    """The output of a module with these session options, in a separate process.

    A process has one session at a time, and this process holds the session of the tests.
    """
    import msgspec  # noqa: PLC0415

    command = [sys.executable, "-m", module, str(folder), msgspec.json.encode(options).decode()]
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def _environment(memory: str = "256m") -> dict[str, str]:
    paths = [str(_HERE), str(_HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    java = find_java(os.environ, Path.home() / ".cache" / "omnigraph" / "spark")
    return {
        **os.environ,
        **({"JAVA_HOME": str(java.home)} if java.home is not None else {}),
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": memory,
        "SPARK_DAEMON_JAVA_OPTS": _JVM,
        "SPARK_CONNECT_MODE": "0",
    }


def _daemon_of(
    stack: ExitStack, command: Sequence[str], log: Path, port: int | None = None, memory: str = "256m"
) -> None:
    """Run a program of PySpark until the stack closes; with a port, wait until it listens."""
    import pyspark  # noqa: PLC0415

    program = Path(pyspark.__file__).parent / "bin" / command[0]
    file = stack.enter_context(log.open("wb"))
    process = subprocess.Popen(
        [program, *command[1:]], env=_environment(memory), cwd=log.parent, stdout=file, stderr=subprocess.STDOUT
    )
    stack.callback(_end, process)
    for _ in range(_START_S * 10 if port is not None else 0):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port or 0)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    assert port is None, f"nothing listens on port {port}: {log.read_text(errors='replace')[-4000:]}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])
