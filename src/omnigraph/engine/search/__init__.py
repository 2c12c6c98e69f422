"""Full-text search, vector search and rank fusion."""
