"""The client of a server: `RemoteGraph` and `AsyncRemoteGraph`, with the methods of `Graph` over HTTP."""
