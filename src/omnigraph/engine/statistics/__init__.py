"""Statistics of table versions for the optimizer."""
