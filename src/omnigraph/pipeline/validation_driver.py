"""Judges a staged input from one snapshot, in rounds.

One round is enough to find the first thing that is wrong. If wrong records are set aside there is another round for
what is left, until nothing is found: that is what a load in memory does, rule by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.write.delta import Part
from omnigraph.errors import OmniGraphError
from omnigraph.operations.load import admission_error, at_place, given_twice, is_keyed, lacks
from omnigraph.pipeline.complete_task import Completed, complete, match, read_placed
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import shares
from omnigraph.pipeline.shuffle import Deal
from omnigraph.pipeline.stage_task import GIVEN_IDS, LOOSE, POSITION, RECORDS, WRITTEN, Staged
from omnigraph.pipeline.staged_input import Staging
from omnigraph.pipeline.validate_task import MET, STORED, Judged, PartPlace, ScanWork, Sheet, judge, scan, write_sheet
from omnigraph.pipeline.violations import Finding, rank
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.versioning.model.snapshot import Snapshot

LOOKED_UP_ROWS_MAX = 4_000_000
"""Up to here a task holds all written ids of a table, some 50 bytes each, and deals only the rows that have one."""

T = TypeVar("T")
Files = dict[str, list[str]]
"""Table key → names of files."""


@dataclass(frozen=True)
class Outcome:
    """What a staged input becomes: the buckets of a merge, and the files that say which committed rows go."""

    completed: Sequence[Completed] = ()

    def lost(self) -> Files:
        """Table key → the files that say which rows are replaced."""
        found: Files = {}
        for done in self.completed:
            for key, table in done.tables.items():
                if table.lost is not None:
                    found.setdefault(key, []).append(table.lost)
        return found

    def placed(self, key: str) -> Iterator[str]:
        """The files that say which rows were made of the records of a table."""
        for done in self.completed:
            if key in done.tables and (name := done.tables[key].placed) is not None:
                yield name


class Judging:
    """One look at a staged input from one snapshot."""

    def __init__(self, staging: Staging, snapshot: Snapshot) -> None:
        self.staging = staging
        self.snapshot = snapshot
        self.job = staging.job
        self.runner = staging.runner
        self.deals = staging.deals()
        self.outcome = Outcome()

    def run(self) -> Outcome:
        """Judge until what is left is sound."""
        if self.job.mode == "merge":
            self._complete()
        else:
            self._drop_repeats()
            self._scan({key: [("id",)] for key in self._meeting()}, MET)
        plain, late = self._parts()
        self._scan(self._stored(plain))
        self._scan(self._dropped(plain), all_lost=True)
        while True:
            sheet = Sheet(
                sorted(self.deals.items()),
                list(self.staging.tables),
                self._excluded(),
                parts=plain,
                admit=self._admitting(),
            )
            first = self._judge(sheet)
            findings = [finding for judged in first for finding in judged.findings]
            if late:
                findings += self._judge_late(late, self.outcome.lost() or _lost(first))
            refused = [finding for judged in first for finding in judged.refused]
            if not self._again(findings, refused):
                return self.outcome

    # -- the rows of a merge ---------------------------------------------------------------------

    def _complete(self) -> None:
        """Apply the records of a merge to the committed rows they name."""
        loose = [deal for deal in self.deals if deal.what == LOOSE]
        if loose:
            self._scan({deal.table_key: [deal.by] for deal in loose if self._has_rows(deal.table_key)})
            for made in self._run_buckets("match", match, [deal.table_key for deal in loose]):
                for deal, names in made.items():
                    self.deals.setdefault(deal, []).extend(names)
        keys = [key for key in self.staging.tables if Deal(RECORDS, key, ("id",)) in self.deals]
        if not keys:
            return
        self._scan({key: [("id",)] for key in keys if self._has_rows(key)}, MET)
        self.outcome = Outcome(list(self._run_buckets("merge", complete, keys)))
        for done in self.outcome.completed:
            for deal, names in done.deals.items():
                self.deals.setdefault(deal, []).extend(names)
        self._refuse_lacking()

    def _run_buckets(self, step: str, task: Callable[[Job, tuple[int, str]], T], keys: Sequence[str]) -> Iterator[T]:
        name = write_sheet(self.job, Sheet(sorted(self.deals.items()), list(keys)))
        work = [(number, name) for number in range(self.job.buckets)]
        return self.runner.run(step, task, self.job, work, at_once=self.job.at_once)

    def _refuse_lacking(self) -> None:
        """Raise the first new row without a required property, or set all of them aside."""
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
                lacking = [(last, [last], name, id_) for last, _, name, id_ in lacking[:1]]
            reasons: dict[int, str] = {}
            rules: dict[int, tuple[str | None, str]] = {}
            for _, records, name, id_ in lacking:
                for position in records:
                    reasons[position], rules[position] = lacks(type_, name, id_), (name, "required")
            self.staging.reject(key, reasons, rules)
            if not self.job.collect:
                raise self.staging.rejects[-1]

    def _reject(self, key: str, reasons: dict[int, str], rules: dict[int, tuple[str | None, str]]) -> None:
        """Set rows aside, with all records they were made of."""
        if not reasons:
            return
        wanted = pa.array(sorted(reasons), pa.int64())
        for name in self.outcome.placed(key):
            placed = read_placed(self.job, name)
            hit = placed.filter(pc.and_(pc.is_in(placed[POSITION], value_set=wanted), pc.is_valid(placed[RECORDS])))
            for last, records in zip(hit[POSITION].to_pylist(), hit[RECORDS].to_pylist(), strict=True):
                for position in records:
                    reasons[position], rules[position] = reasons[last], rules[last]
        self.staging.reject(key, reasons, rules)

    # -- who meets whom --------------------------------------------------------------------------

    def _type(self, key: str) -> NodeType | EdgeType:
        kind, _, name = key.partition(":")
        catalog = self.job.catalog
        return catalog.nodes[name] if kind == "node" else catalog.edges[name]

    def _has_rows(self, key: str) -> bool:
        return self.snapshot.tables[key].pin.row_count > 0

    def _meeting(self) -> list[str]:
        """Tables whose written ids may be those of committed rows."""
        if self.job.mode == "overwrite":
            return []
        return [key for key, rows in self.staging.tables.items() if not rows.fresh and self._has_rows(key)]

    def _admitting(self) -> list[str]:
        if self.job.mode == "merge":
            return []
        return [key for key, rows in self.staging.tables.items() if not rows.fresh]

    def _parts(self) -> tuple[list[PartPlace], list[PartPlace]]:
        """The parts of rules that look across rows; the later ones must know first what the write replaces."""
        plain: list[PartPlace] = []
        late: list[PartPlace] = []
        meeting = set(self._meeting())
        for rule_number, rule in enumerate(self.job.rules):
            for step_number, step in enumerate(rule.steps):
                for part_number, part in enumerate(step):
                    if part.by and self._matters(part):
                        waits = bool(part.stored & meeting) and part.written in part.stored
                        (late if waits else plain).append((rule_number, step_number, part_number))
        return plain, late

    def _matters(self, part: Part) -> bool:
        """Whether a part can find anything; a load takes rows away only by replacing a whole table."""
        named = part.written in self.staging.tables
        return named and (not part.on_loss or self.job.mode == "overwrite")

    def _stored(self, places: Iterable[PartPlace]) -> dict[str, list[tuple[str, ...]]]:
        """What must be known of committed rows: table key → the columns they are dealt by."""
        wanted: dict[str, list[tuple[str, ...]]] = {}
        for rule, step, part_number in places:
            part = self.job.rules[rule].steps[step][part_number]
            for key in part.stored:
                replaced = self.job.mode == "overwrite" and key in self.staging.tables
                by = part.by[key]
                if not replaced and self._has_rows(key) and by not in wanted.setdefault(key, []):
                    wanted[key].append(by)
        return wanted

    def _dropped(self, places: Iterable[PartPlace]) -> dict[str, list[tuple[str, ...]]]:
        """The same of rows that go because their table is replaced."""
        wanted: dict[str, list[tuple[str, ...]]] = {}
        for rule, step, part_number in places if self.job.mode == "overwrite" else ():
            part = self.job.rules[rule].steps[step][part_number]
            for key in part.lost & self.staging.tables.keys():
                if self._has_rows(key):
                    wanted.setdefault(key, []).append(part.by[key])
        return wanted

    def _scan(
        self,
        wanted: Mapping[str, list[tuple[str, ...]]],
        what: str = STORED,
        *,
        lost: Mapping[str, list[str]] | None = None,
        all_lost: bool = False,
    ) -> None:
        work: list[ScanWork] = []
        for key, by in wanted.items():
            missing = [columns for columns in by if Deal(what, key, columns) not in self.deals]
            if not missing:
                continue
            pieces = [
                (fragment_id, number) for number, (fragment_id, _) in enumerate(stored_fragments(self.job.table(key)))
            ]
            among = self._asked(key) if what == MET else []
            # Whoever looks ids up reads them all first.
            taken = shares(pieces, self.runner) if among else [[piece] for piece in pieces]
            names = (lost or {}).get(key, [])
            excluded = sorted(self.staging.tables[key].excluded) if names else []
            work += [ScanWork(key, list(some), missing, what, names, excluded, all_lost, among) for some in taken]
        for dealt in self.runner.run("scan", scan, self.job, work):
            for deal, files in dealt.items():
                self.deals.setdefault(deal, []).extend(files)

    def _asked(self, key: str) -> list[str]:
        """The files of written ids, if there are few enough to look up every committed row among them."""
        few = self.staging.tables[key].rows <= LOOKED_UP_ROWS_MAX
        what = GIVEN_IDS if self.job.mode == "merge" else WRITTEN
        return self.deals.get(Deal(what, key, ("id",)), []) if few else []

    # -- rounds ----------------------------------------------------------------------------------

    def _excluded(self) -> dict[str, list[int]]:
        return {key: sorted(rows.excluded) for key, rows in self.staging.tables.items() if rows.excluded}

    def _judge(self, sheet: Sheet) -> list[Judged]:
        if not (sheet.parts or sheet.repeats or sheet.admit):
            return []
        name = write_sheet(self.job, sheet)
        work = [(number, name) for number in range(self.job.buckets)]
        return list(self.runner.run("check", judge, self.job, work))

    def _judge_late(self, late: list[PartPlace], lost: Files) -> list[Finding]:
        """The parts that look at what stays: committed rows are dealt again, without those that go."""
        deals = self.deals
        self.deals = {deal: names for deal, names in deals.items() if deal.what == WRITTEN or deal.by == ("id",)}
        try:
            self._scan(self._stored(late), lost=lost)
            sheet = Sheet(sorted(self.deals.items()), list(self.staging.tables), self._excluded(), parts=late)
            return [finding for judged in self._judge(sheet) for finding in judged.findings]
        finally:
            self.deals = deals

    def _drop_repeats(self) -> None:
        """Set aside the later records of an explicit id that is given twice."""
        if not self.job.collect:
            return
        keys = [key for key, rows in self.staging.tables.items() if not rows.fresh and not is_keyed(self._type(key))]
        if not keys:
            return
        sheet = Sheet(sorted(self.deals.items()), list(self.staging.tables), self._excluded(), repeats=keys)
        for judged in self._judge(sheet):
            for key, repeats in judged.repeats.items():
                reasons = {position: given_twice(id_) for position, id_ in repeats.items()}
                self.staging.reject(key, reasons, dict.fromkeys(repeats, ("id", "unique")))

    def _again(self, findings: list[Finding], refused: list[Finding]) -> bool:
        """Raise what is wrong, or set it aside; whether the rest has to be judged anew."""
        done: list[Staged | Completed] = [*self.staging.splits.values(), *self.outcome.completed]
        findings += [
            finding
            for one in done
            for finding in one.findings
            if finding.position not in self.staging.tables[finding.table_key].excluded
        ]
        findings.sort(key=rank)
        refused.sort(key=rank)
        if not self.job.collect:
            if findings:
                raise self._error(findings[0], findings[0].violation().error())
            if refused:
                raise self._error(refused[0], admission_error(refused[0].violation()))
            return False
        found = refused or [finding for finding in findings if finding.place[0] == findings[0].place[0]]
        if not found:
            return False
        reasons: dict[int, str] = {}
        rules: dict[int, tuple[str | None, str]] = {}
        key = found[0].table_key
        for finding in found:
            if finding.table_key == key:
                own = () if finding.position is None else (finding.position,)
                for position in finding.also or own:
                    if position not in reasons:
                        reasons[position] = finding.message
                        rules[position] = (finding.property, finding.kind)
        if not reasons or key not in self.staging.tables:
            raise self._error(found[0], found[0].violation().error())
        self._reject(key, reasons, rules)
        return True

    def _error(self, finding: Finding, error: OmniGraphError) -> OmniGraphError:
        """The error, naming the line when its row came from this input."""
        if finding.position is None:
            return error
        source, line = self.staging.places(finding.table_key, [finding.position])[finding.position]
        return at_place(error, source, line)


def _lost(judged: Iterable[Judged]) -> Files:
    """Table key → the files that say which committed rows an append would replace."""
    found: Files = {}
    for one in judged:
        for key, name in one.lost.items():
            found.setdefault(key, []).append(name)
    return found
