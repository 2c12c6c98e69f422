"""Benchmarks: `python -m bench` runs all of them, `python -m bench compile_query` one."""
