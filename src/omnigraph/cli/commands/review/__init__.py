"""Commands on branches, commits, tags and changes."""
