"""A social-network workload after LDBC SNB, on generated data. The results are not LDBC benchmark results."""
