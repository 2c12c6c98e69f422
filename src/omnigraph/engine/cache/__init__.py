"""Columns and derived structures in memory and on disk, carried from version to version."""
