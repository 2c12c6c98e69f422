"""Route functions, one module per family. Each takes a `Caller` and returns a reply; none contains a rule."""
