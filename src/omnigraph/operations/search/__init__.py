"""Search in the nodes of all types: by words, by meaning, or by both."""
