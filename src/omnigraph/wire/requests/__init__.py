"""Inputs of the HTTP routes: JSON bodies and query strings, one struct each."""
