"""Plans and results of schema changes from documents."""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.client.failures import reading, unreadable
from omnigraph.operations.migrate import SchemaApplyResult
from omnigraph.schema.identity import HintDiagnostic, SchemaIR
from omnigraph.schema.migrate import SchemaPlan
from omnigraph.schema.step_parser import parse_step
from omnigraph.wire.schemas import SchemaAppliedDocument, SchemaPlanDocument


@reading
def plan_of(document: SchemaPlanDocument) -> SchemaPlan:
    """Return the plan of a schema change."""
    if document.accepted is UNSET or document.desired is UNSET:
        raise unreadable("it has no full plan")
    diagnostics = () if document.diagnostics is UNSET else document.diagnostics
    return SchemaPlan(
        tuple(map(parse_step, document.steps)),
        tuple(HintDiagnostic(each["code"], each["entity"], each["message"]) for each in diagnostics),
        SchemaIR.from_json(document.accepted),
        SchemaIR.from_json(document.desired),
        () if document.rename_hints is UNSET else tuple(document.rename_hints),
        () if document.losses is UNSET else tuple(document.losses),
        () if document.broken_rules is UNSET else tuple(document.broken_rules),
    )


@reading
def apply_result_of(document: SchemaAppliedDocument) -> SchemaApplyResult:
    """Return the result of a schema change."""
    return SchemaApplyResult(
        document.supported,
        document.applied,
        document.manifest_version,
        document.commit_id,
        tuple(map(parse_step, document.steps)),
        () if document.rename_hints is UNSET else tuple(document.rename_hints),
        () if document.losses is UNSET else tuple(document.losses),
        () if document.broken_rules is UNSET else tuple(document.broken_rules),
    )
