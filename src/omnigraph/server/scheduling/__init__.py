"""Scheduling of requests: admission, lanes, inline reads, memory, operations, maintenance."""
