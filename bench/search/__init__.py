"""Search against its peers on one generated corpus: nearest vectors, relevant words, both, and a hop from both."""
