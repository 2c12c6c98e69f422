"""The release number; the build reads it from here."""

__version__ = "0.2.0.dev0"

STORAGE_FORMAT = 1002
"""The storage format this release writes. It also reads the previous one; the first write raises such a graph."""
STORAGE_FORMAT_OLDEST = 1001
"""The oldest storage format this release reads; older and newer ones are refused."""
