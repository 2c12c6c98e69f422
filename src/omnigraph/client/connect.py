"""`connect` and `aconnect`: open a graph of a server."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from omnigraph.client.local_only import local_parameter
from omnigraph.credentials import find_token
from omnigraph.errors import MissingPackage
from omnigraph.versioning.model.manifest_objects import MAIN

if TYPE_CHECKING:
    from omnigraph.client.async_remote_graph import AsyncRemoteGraph
    from omnigraph.client.remote_graph import RemoteGraph

TOKEN_VARIABLE = "OMNIGRAPH_BEARER_TOKEN"  # noqa: S105 (the name of a variable)
Verify = bool | str | os.PathLike[str] | ssl.SSLContext


def connect(
    url: str,
    token: str | None = None,
    *,
    branch: str = MAIN,
    timeout_s: float = 60,
    retries: int = 4,
    verify: Verify = True,
    environ: Mapping[str, str] | None = None,
) -> RemoteGraph:
    """Connect to a graph of a server: `https://host`, or `https://host/graphs/ID` if the server has several.

    `token` is the bearer token; by default it is taken from the variable OMNIGRAPH_BEARER_TOKEN, else from the
    operator's credentials, which `omnigraph login` writes. It is sent to this server alone; redirects are not followed.
    `timeout_s` bounds the wait for the answer to a read. A request that fails because the server is overloaded or
    cannot be reached is repeated up to `retries` times. `verify` is False, the path of a file of certificates, or a TLS
    context. `environ` replaces the environment of the process.
    """
    with client_packages():
        from omnigraph.client.calls.remote_calls import RemoteCalls, read_actor  # noqa: PLC0415
        from omnigraph.client.remote_graph import RemoteGraph  # noqa: PLC0415
        from omnigraph.client.transport.address import Address, Settings  # noqa: PLC0415
        from omnigraph.client.transport.sync_loop import SyncLoop  # noqa: PLC0415

    address = Address.of(url)
    loop = SyncLoop(Settings(address, _token(address.url, token, environ), timeout_s, retries, verify))
    try:
        graph = RemoteGraph(loop, RemoteCalls(address.url, MAIN, loop.run(read_actor())))
        return graph if branch == MAIN else graph.on(branch)
    except BaseException:
        loop.close()
        raise


async def aconnect(
    url: str,
    token: str | None = None,
    *,
    branch: str = MAIN,
    timeout_s: float = 60,
    retries: int = 4,
    verify: Verify = True,
    environ: Mapping[str, str] | None = None,
) -> AsyncRemoteGraph:
    """Connect to a graph of a server as `connect` does; the methods of the graph are coroutines."""
    with client_packages():
        from omnigraph.client.async_remote_graph import AsyncRemoteGraph  # noqa: PLC0415
        from omnigraph.client.calls.remote_calls import RemoteCalls, read_actor  # noqa: PLC0415
        from omnigraph.client.transport.address import Address, Settings  # noqa: PLC0415
        from omnigraph.client.transport.async_loop import AsyncLoop  # noqa: PLC0415

    address = Address.of(url)
    loop = AsyncLoop(Settings(address, _token(address.url, token, environ), timeout_s, retries, verify))
    try:
        graph = AsyncRemoteGraph(loop, RemoteCalls(address.url, MAIN, await loop.run(read_actor())))
        return graph if branch == MAIN else await graph.on(branch)
    except BaseException:
        await loop.close()
        raise


def open_remote(
    url: str,
    *,
    branch: str,
    actor: str | None,
    environ: Mapping[str, str] | None,
    local: Mapping[str, object],
) -> RemoteGraph:
    """Connect for `open`; its parameters that only an embedded graph has are refused if they are given."""
    _check_local("open", local)
    graph = connect(url, branch=branch, environ=environ)
    if actor is not None and actor != graph.actor:
        graph.close()
        raise local_parameter("open", "actor")
    return graph


async def aopen_remote(
    url: str,
    *,
    branch: str,
    actor: str | None,
    environ: Mapping[str, str] | None,
    local: Mapping[str, object],
) -> AsyncRemoteGraph:
    """Connect for `aopen`, as `open_remote` does for `open`."""
    _check_local("aopen", local)
    graph = await aconnect(url, branch=branch, environ=environ)
    if actor is not None and actor != graph.actor:
        await graph.aclose()
        raise local_parameter("aopen", "actor")
    return graph


def _check_local(method: str, given: Mapping[str, object]) -> None:
    for parameter, value in given.items():
        if value:
            raise local_parameter(method, parameter)


def _token(url: str, given: str | None, environ: Mapping[str, str] | None) -> str | None:
    """Return the token: the argument, else that of the environment, else that of the operator's credentials."""
    if given is not None:
        return given
    environ = os.environ if environ is None else environ
    return environ.get(TOKEN_VARIABLE, "").strip() or find_token(url, environ)


@contextmanager
def client_packages() -> Iterator[None]:
    """Name the extra if a package of the client is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("httpcore2", "stamina", "anyio"):
            raise
        raise MissingPackage(
            f"'{error.name}' is not installed; the client of a server needs it",
            hint="install it: pip install 'omnigraph[client]'",
        ) from error
