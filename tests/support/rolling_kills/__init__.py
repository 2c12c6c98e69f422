"""Clients that read, change and merge one graph through servers that are stopped and killed in turn."""
