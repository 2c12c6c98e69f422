"""Lance tables at exact versions."""
