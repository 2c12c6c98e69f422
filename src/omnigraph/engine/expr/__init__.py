"""Expressions and predicates over columns."""
