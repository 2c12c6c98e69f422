"""Conformance examples whose expected result changed."""

from __future__ import annotations

RULED = {"ward-rewrite_nurse": "key_conflict"}
"""Mutation id → error code. An insert of an existing key used to replace the row."""
