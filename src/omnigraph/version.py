"""The release number; the build reads it from here."""

__version__ = "0.1.0.dev0"

STORAGE_FORMAT = 1001
"""The storage format this release reads and writes; others are refused."""
