"""Calls without I/O: one method for each method of `Graph`, which yields requests and returns its value."""
