"""Objects, locations, input files, blob sources, fsync."""
