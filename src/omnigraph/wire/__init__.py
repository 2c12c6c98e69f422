"""Documents that interfaces exchange: JSON forms of results and errors, shared by the command line and a server."""
