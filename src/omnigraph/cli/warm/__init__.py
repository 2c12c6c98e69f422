"""Warm processes: commands run in a process that has imported its modules.

A warm server (`omnigraph serve --warm`) imports the modules of the program once and waits at a Unix socket. The program
passes it the command line, the environment, the working directory and its three standard streams. The server forks,
and the new process runs the command as the program itself would: the streams, the directory and the environment are
those of the caller, and nothing is shared between commands. The program then ends with the exit code of that process.

    sockets   the folder and the names of the sockets, and the facts in which both processes must agree
    messages  the encoding of a request
    client    the side of the program; it imports no other module of the package
    server    the side of the server
    launch    the start of a server on demand
"""
