"""Processes and connections: listening, start, drain, stop, workers."""
