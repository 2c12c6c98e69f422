"""The language server for schemas and queries: `omnigraph lsp`.

documents       open texts, their schema, and the names in them
answers         answers of the protocol from the services of `lang`, `schema` and `query`
server          the server: features, diagnostics and commands

Only `answers` and `server` import lsprotocol, and only `server` imports pygls.
"""
