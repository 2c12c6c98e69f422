"""Spark sessions: the one place that builds them.

A session is open for the duration of a block. A session that already exists, given or active in this process, is used
unchanged and not stopped; only a session created here is stopped. The JVM stays until the process ends, so a second
session starts fast.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InputError, SparkError
from omnigraph.redaction import redact_uri
from omnigraph.spark.cds_archive import archive_options
from omnigraph.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*,4]"
"""All cores of this machine. A task is tried four times, as on a cluster; plain `local[*]` tries it once."""

_log = logging.getLogger(__name__)
_SMALL_MACHINE_CORES = 4
_LOG_TAIL_LINES = 12
_FOLDER = "omnigraph-spark-"
_QUIET_LOGGING = """rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
"""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_COMPILE_LATE = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times the default thresholds for the second compilation tier: a start ends before they are reached, and a long
join reaches them soon. This saves two of seven seconds of a start."""

_starting = RLock()


@dataclass(frozen=True)
class SessionOptions:
    """Where Spark runs: in this process, on a cluster by its `master`, or behind a Spark Connect URL (`remote`).

    `config` holds Spark settings, which override the defaults.
    """

    master: str | None = None
    remote: str | None = field(default=None, repr=False)
    config: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InputError("master and remote exclude each other", hint="give only one of them")

    @property
    def is_default(self) -> bool:
        """True if the options accept any session."""
        return self.master is None and self.remote is None and not self.config


@contextmanager
def open_session(
    options: SessionOptions | None = None,
    *,
    spark: SparkSession | None = None,
    environ: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Open a session for a block: `spark` itself, the active session, or a new one that is stopped at the end.

    Raises `SparkError` if the active session does not run where `options` requires.
    """
    options = options or SessionOptions()
    if spark is not None:
        yield spark
        return
    _require_pyspark()
    with _starting:
        active = find_active()
        if active is not None:
            _check_fits(active, options)
            session = active
        else:
            session = _start(options, os.environ if environ is None else environ)
    try:
        yield session
    finally:
        if active is None:
            _stop(session)


def _stop(session: SparkSession) -> None:
    """Stop a session. If its JVM has died, there is nothing to stop, and the work of the block has its own error."""
    try:
        session.stop()
    except Exception as error:
        if not is_of_spark(error):
            raise
        _log.warning("the Spark session ended before it was stopped: %s", error)


def is_of_spark(error: Exception) -> bool:
    """Return True for an error that PySpark raises; calls of a JVM that has died raise errors of the connection."""
    from py4j.protocol import Py4JError  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415

    return isinstance(error, PySparkException | Py4JError | ConnectionError)


@contextmanager
def session_for(
    given: SparkSession | SessionOptions | None, environ: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """Open a session for a block from a session, options, or None."""
    options, spark = (given, None) if isinstance(given, SessionOptions) else (None, given)
    with open_session(options, spark=spark, environ=environ) as session:
        yield session


def find_active() -> SparkSession | None:
    """Return the active session of this process, or None."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    try:
        active: Any = SparkSession.active()
    except PySparkException:
        return None
    if is_connect(active):
        return None if active.is_stopped else active
    # PySpark still returns a stopped session, without its context.
    return active if active.sparkContext._jsc is not None else None


def is_connect(spark: SparkSession) -> bool:
    """True for a session of Spark Connect, which has no context and no JVM in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Return the folder of files that later starts reuse."""
    base = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME") or tempfile.gettempdir(), ".cache"))
    return Path(base, "omnigraph", "spark")


def _require_pyspark() -> None:
    if find_spec("pyspark") is None:
        raise SparkError(
            "Spark is not installed", code="spark_missing", hint="install it with pip install 'omnigraph[spark]'"
        )


def _check_fits(active: SparkSession, options: SessionOptions) -> None:
    if options.remote is not None and not is_connect(active):
        raise _busy("a session of this process")
    if options.master is not None:
        master = "Spark Connect" if is_connect(active) else active.sparkContext.master
        if master != options.master:
            raise _busy(f"'{master}'")


def _busy(where: str) -> SparkError:
    return SparkError(
        f"a Spark session is already active on {where}; a process has only one at a time",
        code="spark_busy",
        hint="omit master and remote to use it, or stop it first",
    )


def _start(options: SessionOptions, environ: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    builder: Any = SparkSession.builder.appName("omnigraph")
    if options.remote is not None:
        builder = builder.remote(options.remote)
        for key, value in options.config.items():
            builder = builder.config(key, value)
        try:
            session: SparkSession = builder.getOrCreate()
            session.version  # noqa: B018 (the first request to the server)
        except Exception as error:
            raise _start_failed(f"Spark Connect at {redact_uri(options.remote)} does not answer", error) from error
        return session
    settings, launch = _settings(options, environ)
    for key, value in settings.items():
        builder = builder.config(key, value)
    log = _process_folder() / "spark.log"
    with _environment(launch), _stderr_to(log), _no_fork_warning():
        try:
            made: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise _start_failed("Spark does not start", error, log) from error
    return made


def _settings(options: SessionOptions, environ: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str | None]]:
    """Return the Spark settings and the environment of the launcher."""
    import pyspark  # noqa: PLC0415

    cache = cache_folder(environ)
    with suppress(OSError):
        cache.mkdir(parents=True, exist_ok=True)
    folder = _process_folder()
    java = find_java(environ, cache if os.access(cache, os.W_OK) else folder)
    master = options.master or LOCAL
    logging = folder / "log4j2.properties"
    logging.write_text(_QUIET_LOGGING, encoding="utf-8")
    archive = archive_options(java, pyspark.__version__, Path(pyspark.__file__).parent, cache)
    cores = os.cpu_count() or 1
    java_options = [f"-Dlog4j2.configurationFile=file:{logging}", *archive, *_COMPILE_LATE]
    if cores <= _SMALL_MACHINE_CORES:
        java_options.append("-XX:+UseSerialGC")
    settings = {
        "spark.master": master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # For small join partitions, a hash join is faster than sorting both sides.
        "spark.sql.adaptive.maxShuffledHashJoinLocalMapThreshold": "64m",
        "spark.speculation": "false",
    }
    launch: dict[str, str | None] = {"JAVA_HOME": str(java.home) if java.home is not None else None}
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.shuffle.partitions": str(2 * cores),
        }
        launch |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": environ.get("PYSPARK_PYTHON", sys.executable)}
    settings |= options.config
    given = options.config.get(_JAVA_OPTIONS, "")
    settings[_JAVA_OPTIONS] = " ".join([*(f'"{option}"' for option in java_options), given]).rstrip()
    return settings, launch


@lru_cache(maxsize=1)
def _process_folder() -> Path:
    """Return the temporary folder of this process; removed at its exit, or after a crash by a later process."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{_FOLDER}*"):
        pid = left.name.removeprefix(_FOLDER).partition("-")[0]
        if pid.isdigit() and not _is_alive(int(pid)):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextmanager
def _environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    """Change the environment of this process, which the launcher inherits, for a block."""
    before = {name: os.environ.get(name) for name in changes}
    _apply(changes)
    try:
        yield
    finally:
        _apply(before)


def _apply(changes: Mapping[str, str | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Redirect the stderr of processes started in the block to a file; this process keeps its own."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)


@contextmanager
def _no_fork_warning() -> Iterator[None]:
    """Suppress the fork warning of Lance: the launcher runs another program after the fork and does not use Lance."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*fork.safe.*")
        yield


def _start_failed(message: str, error: Exception, log: Path | None = None) -> SparkError:
    hint = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if log is not None and log.exists():
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_TAIL_LINES:]
        hint = "\n".join(["the end of its log:", *tail]) if tail else hint
    return SparkError(message, code="spark_start_failed", hint=hint)
