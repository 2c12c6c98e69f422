"""Steps on branches, handles, maintenance and export."""

from __future__ import annotations

import shutil
from random import Random

from hypothesis import note

import omnigraph as og
from omnigraph.errors import Damaged
from omnigraph.graph import Graph
from support.graph_machine.commits import Branch
from support.graph_machine.comparison import expected_records, sorted_lines
from support.graph_machine.schema_changes import SchemaChanges
from support.graph_model import (
    Refusal,
)

HOUR_US = 3_600_000_000


class Branches(SchemaChanges):
    """Branches, reopening, maintenance and export."""

    def create_branch(self, random: Random, graph: Graph) -> None:
        name, source = random.choice(("b1", "b2", "deep/er")), random.choice(list(self.branches))
        start, at = self.branches[source].head, None
        if random.random() < 0.4:
            start = random.choice(start.line())
            at = start.id
        refusals = [Refusal("branch_exists", (f"'{name}'",))] if name in self.branches else []
        note(f"create branch {name} from {source} at {at}")
        if not refusals and self.gone.intersection(start.pins.values()):
            # A cleanup may have removed the fork point; then the branch is not created.
            try:
                graph.branch_create(name, source, at=at)
            except Damaged as error:
                self.refused(error, [Refusal("version_reclaimed")])
            else:
                assert sorted_lines(graph.export(branch=name)) == sorted_lines(expected_records(start))
                graph.branch_delete(name, force=True)
        elif self.attempt(refusals, lambda: graph.branch_create(name, source, at=at)) is not None:
            self.branches[name] = Branch(start, start)
            self.branch = name

    def switch_branch(self, random: Random, graph: Graph) -> None:
        self.branch = random.choice(list(self.branches))
        assert graph.on(self.branch).branch == self.branch
        self.attempt([Refusal("branch_not_found")], lambda: graph.on("missing"))

    def delete_branch(self, random: Random, graph: Graph) -> None:
        name = random.choice([*self.branches, "missing"])
        refusals = [Refusal("branch_not_found")] if name == "missing" else []
        refusals += [Refusal("bad_input", ("'main'",))] if name == "main" else []
        force = random.random() < 0.5
        if not refusals and not force:
            kept = {
                id(commit) for other in self.branches if other != name for commit in self.branches[other].head.line()
            }
            lost = sum(id(commit) not in kept for commit in self.branches[name].head.line())
            refusals = [Refusal("unmerged_branch", (f"'{name}'", str(lost)))] if lost else []
        note(f"delete branch {name}, force {force}")
        self.attempt(refusals, lambda: graph.branch_delete(name, force=force) or True)
        if not refusals:
            del self.branches[name]
            self.branch = self.branch if self.branch in self.branches else "main"

    def reopen(self, random: Random, graph: Graph) -> None:
        both = random.random() < 0.3
        self.handles = [self.opened() if both or handle is graph else handle for handle in self.handles]

    def tend(self, random: Random, graph: Graph) -> None:
        """Compact or index: rows stay the same, and there is a commit exactly if something changed."""
        compact = random.random() < 0.6
        done = (graph.optimize if compact else graph.ensure_indices)(self.branch)
        assert [entry.table_key for entry in done] == sorted(self.tables)
        touched = [entry.table_key for entry in done if entry.committed]
        note(f"{'optimize' if compact else 'ensure_indices'} {self.branch}: {touched}")
        if touched:
            self.landed("optimize" if compact else "ensure_indices", None, self.tables, touched)

    def cleanup(self, random: Random, graph: Graph) -> None:
        """Remove old commits; kept commits stay readable."""
        keep = random.choice((0, 1, 2, 5))
        # Later than any reader or writer of a removed version.
        self.now += HOUR_US
        confirm = random.random() < 0.8
        note(f"cleanup keep={keep} confirm={confirm}")
        stats = graph.cleanup(keep=keep, confirm=confirm)
        assert [entry.error for entry in stats if entry.error] == []
        if confirm:
            kept = [c for branch in self.branches.values() for c in branch.head.line()[: max(keep, 1)]]
            kept += [branch.fork for branch in self.branches.values() if branch.fork is not None]
            held = {pin for commit in kept for pin in commit.pins.values()}
            self.gone |= {pin for commit in self.commits for pin in commit.pins.values()} - held
            self.handles = [self.opened(), self.opened()]

    def round_trip(self, random: Random, graph: Graph) -> None:
        """An export loads into a new graph or into its own graph without changing a row."""
        path = self.folder / "export.jsonl"
        rows = graph.export(path, branch=self.branch)
        assert rows == sum(map(len, self.tables.values()))
        # Composite ids follow the order in which columns were created; a new graph has another order.
        if random.random() < 0.5 and not any(list(n.key) != sorted(n.key) for n in self.schema.nodes.values()):
            twin = og.init(self.folder / "twin", self.schema.text(), sync=False)
            twin.load(path, mode="overwrite")
            assert sorted_lines(twin.export()) == sorted_lines(expected_records(self.head))
            shutil.rmtree(self.folder / "twin")
            return
        result = graph.load(path, mode="merge", branch=self.branch)
        named = [key for key, rows in self.tables.items() if rows]
        assert dict(result.tables) == {key: len(self.tables[key]) for key in named}
        self.landed("load", result.commit_id, self.tables, named)
