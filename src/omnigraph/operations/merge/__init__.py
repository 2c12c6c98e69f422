"""Merge and revert: planning, schema, row decisions, conflict resolutions."""
