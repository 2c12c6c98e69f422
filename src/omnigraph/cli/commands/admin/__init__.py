"""Maintenance, settings and the demonstration."""
