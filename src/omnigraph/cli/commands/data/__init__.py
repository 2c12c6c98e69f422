"""Commands that create, load, query and export graphs."""
