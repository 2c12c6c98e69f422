"""The change feed and the history of a row."""
