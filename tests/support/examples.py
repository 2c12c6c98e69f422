"""Conformance examples whose outcome a later rule changed."""

from __future__ import annotations

RULED = {"ward-rewrite_nurse": "key_conflict"}
"""The id of a mutation → the code of its error. An insert of an existing key replaced the row at first."""
