"""`omnigraph config`: show the settings in effect and their origin."""

from __future__ import annotations

from typing import Any

from omnigraph.cli.addresses import Address
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.output import print_json
from omnigraph.config import OPERATOR_EQUIVALENTS, Config
from omnigraph.config_keys import KEYS
from omnigraph.redaction import redact_uri
from omnigraph.text_table import cell


@takes_graph
def config_command(run: Invocation, as_json: Json = False) -> None:
    """Show the settings in effect and the origin of each value.

    Options are taken into account: 'omnigraph config --target lab' shows the graph that they select.
    """
    config = run.config
    address = run.address() if run.has_address else None
    rows: list[tuple[str, Any, str]] = [
        ("file", str(config.path) if config.path else None, "found" if config.path else "no file"),
        ("graph", address.uri if address else None, address.origin if address else "not set"),
    ]
    rows += _caller(run, address)
    rows += [(key, config.get(key), config.origin(key) or "") for key in _known(config)]
    rows += _operator_rows(config)
    rows = [(key, _redacted(value), origin) for key, value, origin in rows]
    if as_json:
        print_json({"settings": [{"key": key, "value": value, "origin": origin} for key, value, origin in rows]})
        return
    widths = [max(len(key) for key, _, _ in rows), max(len(cell(value)) for _, value, _ in rows)]
    for key, value, origin in rows:
        shown = "-" if value is None else cell(value)
        print(f"{key.ljust(widths[0])}  {shown.ljust(widths[1])}  {origin}".rstrip())


def _caller(run: Invocation, address: Address | None) -> list[tuple[str, Any, str]]:
    """Return the actor of changes in storage; for a server, the origin of the token."""
    if address is None or not address.is_server:
        return [("actor", run.actor, run.actor_origin or "not set")]
    from omnigraph.cli.remote import find_token

    found = find_token(address, run)
    return [("token", None, found.origin if found is not None else "not set")]


def _redacted(value: Any) -> Any:
    """Return a value without the passwords of addresses."""
    if isinstance(value, list):
        return [_redacted(item) for item in value]
    return redact_uri(value) if isinstance(value, str) else value


def _known(config: Config) -> list[str]:
    """Return every key with a value: first the fixed keys in documented order, then those that contain names."""
    plain = [key for key in KEYS if "*" not in key and config.get(key) is not None]
    return plain + [key for key in config.values if key not in plain]


def _operator_rows(config: Config) -> list[tuple[str, Any, str]]:
    """Return the values of the operator file that no key of the configuration shows."""
    operator = config.operator
    return [
        (key, value, str(operator.path)) for key, value in operator.values.items() if key not in OPERATOR_EQUIVALENTS
    ]
