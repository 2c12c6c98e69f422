"""Purges: removal of rows from every branch and all history."""
