"""`BulkOptions`: the choice of the executor of a bulk operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.pipeline.runner import Watch
    from omnigraph.spark.session import SessionOptions

Engine = Literal["auto", "memory", "spark"]
ENGINES: tuple[Engine, ...] = ("auto", "memory", "spark")


@dataclass(frozen=True)
class BulkOptions:
    """Choice of the executor. `spark` is a session, or the options to open one. `watch` is called with the progress."""

    engine: str = "auto"
    spark: SparkSession | SessionOptions | None = None
    watch: Watch | None = None

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"there is no engine '{self.engine}'", hint=f"the engines are {', '.join(ENGINES)}")
        if self.engine == "memory" and self.spark is not None:
            raise InputError("engine='memory' does not accept a Spark session", hint="omit engine or spark")
