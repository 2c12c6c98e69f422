"""Results of queries."""
