"""Execution of plans on tables.

`plan` prepares plans, `exec` runs them, `fastpath` runs short plans that start at a key, and `expr` evaluates
expressions. `adjacency`, `paths` and `search` find rows; `cache` keeps columns and derived structures per table
version. `write` applies statements and checks integrity rules; `ingest` decodes records. `tuning` holds the tuning
constants.
"""
