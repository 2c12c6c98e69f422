"""Scalar types: the registry of kinds, and the functions on single values that its entries use."""
