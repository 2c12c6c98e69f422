"""`python -m bench.search [--full] [peer …]`; peers are lancedb, duckdb, sqlite and, only if named, kuzu."""

from __future__ import annotations

import sys

from bench.search.side_by_side import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
