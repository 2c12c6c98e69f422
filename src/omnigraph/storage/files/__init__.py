"""Objects, locations, input files, blob sources and fsync."""
