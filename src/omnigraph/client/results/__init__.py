"""Values of the embedded interface from the answers of a server."""
