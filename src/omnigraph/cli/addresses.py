"""Addresses of graphs: the options that name one, and their order of precedence.

An address is given by the URI, `--uri`, `--target`, `--server` (with `--graph`), `--store` or `--profile`. Without one,
it is that of `OMNIGRAPH_PROFILE`, else `cli.graph` of the configuration, else the default of the operator file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from omnigraph.cli.errors import UsageFault
from omnigraph.config import Config
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.http_address import graph_of_url, graph_url, is_server_url, normalized_url
from omnigraph.redaction import redact_uri

PROFILE_VARIABLE = "OMNIGRAPH_PROFILE"


@dataclass(frozen=True)
class Address:
    """The address of a graph, and the option or setting that gave it."""

    uri: str = field(repr=False)
    origin: str
    name: str | None = None
    """The name of the graph in the configuration, if the graph was selected by name."""

    @classmethod
    def of(cls, uri: str, origin: str, name: str | None = None) -> Address:
        """Return the address of a URI; that of a server is normalized."""
        return cls(normalized_url(uri) if is_server_url(uri) else uri, origin, name)

    @property
    def is_local(self) -> bool:
        """True if the graph is on the local disk."""
        return "://" not in self.uri or self.uri.startswith("file://")

    @property
    def is_server(self) -> bool:
        """True if the address is that of a server."""
        return is_server_url(self.uri)

    @property
    def kind(self) -> str:
        """The kind of storage, for messages."""
        return "server" if self.is_server else "local storage" if self.is_local else "remote storage"


@dataclass(frozen=True)
class GivenAddress:
    """The arguments and options that name a graph, as given."""

    uri: str | None = None
    uri_option: str | None = None
    target: str | None = None
    server: str | None = None
    graph_id: str | None = None
    store: str | None = None
    profile: str | None = None

    @property
    def is_empty(self) -> bool:
        """True if nothing was given."""
        return self == GivenAddress()

    def exclusive(self) -> list[tuple[str, str]]:
        """Return the given forms of an address that exclude each other, with their values."""
        forms = {
            "the URI": self.uri,
            "--uri": self.uri_option,
            "--target": self.target,
            "--server": self.server,
            "--store": self.store,
            "--profile": self.profile,
        }
        return [(word, value) for word, value in forms.items() if value is not None]


class Settings(Protocol):
    """The configuration and the environment; read on first use."""

    @property
    def config(self) -> Config:
        """The configuration."""

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment."""


def find_address(given: GivenAddress, settings: Settings, fallback: str | None = None) -> Address | None:
    """Return the address that options or settings name, or None; `fallback` is the graph name of an alias."""
    forms = given.exclusive()
    if len(forms) > 1:
        raise UsageFault(f"more than one graph was given: {', '.join(f'{w} {redact_uri(v)!r}' for w, v in forms)}")
    place = _explicit(given, settings) if forms else _configured(settings, fallback)
    if place is None:
        if given.graph_id is not None:
            raise UsageFault("--graph requires a server: add --server NAME or --server URL")
        return None
    graph_id = given.graph_id or place.default_graph
    return place.address if graph_id is None else _with_graph(place.address, graph_id)


@dataclass(frozen=True)
class _Place:
    """An address, and the graph that it names unless `--graph` does."""

    address: Address
    default_graph: str | None = None


def _explicit(given: GivenAddress, settings: Settings) -> _Place:
    """Return the place of the one form that was given."""
    if given.target is not None:
        if "://" in given.target:
            raise UsageFault(
                f"--target must be a name, not an address ('{redact_uri(given.target)}'); give the address as the URI"
            )
        return _Place(Address.of(settings.config.get_graph(given.target), "--target", given.target))
    if given.server is not None:
        return _of_server(settings, given.server, None, "--server")
    if given.profile is not None:
        return _of_profile(settings, given.profile, "--profile")
    if given.store is not None:
        if is_server_url(given.store):
            shown = redact_uri(given.store)
            raise UsageFault(f"--store must be a folder or s3://bucket/prefix; give a server as --server {shown}")
        return _Place(Address.of(given.store, "--store"))
    if given.uri is not None:
        return _Place(Address.of(given.uri, "the URI"))
    assert given.uri_option is not None
    return _Place(Address.of(given.uri_option, "--uri"))


def _configured(settings: Settings, fallback: str | None) -> _Place | None:
    """Return the place of `OMNIGRAPH_PROFILE`, the alias, the configuration or the operator file."""
    profile = settings.environ.get(PROFILE_VARIABLE, "").strip()
    if profile:
        return _of_profile(settings, profile, PROFILE_VARIABLE)
    config = settings.config
    for name, origin in ((fallback, "the alias"), (config.get("cli.graph"), "cli.graph")):
        if name is not None:
            return _Place(Address.of(config.get_graph(str(name)), origin, str(name)))
    get, origin = config.operator.values.get, str(config.operator.path)
    server, store = get("defaults.server"), get("defaults.store")
    if server is not None:
        return _of_server(settings, server, get("defaults.default_graph"), origin)
    return _Place(Address.of(_expanded(store), origin)) if store is not None else None


def _of_profile(settings: Settings, name: str, origin: str) -> _Place:
    profile = settings.config.operator.get_profile(name)
    if profile.server is not None:
        return _of_server(settings, profile.server, profile.default_graph, origin)
    assert profile.store is not None
    return _Place(Address.of(_expanded(profile.store), origin))


def _of_server(settings: Settings, server: str, default_graph: str | None, origin: str) -> _Place:
    if "://" in server and not is_server_url(server):
        shown = redact_uri(server)
        raise UsageFault(f"a server is a name or an http address, not '{shown}'; give a folder or bucket as --store")
    return _Place(Address.of(settings.config.operator.get_server(server), origin), default_graph)


def _with_graph(address: Address, graph_id: str) -> Address:
    shown = redact_uri(address.uri)
    if not address.is_server:
        raise UsageFault(
            f"--graph names a graph of a server, and '{shown}' is in storage; omit --graph, or give --server"
        )
    named = graph_of_url(address.uri)
    if named is not None:
        raise InputError(
            f"the address '{shown}' names the graph '{named}' already; '{graph_id}' cannot be added",
            code="bad_server_address",
            hint="name the graph once: in the address, as --graph, or as 'default_graph'",
        )
    return replace(address, uri=graph_url(address.uri, graph_id))


def _expanded(store: str) -> str:
    return str(Path(store).expanduser()) if store.startswith("~") else store
