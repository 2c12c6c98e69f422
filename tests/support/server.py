"""A server on a loopback port, in a thread of the test, and a plain HTTP client."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from omnigraph.server.app import Application, create_app
from omnigraph.server.deployment.reload import make_holder
from omnigraph.server.deployment.state import StateHolder
from omnigraph.server.deployment.state_builder import StartOptions
from omnigraph.server.process.lifecycle import READ_GRACE_S, Lifecycle
from omnigraph.server.process.listening import bind

WAIT_S = 30.0


@dataclass(frozen=True)
class Reply:
    """A response."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        """The body as JSON lines."""
        return [json.loads(line) for line in self.body.splitlines()]


@dataclass
class ServerUnderTest:
    """A running server. `request` opens a connection for each call, so that tests do not depend on each other."""

    port: int
    holder: StateHolder
    app: Application
    lifecycle: Lifecycle
    token: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    code: int | None = None
    """The exit code, after the end."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the server."""
        assert self.lifecycle._loop is not None
        return self.lifecycle._loop

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
    ) -> Reply:
        """Send a request; a body that is not bytes is sent as JSON."""
        sent = {**self.headers, **(headers or {})}
        token = token if token is not None else self.token
        if token:
            sent.setdefault("Authorization", f"Bearer {token}")
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            sent.setdefault("Content-Type", "application/json")
        if params:
            path = f"{path}?{urlencode(params, doseq=True)}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            # An event stream does not end; its first events are its answer.
            is_stream = response.headers.get_content_type() == "text/event-stream"
            data = response.read1() if is_stream else response.read()
            return Reply(response.status, {name.lower(): value for name, value in response.getheaders()}, data)
        finally:
            connection.close()

    def becomes_idle(self) -> bool:
        """Wait until no slot is held; return False if one stays."""
        server = self.app.server
        for _ in range(500):
            lanes = server.execution.lanes.values()
            if not (server.execution.in_flight_reads or server.admission.actors or any(each.running for each in lanes)):
                return True
            time.sleep(0.02)
        return False

    def get(self, path: str, **options: Any) -> Reply:
        """Send a GET request."""
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        """Send a POST request."""
        return self.request("POST", path, {} if body is None else body, **options)


@contextmanager
def serving(
    *uris: str | Path,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    token: str | None = None,
    local_token: str | None = None,
    read_grace_s: float = READ_GRACE_S,
) -> Iterator[ServerUnderTest]:
    """Serve graphs on a free loopback port; `flags` maps keys without `server.` to values.

    With `local_token` the server is one of `omnigraph ui`.
    """
    local = {"local": True} if local_token is not None else {}
    options = StartOptions(
        uris=tuple(map(str, uris)),
        config=str(config) if config is not None else None,
        flags={"bind": "127.0.0.1:0", **local, **(flags or {})},
        environ=dict(environ or {}),
        local_token=local_token,
        private=local_token is not None,
    )
    holder = make_holder(options)
    app = create_app(holder)
    listener = bind(holder.current.settings)
    lifecycle = Lifecycle(
        holder, app, app.server.execution, listener, usage=app.server.connections, read_grace_s=read_grace_s
    )
    server = ServerUnderTest(listener.getsockname()[1], holder, app, lifecycle, token)
    ready = threading.Event()

    def run() -> None:
        server.code = lifecycle.run(ready.set, with_signals=False)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(WAIT_S), "the server did not start"
    try:
        yield server
    finally:
        if not lifecycle._stopping:
            lifecycle.stop()
        thread.join(WAIT_S)
        assert not thread.is_alive(), "the server did not stop"
