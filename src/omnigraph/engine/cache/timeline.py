"""Rows that hold at an instant, or in an interval, of valid time.

A `Timeline` of a table version holds the starts in order, and the rows that hold at some of them. The rows at another
instant are those at the last of these, and the ones that begin in between, without those that have ended. The time to
find them depends on the number of rows that hold, not on the number of periods in the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.cache.row_mapping import FragmentLayout
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData, UseCounter
from omnigraph.engine.cache.visibility import Judge, JudgedRows, RowCondition
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.query.visibility import PeriodTest
from omnigraph.scalar_types.columns import as_numbers

Int64s = np.ndarray[Any, np.dtype[np.int64]]
Rows = np.ndarray[Any, np.dtype[np.int32]]

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
"""The start and the end of a period that is open on both sides."""
_STOPS_MAX = 256
_SORTED_SHARE = 8
"""Up to this share of the rows, as a divisor, a sort of row numbers is faster than a scan of a mask."""
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Periods:
    """The start and the end of the period of each row, in milliseconds."""

    low: Int64s
    high: Int64s

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return int(self.low.nbytes + self.high.nbytes)

    @classmethod
    def of(cls, data: TableData, start: str, end: str) -> Periods:
        """Return the periods of all rows of a table version."""
        return data.derived(_name(start, end), lambda: cls(_bounds(data, start, LEAST), _bounds(data, end, MOST)))

    @classmethod
    def known(cls, data: TableData, start: str, end: str) -> Periods | None:
        """Return the periods of a table version if they are in memory; else None."""
        found: Periods | None = data.cache.find((*data.key, _name(start, end)))
        return found

    def overlap(self, rows: Numbers, other: Periods, others: Numbers) -> Mask:
        """Return for each pair of rows of two tables whether their periods share an instant."""
        return (self.low[rows] < other.high[others]) & (other.low[others] < self.high[rows])


def _name(start: str, end: str) -> str:
    return f"periods:{start}:{end}"


def _bounds(data: TableData, name: str, absent: int) -> Int64s:
    if not data.has_column(name):
        return np.full(data.row_count, absent)
    numbers = as_numbers(data.column(name)).cast(pa.int64())
    found: Int64s = pc.fill_null(pc.multiply(numbers, unit_of(data, name)), absent).to_numpy(zero_copy_only=False)
    return found


def unit_of(data: TableData, name: str) -> int:
    """Return the milliseconds of a unit of a column: a day or a millisecond."""
    return _DAY_MS if pa.types.is_date32(data.column_type(name)) else 1


@dataclass(frozen=True)
class Timeline:
    """The rows of a table version by start, and the rows that hold at some instants."""

    periods: Periods
    starts: Int64s
    """The starts in ascending order."""
    by_start: Rows
    """The row of each start."""
    stops: Int64s
    """Positions in `starts`, ascending: the rows before each are divided into those that hold there and the others."""
    holding: tuple[Rows, ...]
    """The rows before each stop that hold at the last start before it."""

    @property
    def nbytes(self) -> int:
        """The size in memory, without the periods."""
        return int(self.starts.nbytes + self.by_start.nbytes + sum(some.nbytes for some in self.holding))

    @classmethod
    def of(cls, data: TableData, start: str, end: str) -> Timeline:
        """Return the timeline of a table version."""
        return data.derived(f"timeline:{start}:{end}", lambda: cls.build(Periods.of(data, start, end)))

    @classmethod
    def build(cls, periods: Periods) -> Timeline:
        """Build the timeline of periods.

        A stop follows when as many rows have begun as hold at the stop before, so that all stops together hold about as
        many rows as the table has.
        """
        by_start = np.argsort(periods.low, kind="stable").astype(np.int32)
        starts = periods.low[by_start]
        step_min = max(1024, len(starts) // _STOPS_MAX)
        stops, holding = [0], [np.zeros(0, np.int32)]
        while stops[-1] + max(len(holding[-1]), step_min) < len(starts):
            first, stop = stops[-1], stops[-1] + max(len(holding[-1]), step_min)
            instant = starts[stop - 1]
            rows = np.concatenate([holding[-1], by_start[first:stop]])
            stops.append(stop)
            holding.append(rows[periods.high[rows] > instant])
        return cls(periods, starts, by_start, np.array(stops), tuple(holding))

    def rows_in(self, instant: int, until: int | None = None) -> Rows:
        """Return the rows that hold at an instant, or in the interval from it to `until`, in no particular order."""
        begun = int(np.searchsorted(self.starts, instant, side="right"))
        at = int(np.searchsorted(self.stops, begun, side="right")) - 1
        rows = np.concatenate([self.holding[at], self.by_start[self.stops[at] : begun]])
        rows = rows[self.periods.high[rows] > instant]
        if until is not None:
            later = self.by_start[begun : int(np.searchsorted(self.starts, until, side="left"))]
            rows = np.concatenate([rows, later])
        return rows


class PeriodCondition(RowCondition):
    """The condition of a valid clause, and of a policy if there is one, on the rows of one table version."""

    def __init__(
        self, condition: ir.Condition, data: TableData, judge: Judge, test: PeriodTest, rest: RowCondition | None
    ) -> None:
        super().__init__(condition, data, judge)
        self._test = test
        self._rest = rest

    @property
    def is_slice(self) -> bool:  # type: ignore[override]
        """True if the condition shows the rows of an instant of a large table."""
        return self._data.row_count >= tuning.current.timeline_rows_min

    def holds(self, numbers: Numbers) -> Mask:
        """Return for some rows whether the condition is true."""
        data, test = self._data, self._test
        known: JudgedRows | None = data.cache.find(self._key)
        if known is not None:
            return known.mask[numbers]
        periods = Periods.known(data, test.start, test.end)
        if periods is None:
            if self._is_judged_alone(len(numbers)):
                return self._judge(self._condition, data, numbers)
            periods = Periods.of(data, test.start, test.end)
        low, high = periods.low[numbers], periods.high[numbers]
        instant, until = self._milliseconds()
        seen: Mask = (high > instant) & ((low <= instant) if until is None else (low < until))
        return seen if self._rest is None else seen & self._rest.holds(numbers)

    def _milliseconds(self) -> tuple[int, int | None]:
        """Return the instant, or the start and the end of the interval, in milliseconds."""
        test = self._test
        unit = unit_of(self._data, test.start) if self._data.has_column(test.start) else 1
        return test.instant * unit, None if test.until is None else test.until * unit

    def _judged(self) -> JudgedRows:
        data = self._data
        uses = data.derived("uses:timeline", UseCounter).increment()
        if data.row_count < tuning.current.timeline_rows_min or uses <= tuning.current.scans_before_timeline:
            return super()._judged()
        rows = Timeline.of(data, self._test.start, self._test.end).rows_in(*self._milliseconds())
        if self._rest is not None:
            rows = rows[self._rest.holds(rows.astype(np.int64))]
        layout, count = FragmentLayout.of(data), data.row_count
        if len(rows) * _SORTED_SHARE < count:
            return JudgedRows(layout, None, np.sort(rows).astype(np.int64), count)
        mask = np.zeros(count, bool)
        mask[rows] = True
        # A scan of the mask orders many rows faster than a sort.
        return JudgedRows(layout, mask, np.flatnonzero(mask))
