"""Calls of schemas and snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import UNSET

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.failures import unreadable
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.results.history import RemoteSnapshot
from omnigraph.client.results.schemas import apply_result_of, plan_of
from omnigraph.errors import CompileError
from omnigraph.notebook.schema_view import SchemaText
from omnigraph.operations.create import read_catalog
from omnigraph.operations.migrate import SchemaApplyResult, read_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.migrate import SchemaPlan
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.requests.schemas import SchemaApplyRequest, SchemaPlanRequest
from omnigraph.wire.requests.tables import SnapshotQuery
from omnigraph.wire.schemas import SchemaAppliedDocument, SchemaPlanDocument

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import At

_UNNAMED = "<schema>"
"""The name of a text that is not a file; that of every text of a request."""


class SchemaCalls(CallHandle):
    """Calls of schemas and snapshots."""

    def snapshot(self, branch: str | None = None, at: At = None) -> Call[RemoteSnapshot]:
        """Return the graph at a branch's head, or at a point: branch, tag, commit id, snapshot id, version or time.

        The first eight or more characters of a commit id name the commit if no other id begins with them. The tables
        of the snapshot cannot be opened; the methods of the graph read them.
        """
        return RemoteSnapshot((yield from self._snapshot_document(branch, at)))

    def newest_version(self) -> Call[int]:
        """Return the newest manifest version; every write to any branch increases it."""
        document = yield from self._snapshot_document(MAIN)
        if document.newest_version is UNSET:
            raise unreadable("it has no version")
        return document.newest_version

    def schema(self) -> Call[SchemaText]:
        """Return the text of the schema, as it was applied."""
        return SchemaText((yield from self.snapshot()).schema.source)

    def catalog(self, branch: str | None = None, at: At = None) -> Call[Catalog]:
        """Return the catalog (types and properties) of the schema at a point in time."""
        return read_catalog((yield from self.snapshot(branch, at)).schema)

    def plan_schema(
        self, text: str | Path, *, allow_data_loss: bool = False, branch: str | None = None
    ) -> Call[SchemaPlan]:
        """Return the migration steps from the branch's schema to another; nothing is written.

        Drops of rows or values are refused in the plan, unless `allow_data_loss`, and `losses` lists them.
        `broken_rules` of the plan lists the rules for rows of the policy that would become invalid.
        """
        source, name = read_schema(text)
        input = SchemaPlanRequest(schema_source=source, branch=self._branch(branch), allow_data_loss=allow_data_loss)
        with _errors_name(name):
            answer = yield self._post("schema", "plan", input=input, accept=TYPED_JSON)
        return plan_of(answer.document(SchemaPlanDocument))

    def apply_schema(
        self,
        text: str | Path,
        *,
        allow_data_loss: bool = False,
        allow_policy_breakage: bool = False,
        allow_query_breakage: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[SchemaApplyResult]:
        """Replace the branch's schema and migrate its tables as one commit.

        A schema that drops rows or values is refused, unless `allow_data_loss`; `revert` of the commit restores them.
        A schema that would make rules for rows of the policy invalid is refused, unless `allow_policy_breakage`, and
        one that would make stored queries invalid, unless `allow_query_breakage`.
        `if_commit` and `idempotency_key` are as in `mutate`.
        """
        self._check_actor("apply_schema", actor)
        source, name = read_schema(text)
        input = SchemaApplyRequest(
            schema_source=source,
            branch=self._branch(branch),
            allow_data_loss=allow_data_loss,
            allow_policy_breakage=allow_policy_breakage,
            allow_query_breakage=allow_query_breakage,
            message=message,
        )
        with _errors_name(name):
            answer = yield self._write("schema", "apply", input=input, key=idempotency_key, if_commit=if_commit)
        return apply_result_of(answer.document(SchemaAppliedDocument))

    def _snapshot_document(self, branch: str | None = None, at: At = None) -> Call[SnapshotDocument]:
        input = SnapshotQuery(branch=self._branch(branch), at=at_text(at))
        answer = yield self._get("snapshot", input=input, accept=TYPED_JSON)
        return answer.document(SnapshotDocument)


@contextmanager
def _errors_name(name: str) -> Iterator[None]:
    """Let errors in a schema name its file."""
    try:
        yield
    except CompileError as error:
        if name == _UNNAMED:
            raise
        named = [
            replace(each, source_name=name) if each.source_name == _UNNAMED else each for each in error.diagnostics
        ]
        raise type(error)(named) from None
