"""Search compared with peers on one generated corpus: nearest vectors, full text, hybrid, and a hop from the hits."""
