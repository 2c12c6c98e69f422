"""The manifest table and the recovery log."""
