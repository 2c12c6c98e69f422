"""Plans that are ready to run: liveness, cardinality estimates, limits, `explain`."""
