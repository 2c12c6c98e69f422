"""The command line: translates words on a terminal into calls, and results into text.

One file per command. `main` puts them together, `files` reads and writes what the user names, `output`
prints, `errors` is the one table from error classes to exit codes. Only this package prints, reads the
environment or ends the process.

A command imports what it runs when it runs: `omnigraph --help` must not wait for the engine.
"""
