"""The load in memory, its rules, and the request and result that both load paths share."""
