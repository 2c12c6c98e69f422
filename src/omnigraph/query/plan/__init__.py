"""Resolved query to logical plan: lowering, rewrites, `explain`."""
