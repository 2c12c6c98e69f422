"""Mutations: statements, overlay, integrity rules, returned rows."""
