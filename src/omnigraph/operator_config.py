"""The operator file `~/.omnigraph/config.yaml`: personal settings, servers, profiles and aliases.

`OMNIGRAPH_HOME` names another folder. A missing file is empty. The file contains no tokens; they are in the credentials
file beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import Any

from omnigraph.config_keys import OPERATOR_KEYS
from omnigraph.config_parser import invalid, parse_keys
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.http_address import is_server_url, normalized_url
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.text_files import read_text_file

OPERATOR_FILE = "config.yaml"
HOME_VARIABLE = "OMNIGRAPH_HOME"
TOKEN_VARIABLE = "OMNIGRAPH_TOKEN_"  # noqa: S105 (the prefix of a variable)
SERVER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)


@dataclass(frozen=True)
class Profile:
    """A named address: a store, or a server and its default graph."""

    name: str
    store: str | None = None
    server: str | None = None
    default_graph: str | None = None


@dataclass(frozen=True)
class OperatorAlias:
    """A named query on a server: a stored query, or a query of a local file."""

    name: str
    server: str
    graph: str | None = None
    query: str | None = None
    file: str | None = None
    query_name: str | None = None
    args: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True)
class OperatorConfig:
    """The values of the operator file."""

    path: Path
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()

    @property
    def server_names(self) -> list[str]:
        """The names of the servers."""
        return self._names("servers")

    @cached_property
    def servers(self) -> dict[str, str]:
        """The named servers and their normalized addresses."""
        return {name: normalized_url(self.values[f"servers.{name}.url"]) for name in self.server_names}

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """The profiles by name."""
        return {
            name: Profile(name, **{member: self._of("profiles", name, member) for member in _PROFILE})
            for name in self._names("profiles")
        }

    @property
    def aliases(self) -> list[str]:
        """The names of the aliases."""
        return self._names("aliases")

    def get_server(self, name: str) -> str:
        """Return the address of a server; a name with `://` is an address. Raises `InputError` for an unknown name."""
        if "://" in name:
            return normalized_url(name)
        if name not in self.servers:
            raise self._unknown("server", name, self.servers, "servers")
        return self.servers[name]

    def find_cluster(self, name: str) -> str | None:
        """Return the storage of a named cluster, None if there is none."""
        root: str | None = self._of("clusters", name, "root")
        return root

    def get_profile(self, name: str) -> Profile:
        """Return a profile; raises `InputError` for an unknown name."""
        if name not in self.profiles:
            raise self._unknown("profile", name, self.profiles, "profiles")
        return self.profiles[name]

    def get_alias(self, name: str) -> OperatorAlias:
        """Return an alias; raises `InputError` for an unknown name."""
        if name not in self.aliases:
            raise self._unknown("alias", name, self.aliases, "aliases")
        server, graph, query, file = (self._of("aliases", name, key) for key in ("server", "graph", "query", "file"))
        picked, args, params = (self._of("aliases", name, key) for key in ("name", "args", "params"))
        format_ = self._of("aliases", name, "format")
        return OperatorAlias(name, server, graph, query, file, picked, tuple(args or ()), params or {}, format_)

    def resolve(self, path: str) -> Path:
        """Resolve a path relative to the folder of the file."""
        return self.path.parent / Path(path).expanduser()

    def _of(self, section: str, name: str, member: str) -> Any:
        return self.values.get(f"{section}.{name}.{member}")

    def _names(self, section: str) -> list[str]:
        return list(dict.fromkeys(key.split(".")[1] for key in self.values if key.startswith(f"{section}.")))

    def _unknown(self, kind: str, name: str, known: Any, section: str) -> InputError:
        plural = f"{kind}es" if kind == "alias" else f"{kind}s"
        return InputError(
            f"there is no {kind} named '{name}'; defined {plural}: {listing(known) or 'none'}",
            code=f"unknown_{kind}",
            hint=did_you_mean(name, known) or f"define it under '{section}:' in {self.path}",
        )


_PROFILE = ("store", "server", "default_graph")


def home(environ: Mapping[str, str]) -> Path:
    """Return the folder of the operator: `OMNIGRAPH_HOME`, else `~/.omnigraph`."""
    named = environ.get(HOME_VARIABLE, "").strip()
    try:
        return Path(named).expanduser() if named else Path.home() / ".omnigraph"
    except RuntimeError:
        raise InputError(
            "the home folder of the user is not known", code="no_home", hint=f"set HOME or {HOME_VARIABLE}"
        ) from None


def read_operator(environ: Mapping[str, str]) -> OperatorConfig:
    """Read and validate the operator file; a file that is missing, or in a folder of another user, is empty."""
    try:
        path = home(environ) / OPERATOR_FILE
        present = path.is_file()
    except (InputError, OSError):
        # The user of a service often has no home folder, or that of another user.
        return OperatorConfig(Path(OPERATOR_FILE))
    return parse_operator(read_text_file(path), path) if present else OperatorConfig(path)


def parse_operator(text: str, path: Path) -> OperatorConfig:
    """Validate the text of an operator file."""
    parsed = parse_keys(text, path, OPERATOR_KEYS)
    operator = OperatorConfig(path, parsed.values, parsed.warnings)
    for problem in _problems(operator):
        raise invalid(f"'{path}': {problem}")
    return operator


def token_variable(name: str) -> str:
    """Return the environment variable of the token of a server."""
    return TOKEN_VARIABLE + name.upper().replace("-", "_")


def _problems(operator: OperatorConfig) -> Iterator[str]:
    """Yield the values that contradict each other."""
    yield from _server_problems(operator)
    places = {f"profiles.{name}": profile for name, profile in operator.profiles.items()}
    get = operator.values.get
    defaults = (get(f"defaults.{member}") for member in _PROFILE)
    places["defaults"] = Profile("defaults", *defaults)
    for where, place in places.items():
        if place.store is not None and place.server is not None:
            yield f"'{where}.store' and '{where}.server' exclude each other"
        if place.store is not None and place.default_graph is not None:
            yield f"'{where}.store' and '{where}.default_graph' exclude each other; a store is one graph"
        if place.store is not None and is_server_url(place.store):
            yield f"'{where}.store' is the address of a server; write it as '{where}.server'"
        yield from _unknown_server(operator, where, place.server)
    for name in operator.aliases:
        alias = operator.get_alias(name)
        yield from _unknown_server(operator, f"aliases.{name}", alias.server)
        if alias.query is not None and alias.query_name is not None:
            yield f"'aliases.{name}.name' requires 'aliases.{name}.file'"


def _unknown_server(operator: OperatorConfig, where: str, server: str | None) -> Iterator[str]:
    if server is not None and "://" not in server and server not in operator.servers:
        known = listing(operator.servers) or "none"
        yield f"'{where}.server' names no server '{server}'; defined servers: {known}"


def _server_problems(operator: OperatorConfig) -> Iterator[str]:
    variables: dict[str, str] = {}
    for name in operator.server_names:
        try:
            normalized_url(operator.values[f"servers.{name}.url"])
        except InputError as error:
            yield f"'servers.{name}.url': {error.message}"
        if SERVER_NAME.fullmatch(name) is None:
            yield f"the server name '{name}' contains a character other than letters, digits, '-' and '_'"
        other = variables.setdefault(token_variable(name), name)
        if other != name:
            yield f"servers '{other}' and '{name}' share the variable {token_variable(name)}; rename one"
