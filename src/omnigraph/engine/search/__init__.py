"""Full text, vectors and rank fusion."""
