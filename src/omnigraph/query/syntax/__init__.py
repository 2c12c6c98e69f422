"""Query text to syntax tree, and back."""
