"""Authorization of calls: decisions, points of history, visible rows."""
