"""Judges a staged input from one snapshot, in rounds.

One round is enough to find the first thing that is wrong. If wrong records are set aside there is another round for
what is left, until nothing is found: that is what a load in memory does, rule by rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from omnigraph.engine.delta import Part
from omnigraph.errors import OmniGraphError
from omnigraph.operations.load import admission_error, at_place, given_twice, is_keyed
from omnigraph.pipeline.deals import Deal
from omnigraph.pipeline.findings import Finding, rank
from omnigraph.pipeline.judge import MET, STORED, Judged, MeetWork, PartPlace, ScanWork, Sheet, judge, scan, write_sheet
from omnigraph.pipeline.runner import shares
from omnigraph.pipeline.stage import WRITTEN
from omnigraph.pipeline.staging import Staging
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.storage.fragments import stored_pieces
from omnigraph.versioning.snapshot import Snapshot

LOOKED_UP_ROWS_MAX = 4_000_000
"""Up to here a task holds all written ids of a table, some 50 bytes each, and deals only the rows that have one."""

Files = dict[str, list[str]]
"""Table key → names of files."""


class Judging:
    """One look at a staged input from one snapshot."""

    def __init__(self, staging: Staging, snapshot: Snapshot) -> None:
        self.staging = staging
        self.snapshot = snapshot
        self.job = staging.job
        self.runner = staging.runner
        self.deals = staging.deals()

    def run(self) -> tuple[Files, Files]:
        """Judge until what is left is sound; the files that say what the write replaces."""
        self._drop_repeats()
        dealt = [key for key in self._meeting() if key not in self._looked_up()]
        self._scan({key: [("id",)] for key in dealt}, MET)
        plain, late = self._parts()
        self._scan(self._stored(plain))
        self._scan(self._dropped(plain), all_lost=True)
        while True:
            sheet = Sheet(
                sorted(self.deals.items()),
                list(self.staging.tables),
                self._excluded(),
                parts=plain,
                meets=dealt,
                admit=self._admitting(),
            )
            first = self._judge(sheet, self._look_ups())
            hits, lost = _merged(judged.hits for judged in first), _merged(judged.lost for judged in first)
            findings = [finding for judged in first for finding in judged.findings]
            if late:
                findings += self._judge_late(late, lost)
            refused = [finding for judged in first for finding in judged.refused]
            if not self._again(findings, refused):
                return hits, lost

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
                (fragment_id, number) for number, (fragment_id, _) in enumerate(stored_pieces(self.job.table(key)))
            ]
            among = self._asked(key) if what == MET else []
            # Whoever looks ids up reads them all first.
            taken = shares(pieces, self.runner) if among else [[piece] for piece in pieces]
            names = (lost or {}).get(key, [])
            work += [ScanWork(key, list(some), missing, what, names, all_lost, among) for some in taken]
        for dealt in self.runner.run("scan", scan, self.job, work):
            for deal, files in dealt.items():
                self.deals.setdefault(deal, []).extend(files)

    def _looked_up(self) -> list[str]:
        """Tables of which a merge only has to know who replaces whom, and can find out without dealing."""
        return [key for key in self._meeting() if self.job.mode == "merge" and self._asked(key)]

    def _look_ups(self) -> list[MeetWork]:
        work: list[MeetWork] = []
        for key in self._looked_up():
            pieces = [fragment_id for fragment_id, _ in stored_pieces(self.job.table(key))]
            excluded = sorted(self.staging.tables[key].excluded)
            work += [MeetWork(key, list(some), self._asked(key), excluded) for some in shares(pieces, self.runner)]
        return work

    def _asked(self, key: str) -> list[str]:
        """The files of written ids, if there are few enough to look up every committed row among them."""
        few = self.staging.tables[key].rows <= LOOKED_UP_ROWS_MAX
        return self.deals.get(Deal(WRITTEN, key, ("id",)), []) if few else []

    # -- rounds ----------------------------------------------------------------------------------

    def _excluded(self) -> dict[str, list[int]]:
        return {key: sorted(rows.excluded) for key, rows in self.staging.tables.items() if rows.excluded}

    def _judge(self, sheet: Sheet, look_ups: Sequence[MeetWork] = ()) -> list[Judged]:
        work: list[tuple[int, str] | MeetWork] = [*look_ups]
        if sheet.parts or sheet.repeats or sheet.meets or sheet.admit:
            name = write_sheet(self.job, sheet)
            work += [(number, name) for number in range(self.job.buckets)]
        return list(self.runner.run("check", judge, self.job, work)) if work else []

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
        """One explicit id twice: in a merge the last record wins; else, set aside, the later ones go."""
        if self.job.mode != "merge" and not self.job.collect:
            return
        keys = [key for key, rows in self.staging.tables.items() if not rows.fresh and not is_keyed(self._type(key))]
        if not keys:
            return
        sheet = Sheet(sorted(self.deals.items()), list(self.staging.tables), self._excluded(), repeats=keys)
        for judged in self._judge(sheet):
            for key, repeats in judged.repeats.items():
                if self.job.mode == "merge":
                    self.staging.tables[key].excluded.update(dict.fromkeys(repeats, ""))
                else:
                    reasons = {position: given_twice(id_) for position, id_ in repeats.items()}
                    self.staging.reject(key, reasons, dict.fromkeys(repeats, ("id", "unique")))

    def _again(self, findings: list[Finding], refused: list[Finding]) -> bool:
        """Raise what is wrong, or set it aside; whether the rest has to be judged anew."""
        findings += [
            finding
            for staged in self.staging.splits.values()
            for finding in staged.findings
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
        self.staging.reject(key, reasons, rules)
        return True

    def _error(self, finding: Finding, error: OmniGraphError) -> OmniGraphError:
        """The error, naming the line when its row came from this input."""
        if finding.position is None:
            return error
        source, line = self.staging.places(finding.table_key, [finding.position])[finding.position]
        return at_place(error, source, line)


def _merged(parts: Iterable[Mapping[str, str]]) -> Files:
    found: Files = {}
    for part in parts:
        for key, name in part.items():
            found.setdefault(key, []).append(name)
    return found
