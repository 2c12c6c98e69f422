"""Path variables: all simple paths, shortest paths and paths of least weight."""
