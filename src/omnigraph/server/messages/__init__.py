"""Messages of HTTP: reading of requests, forms and encoding of answers."""
