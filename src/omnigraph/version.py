"""Release number, read by the build, and storage format numbers."""

__version__ = "0.2.0.dev0"

STORAGE_FORMAT = 1003
"""The storage format that this release writes. It also reads those since the oldest, which the first write upgrades."""
STORAGE_FORMAT_QUERIES = 1004
"""The storage format of graphs with stored queries."""
STORAGE_FORMAT_PURGED = 1005
"""The storage format of graphs whose history a purge rewrote."""
STORAGE_FORMAT_ALIASES = 1006
"""The storage format of graphs with aliases of nodes."""
STORAGE_FORMAT_NEWEST = STORAGE_FORMAT_ALIASES
"""The newest storage format that this release reads."""
STORAGE_FORMAT_OLDEST = 1001
"""The oldest storage format that this release reads. Older and newer formats are rejected."""
