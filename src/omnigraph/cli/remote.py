"""Graphs on a server: the token and the time limit of a command, the connection, and hints for its errors."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from omnigraph.cli.addresses import Address
from omnigraph.cli.addresses import Settings as CommandSettings
from omnigraph.credentials import credentials_path, read_tokens, server_of
from omnigraph.errors import InputError, OmniGraphError, OutcomeUnknown
from omnigraph.operator_config import token_variable
from omnigraph.suggestions import listing

if TYPE_CHECKING:
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.client.transport.address import Settings
    from omnigraph.wire.server_state import GraphDocument

BEARER_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"
TIMEOUT_VARIABLE = "OMNIGRAPH_HTTP_TIMEOUT_MS"
TIMEOUT_S = 60.0
NO_DEFAULT_GRAPH = "no_default_graph"


@dataclass(frozen=True)
class FoundToken:
    """A token, and the variable or file that gave it."""

    token: str = field(repr=False)
    origin: str


def find_token(address: Address, settings: CommandSettings) -> FoundToken | None:
    """Return the token for an address.

    The token of the server comes first: its variable, then the credentials file. Then comes the variable that the
    configuration names for the graph, if the graph was selected by name, then `OMNIGRAPH_BEARER_TOKEN`.
    """
    environ = settings.environ
    server = server_of(address.uri, settings.config.operator.servers)
    names = [token_variable(server)] if server is not None else []
    found = _first_variable(names, settings)
    if found is None and server is not None:
        path = credentials_path(environ)
        stored = read_tokens(path).get(server)
        found = FoundToken(stored, str(path)) if stored else None
    if found is not None:
        return found
    named = settings.config.get(f"graphs.{address.name}.bearer_token_env") if address.name is not None else None
    return _first_variable([*([str(named)] if named else []), BEARER_VARIABLE], settings)


def _first_variable(names: list[str], settings: CommandSettings) -> FoundToken | None:
    for name in names:
        value = settings.environ.get(name, "").strip()
        if value:
            return FoundToken(value, name)
    return None


def timeout_s(settings: CommandSettings) -> float:
    """Return the time limit of reads in seconds: `OMNIGRAPH_HTTP_TIMEOUT_MS`, else 60."""
    given = settings.environ.get(TIMEOUT_VARIABLE, "").strip()
    if not given:
        return TIMEOUT_S
    if not given.isascii() or not given.isdecimal() or int(given) < 1:
        raise InputError(
            f"{TIMEOUT_VARIABLE} must be a number of milliseconds of at least 1 (got '{given}')", code="bad_config"
        )
    return int(given) / 1000


def import_client() -> None:
    """Import the client; raises `MissingPackage` if a package that it needs is not installed."""
    from omnigraph.client.connect import client_packages

    with client_packages():
        import omnigraph.client.remote_graph  # noqa: F401


def connect(address: Address, settings: CommandSettings, branch: str) -> RemoteGraph:
    """Connect to a graph of a server."""
    from omnigraph.client.connect import connect as connect_to

    found = find_token(address, settings)
    token = found.token if found is not None else None
    return connect_to(address.uri, token, branch=branch, timeout_s=timeout_s(settings), environ={})


def connection(address: Address, settings: CommandSettings) -> Settings:
    """Return the settings of a connection to a server."""
    import_client()
    from omnigraph.client.transport.address import Address as ServerAddress
    from omnigraph.client.transport.address import Settings

    found = find_token(address, settings)
    token = found.token if found is not None else None
    return Settings(ServerAddress.of(address.uri), token, timeout_s(settings))


def list_graphs(address: Address, settings: CommandSettings) -> list[GraphDocument]:
    """Return the graphs of a server."""
    made = connection(address, settings)
    from omnigraph.client.served_graphs import served_graphs

    try:
        return served_graphs(made)
    except OmniGraphError as error:
        if error.code == "method_not_allowed":
            error.hint = "the address of its graph is that of the server"
        raise


def explained(error: OmniGraphError, address: Address, settings: CommandSettings) -> OmniGraphError:
    """Return an error of a server with a hint for the command line."""
    if isinstance(error, OutcomeUnknown):
        error.hint = "the write may have been made; 'omnigraph commit list' shows whether it was"
    elif error.code == NO_DEFAULT_GRAPH:
        return _several_graphs(address, settings, error)
    elif error.code in _TOKEN_CODES:
        error.hint = _token_hint(address, settings)
    elif error.code == "no_such_path":
        error.hint = f"{address.uri} is not the address of a server, or of a server and /graphs/ID"
    return error


_TOKEN_CODES = frozenset({"missing_token", "invalid_token", "token_expired"})


def _token_hint(address: Address, settings: CommandSettings) -> str:
    found = find_token(address, settings)
    server = server_of(address.uri, settings.config.operator.servers) or "NAME"
    given = f"the token of {found.origin} was sent" if found is not None else "no token was sent"
    return f"{given}; 'omnigraph login {server}' stores one, {BEARER_VARIABLE} holds one for any server"


def _several_graphs(address: Address, settings: CommandSettings, error: OmniGraphError) -> OmniGraphError:
    """Return the error of a server with several graphs; it lists them if the caller may list them."""
    error.hint = "name the graph: --graph ID, or 'default_graph' in the operator file"
    try:
        graphs = list_graphs(address, settings)
    except OmniGraphError:
        return error
    ids = listing((graph.graph_id for graph in graphs), most=100)
    return InputError(f"the server at {address.uri} has several graphs: {ids}", code=NO_DEFAULT_GRAPH, hint=error.hint)
