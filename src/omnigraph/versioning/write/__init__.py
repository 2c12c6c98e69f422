"""Transactions, intents, leases, recovery, branches and tags."""
