"""Compaction, cleanup, retention and verification."""
