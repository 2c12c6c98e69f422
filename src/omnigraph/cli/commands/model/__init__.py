"""Commands on schemas and query files."""
