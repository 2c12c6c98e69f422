"""Driver that validates a staged input on one snapshot, in rounds.

One round finds the first violation. If wrong records are set aside, rounds repeat on the remaining records until no
violation is found, as in a load in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.write.delta import RuleCheck, Violation
from omnigraph.operations.load import load_rules
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import shares
from omnigraph.pipeline.shuffle import Shuffle
from omnigraph.pipeline.stage_task import GIVEN_IDS, LOOSE, POSITION, RECORDS, WRITTEN, StagedSplit
from omnigraph.pipeline.staged_input import StagedInput
from omnigraph.pipeline.upsert_task import Completed, complete, match, read_origins
from omnigraph.pipeline.validate_task import (
    MATCHES,
    STORED,
    CheckId,
    RoundPlan,
    ScanWork,
    ValidationResult,
    scan,
    validate,
    write_plan,
)
from omnigraph.pipeline.violations import LocatedViolation, rank
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

T = TypeVar("T")
Files = dict[str, list[str]]
"""Table key → names of files."""

_ID_BYTES = 50
"""Approximate size of an id that a task holds."""


@dataclass(frozen=True)
class Outcome:
    """Result of a validation: the completed buckets of a merge."""

    completed: Sequence[Completed] = ()

    def replaced(self) -> Files:
        """Table key → the files that list replaced rows."""
        found: Files = {}
        for done in self.completed:
            for key, table in done.tables.items():
                if table.replaced is not None:
                    found.setdefault(key, []).append(table.replaced)
        return found

    def origins(self, key: str) -> Iterator[str]:
        """The files that map the rows of a table to their records."""
        for done in self.completed:
            if key in done.tables and (name := done.tables[key].origins) is not None:
                yield name


class Validation:
    """Validation of a staged input on one snapshot."""

    def __init__(self, staging: StagedInput, snapshot: Snapshot) -> None:
        self.staging = staging
        self.snapshot = snapshot
        self.job = staging.job
        self.runner = staging.runner
        self.shuffles = staging.shuffles()
        self.outcome = Outcome()
        self._plain: list[CheckId] = []
        self._late: list[CheckId] = []

    def run(self) -> Outcome:
        """Validate until no violation is left."""
        self._plain, self._late = self._rule_checks()
        if self.job.mode == "merge":
            self._complete()
        else:
            self._drop_repeats()
            self._scan({key: [("id",)] for key in self._matching_tables()}, MATCHES)
        self._scan(self._stored(self._plain))
        self._scan(self._dropped(self._plain), all_replaced=True)
        load_rules.validate_load(self, set_aside=self.job.collect)
        return self.outcome

    # -- one round (`LoadCandidate`) ---------------------------------------------------------------

    @property
    def table_keys(self) -> Collection[str]:
        """The tables of the input."""
        return self.staging.tables.keys()

    def check(self) -> load_rules.LoadChecks:
        """Validate all buckets without the records that are set aside."""
        plan = RoundPlan(
            sorted(self.shuffles.items()),
            list(self.staging.tables),
            self._excluded(),
            checks=self._plain,
            admit=self._admitted_tables(),
        )
        results = self._validate(plan)
        found = [violation for result in results for violation in result.violations]
        if self._late:
            found += self._validate_late(self._late, self.outcome.replaced() or _replaced(results))
        done: list[StagedSplit | Completed] = [*self.staging.splits.values(), *self.outcome.completed]
        found += [one for part in done for one in part.violations if not self._is_excluded(one.violation)]
        refused = sorted((violation for result in results for violation in result.refused), key=rank)
        by_rule = groupby(sorted(found, key=rank), key=lambda one: one.check_id[0])
        return load_rules.LoadChecks(
            ((one.violation for one in violations) for _, violations in by_rule), (one.violation for one in refused)
        )

    def _is_excluded(self, violation: Violation) -> bool:
        return violation.position in self.staging.tables[violation.table_key].excluded

    def set_aside(self, table_key: str, reasons: Mapping[int, load_rules.RejectReason]) -> None:
        """Set rows aside, with all records that they were made of."""
        records = dict(reasons)
        wanted = pa.array(sorted(reasons), pa.int64())
        for name in self.outcome.origins(table_key):
            origins = read_origins(self.job, name)
            hit = origins.filter(pc.and_(pc.is_in(origins[POSITION], value_set=wanted), pc.is_valid(origins[RECORDS])))
            for last, positions in zip(hit[POSITION].to_pylist(), hit[RECORDS].to_pylist(), strict=True):
                records.update(dict.fromkeys(positions, reasons[last]))
        self.staging.set_aside(table_key, records)

    def source_line(self, table_key: str, position: int) -> load_rules.SourceLine:
        """The file and line of a row."""
        return self.staging.locations(table_key, [position])[position]

    # -- rows of a merge -------------------------------------------------------------------------

    def _complete(self) -> None:
        """Apply the records of a merge to the committed rows with their ids."""
        loose = [shuffle for shuffle in self.shuffles if shuffle.kind == LOOSE]
        if loose:
            self._scan({shuffle.table_key: [shuffle.by] for shuffle in loose if self._has_rows(shuffle.table_key)})
            for made in self._run_buckets("match", match, [shuffle.table_key for shuffle in loose]):
                for shuffle, names in made.items():
                    self.shuffles.setdefault(shuffle, []).extend(names)
        keys = [key for key in self.staging.tables if Shuffle(RECORDS, key, ("id",)) in self.shuffles]
        if not keys:
            return
        self._scan({key: [("id",)] for key in keys if self._has_rows(key)}, MATCHES)
        self.outcome = Outcome(list(self._run_buckets("merge", complete, keys)))
        for done in self.outcome.completed:
            for shuffle, names in done.shuffles.items():
                self.shuffles.setdefault(shuffle, []).extend(names)
        self._refuse_lacking()

    def _run_buckets(self, step: str, task: Callable[[Job, tuple[int, str]], T], keys: Sequence[str]) -> Iterator[T]:
        plan = RoundPlan(sorted(self.shuffles.items()), list(keys), written=self._checked_shuffles())
        name = write_plan(self.job, plan)
        work = [(number, name) for number in range(self.job.buckets)]
        return self.runner.run(step, task, self.job, work, at_once=self.job.at_once)

    def _checked_shuffles(self) -> list[Shuffle]:
        """The shuffles of written rows that the checks read."""
        checks = [self.job.rules[rule].steps[step][number] for rule, step, number in (*self._plain, *self._late)]
        found = {Shuffle(WRITTEN, key, by) for check in checks for key, by in check.by.items()}
        return sorted(one for one in found if one.table_key in self.staging.tables)

    def _refuse_lacking(self) -> None:
        """Raise the first row without a required property, or set all of them aside."""
        for key in self.staging.tables:
            type_ = self._type(key)
            lacking = sorted(
                (records[-1], records, name, id_)
                for done in self.outcome.completed
                if key in done.tables
                for records, name, id_ in done.tables[key].lacking
            )
            if not lacking:
                continue
            if not self.job.collect:
                last, _, name, id_ = lacking[0]
                raise load_rules.incomplete(type_, name, id_).error(type_.name, self.source_line(key, last))
            reasons = {
                position: load_rules.incomplete(type_, name, id_)
                for _, records, name, id_ in lacking
                for position in records
            }
            self.staging.set_aside(key, reasons)

    # -- shuffles of committed rows --------------------------------------------------------------

    def _type(self, key: str) -> NodeType | EdgeType:
        kind, name = TableKey.parse(key).parts
        catalog = self.job.catalog
        return catalog.nodes[name] if kind == "node" else catalog.edges[name]

    def _has_rows(self, key: str) -> bool:
        return self.snapshot.tables[key].pin.row_count > 0

    def _matching_tables(self) -> list[str]:
        """Tables whose written ids may equal ids of committed rows."""
        if self.job.mode == "overwrite":
            return []
        return [key for key, rows in self.staging.tables.items() if not rows.fresh and self._has_rows(key)]

    def _admitted_tables(self) -> list[str]:
        """Tables whose written ids must be admitted."""
        tables = self.staging.tables.items()
        return [key for key, rows in tables if load_rules.checks_ids(self.job.mode, fresh=rows.fresh)]

    def _rule_checks(self) -> tuple[list[CheckId], list[CheckId]]:
        """The checks of rules that compare rows. Late checks require the rows that the write replaces."""
        plain: list[CheckId] = []
        late: list[CheckId] = []
        matching = set(self._matching_tables())
        for rule_number, rule in enumerate(self.job.rules):
            for step_number, step in enumerate(rule.steps):
                for number, check in enumerate(step):
                    if check.by and self._can_fail(check):
                        waits = bool(check.stored & matching) and check.written in check.stored
                        (late if waits else plain).append((rule_number, step_number, number))
        return plain, late

    def _can_fail(self, check: RuleCheck) -> bool:
        """True if a check can find a violation. A load removes rows only by replacing a whole table."""
        named = check.written in self.staging.tables
        if self.job.mode == "merge" and not check.stored and check.by == {check.written: ("id",)}:
            # Compares the ids of written rows. A merge writes one row per id.
            return False
        return named and (not check.on_loss or self.job.mode == "overwrite")

    def _stored(self, checks: Iterable[CheckId]) -> dict[str, list[tuple[str, ...]]]:
        """Table key → the columns by which the committed rows must be shuffled."""
        wanted: dict[str, list[tuple[str, ...]]] = {}
        for rule, step, number in checks:
            check = self.job.rules[rule].steps[step][number]
            for key in check.stored:
                replaced = self.job.mode == "overwrite" and key in self.staging.tables
                by = check.by[key]
                if not replaced and self._has_rows(key) and by not in wanted.setdefault(key, []):
                    wanted[key].append(by)
        return wanted

    def _dropped(self, checks: Iterable[CheckId]) -> dict[str, list[tuple[str, ...]]]:
        """Table key → the columns by which the rows of replaced tables must be shuffled."""
        wanted: dict[str, list[tuple[str, ...]]] = {}
        for rule, step, number in checks if self.job.mode == "overwrite" else ():
            check = self.job.rules[rule].steps[step][number]
            for key in check.lost & self.staging.tables.keys():
                if self._has_rows(key):
                    wanted.setdefault(key, []).append(check.by[key])
        return wanted

    def _scan(
        self,
        wanted: Mapping[str, list[tuple[str, ...]]],
        kind: str = STORED,
        *,
        replaced: Mapping[str, list[str]] | None = None,
        all_replaced: bool = False,
    ) -> None:
        work: list[ScanWork] = []
        for key, by in wanted.items():
            missing = [columns for columns in by if Shuffle(kind, key, columns) not in self.shuffles]
            if not missing:
                continue
            fragments = [
                (fragment_id, number) for number, (fragment_id, _) in enumerate(stored_fragments(self.job.table(key)))
            ]
            among = self._written_id_files(key) if kind == MATCHES else []
            values = self._kept_columns(key) if among else []
            # Each task reads all written ids first, so there is one task per worker.
            taken = shares(fragments, self.runner) if among else [[fragment] for fragment in fragments]
            names = (replaced or {}).get(key, [])
            excluded = sorted(self.staging.tables[key].excluded) if names else []
            work += [
                ScanWork(key, list(some), missing, kind, names, excluded, all_replaced, among, values) for some in taken
            ]
        for made in self.runner.run("scan", scan, self.job, work):
            for shuffle, files in made.items():
                self.shuffles.setdefault(shuffle, []).extend(files)

    def _written_id_files(self, key: str) -> list[str]:
        """The files of written ids; none if there are too many to hold in memory."""
        held = self.job.within_memory(tuning.current.id_filter_rows_max * _ID_BYTES, 4)
        few = self.staging.tables[key].rows * _ID_BYTES <= held
        kind = GIVEN_IDS if self.job.mode == "merge" else WRITTEN
        return self.shuffles.get(Shuffle(kind, key, ("id",)), []) if few else []

    def _kept_columns(self, key: str) -> list[str]:
        """The columns that a merge takes from committed rows; none if they include a Blob, which is read by row id."""
        absent = sorted(self.staging.tables[key].absent)
        properties = self._type(key).properties
        blobs = any(name in properties and properties[name].type.scalar == "Blob" for name in absent)
        return [] if blobs else absent

    # -- rounds ----------------------------------------------------------------------------------

    def _excluded(self) -> dict[str, list[int]]:
        return {key: sorted(rows.excluded) for key, rows in self.staging.tables.items() if rows.excluded}

    def _validate(self, plan: RoundPlan) -> list[ValidationResult]:
        if not (plan.checks or plan.repeats or plan.admit):
            return []
        name = write_plan(self.job, plan)
        work = [(number, name) for number in range(self.job.buckets)]
        return list(self.runner.run("check", validate, self.job, work))

    def _validate_late(self, late: list[CheckId], replaced: Files) -> list[LocatedViolation]:
        """Validate the late checks. Committed rows are shuffled again without the replaced rows."""
        shuffles = self.shuffles
        self.shuffles = {
            shuffle: names for shuffle, names in shuffles.items() if shuffle.kind == WRITTEN or shuffle.by == ("id",)
        }
        try:
            self._scan(self._stored(late), replaced=replaced)
            plan = RoundPlan(sorted(self.shuffles.items()), list(self.staging.tables), self._excluded(), checks=late)
            return [violation for result in self._validate(plan) for violation in result.violations]
        finally:
            self.shuffles = shuffles

    def _drop_repeats(self) -> None:
        """Set aside later records with an explicit id that occurred before."""
        if not self.job.collect:
            return
        mode = self.job.mode
        keys = [
            key
            for key, rows in self.staging.tables.items()
            if load_rules.drops_repeats(self._type(key), mode, fresh=rows.fresh)
        ]
        if not keys:
            return
        plan = RoundPlan(sorted(self.shuffles.items()), list(self.staging.tables), self._excluded(), repeats=keys)
        for result in self._validate(plan):
            for key, reasons in result.repeats.items():
                self.staging.set_aside(key, reasons)


def _replaced(results: Iterable[ValidationResult]) -> Files:
    """Table key → the files that list committed rows with the id of an appended row."""
    found: Files = {}
    for one in results:
        for key, name in one.replaced.items():
            found.setdefault(key, []).append(name)
    return found
