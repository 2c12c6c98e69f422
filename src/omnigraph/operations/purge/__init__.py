"""Purges of rows with everything beside the tables: caches, proposals, and the certificate."""
