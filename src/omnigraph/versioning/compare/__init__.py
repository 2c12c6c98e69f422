"""Differences of snapshots and three-way merge decisions."""
