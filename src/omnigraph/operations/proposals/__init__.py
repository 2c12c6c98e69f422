"""Proposals: requests to bring one branch into another, with checks, review and a record."""
