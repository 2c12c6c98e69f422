"""The command line interface: arguments → calls, results → text, errors → exit codes.

`main` registers the commands of `commands/`, one file per command or command group. `invocation` resolves the graph,
branch and actor from options and `config`. `io/` reads and writes files, formats results and shows progress. `errors`
maps error classes to exit codes. Only this package prints, reads the environment or ends the process.

A command imports the modules it needs when it runs, so that `omnigraph --help` starts without the engine.
"""
