"""Authentication: bearer tokens, their sources, and the modes in which a server starts."""
