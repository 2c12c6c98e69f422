"""The command line: translates words on a terminal into calls, and results into text.

`main` puts the commands together; each file holds a small group of them. `invocation` finds out which graph, branch and
actor are meant, from options and `config`; `files` reads and writes what the user names; `output`, `formats` and
`progress` show things; `errors` is the one table from error classes to exit codes. Only this package prints, reads
the environment or ends the process.

A command imports what it runs when it runs: `omnigraph --help` must not wait for the engine.
"""
