"""Reads side by side with what people could use instead: one generated graph, every answer compared, then timed."""
