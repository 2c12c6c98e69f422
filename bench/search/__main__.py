"""`python -m bench.search [--full] [peer …]`; the peers are lancedb, duckdb, sqlite and, asked for alone, kuzu."""

from __future__ import annotations

import sys

from bench.search.side_by_side import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
