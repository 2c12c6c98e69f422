"""Path variables: all paths, shortest and lightest paths."""
