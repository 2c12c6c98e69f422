"""Reads that start at a key, compiled into a few steps."""
