"""Columns and derived structures in memory and on disk, reused by later table versions."""
