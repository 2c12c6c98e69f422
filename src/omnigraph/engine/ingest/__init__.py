"""Input records: JSONL, CSV, Parquet, Arrow and Python values as typed columns."""
