"""Type checking: syntax tree to resolved query."""
