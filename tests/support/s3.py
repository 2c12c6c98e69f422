"""Object stores for tests on 127.0.0.1: a real one, one that ignores conditions, one that loses responses."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

HOST = "127.0.0.1"
BUCKET = "graphs"
_KEY, _SECRET = "test-key", "test-secret"
_PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
_START_S = 60.0


@dataclass
class S3:
    """A running store: its address, and new prefixes in it."""

    endpoint: str

    def __post_init__(self) -> None:
        self._numbers = count()

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a process that uses it."""
        return {
            "AWS_ACCESS_KEY_ID": _KEY,
            "AWS_SECRET_ACCESS_KEY": _SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_ENDPOINT_URL_S3": self.endpoint,
        }

    def new_place(self) -> str:
        """An unused prefix."""
        return f"s3://{BUCKET}/place-{next(self._numbers)}"


@contextmanager
def seaweedfs(folder: Path) -> Iterator[S3]:
    """Run SeaweedFS with one bucket; the end of the block removes it and its files."""
    config = folder / "s3.json"
    who = {"name": "test", "credentials": [{"accessKey": _KEY, "secretKey": _SECRET}], "actions": ["Admin"]}
    config.write_text(json.dumps({"identities": [who]}))
    ports = _free_ports(len(_PORTS) + 2)
    s3_port = ports[-1]
    settings = [f"-{name}={port}" for name, port in zip((*_PORTS, "s3.port.grpc", "s3.port"), ports, strict=True)]
    command = [
        str(Path(sysconfig.get_path("scripts")) / "weed"),
        *("server", f"-dir={folder}", f"-ip={HOST}", f"-ip.bind={HOST}", "-s3", f"-s3.config={config}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"),
        *("-volume.max=40", *settings),
    ]
    log = folder / "weed.log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(s3_port, process, log)
        yield S3(f"http://{HOST}:{s3_port}")
    finally:
        process.kill()
        process.wait()
        for port in ports:
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.create_server((HOST, 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it stores an object; the first one creates the bucket."""
    store = S3Store(
        BUCKET,
        aws_access_key_id=_KEY,
        aws_secret_access_key=_SECRET,
        aws_region="us-east-1",
        aws_endpoint=f"http://{HOST}:{port}",
        client_options={"allow_http": True},
        retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=5)},
    )
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        try:
            obstore.put(store, "ready", b"yes")
        except (BaseError, OSError):
            time.sleep(0.1)
        else:
            return
    raise AssertionError(f"SeaweedFS did not start: {log.read_text(errors='replace')[-2000:]}")


# -- a store in this process, which can be told to ignore conditions -------------------------------------


@dataclass
class PlainStore(S3):
    """An in-memory subset of S3 for small graphs."""

    honours_conditions: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.objects: dict[str, bytes] = {}
        self.lock = threading.Lock()


@contextmanager
def plain_store() -> Iterator[PlainStore]:
    """Serve an empty `PlainStore`."""
    store = PlainStore("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            self.send_response(status)
            fields = {"ETag": '"1"', "Last-Modified": formatdate(usegmt=True), "Content-Length": str(len(body))}
            for name, value in {**fields, **{key.replace("_", "-"): text for key, text in headers.items()}}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))

        def key(self) -> str:
            return unquote(urlsplit(self.path).path)

        def do_PUT(self) -> None:
            body = self.body()
            with store.lock:
                refused = store.honours_conditions and self.headers.get("If-None-Match") and self.key() in store.objects
                if not refused:
                    store.objects[self.key()] = body
            self.answer(412 if refused else 200)

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            if "list-type" in query:
                self.list(query.get("prefix", [""])[0], query.get("delimiter", [""])[0])
            elif (body := store.objects.get(self.key())) is None:
                self.answer(404)
            elif span := self.headers.get("Range"):
                first, _, last = span.removeprefix("bytes=").partition("-")
                start = int(first) if first else len(body) - int(last)
                end = min(int(last) + 1, len(body)) if first and last else len(body)
                self.answer(206, body[start:end], Content_Range=f"bytes {start}-{end - 1}/{len(body)}")
            else:
                self.answer(200, body)

        def do_HEAD(self) -> None:
            self.do_GET()

        def list(self, prefix: str, delimiter: str) -> None:
            start = f"/{BUCKET}/{prefix}"
            names = [key.removeprefix(f"/{BUCKET}/") for key in sorted(store.objects) if key.startswith(start)]
            here, folders = names, set()
            if delimiter:
                here = [name for name in names if "/" not in name[len(prefix) :]]
                folders = {name[: name.index("/", len(prefix)) + 1] for name in names if name not in here}
            items = "".join(
                f"<Contents><Key>{name}</Key><Size>{len(store.objects[f'/{BUCKET}/{name}'])}</Size>"
                "<LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
                for name in here
            )
            items += "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in sorted(folders))
            head = f"<IsTruncated>false</IsTruncated><KeyCount>{len(here)}</KeyCount>"
            self.answer(200, f"<ListBucketResult>{head}{items}</ListBucketResult>".encode())

        def do_POST(self) -> None:
            keys = re.findall(r"<Key>(.*?)</Key>", self.body().decode())
            for key in keys:
                store.objects.pop(f"/{BUCKET}/{key}", None)
            done = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
            self.answer(200, f"<DeleteResult>{done}</DeleteResult>".encode())

        def do_DELETE(self) -> None:
            store.objects.pop(self.key(), None)
            self.answer(204)

        def log_message(self, *_: object) -> None:
            return

    with _serving(Handler) as port:
        store.endpoint = f"http://{HOST}:{port}"
        yield store


# -- a way to a store on which answers get lost ----------------------------------------------------------

Loses = Callable[[str, str], bool]


@dataclass
class LossyWay(S3):
    """Forwards requests. If `loses(method, path)` is true, the request is executed and its response is dropped."""

    loses: Loses = lambda _method, _path: False
    answer: int | None = None
    """The replacement of a dropped response: nothing, or this status."""
    reason: tuple[str, str] | None = None
    """Code and message of the error document sent with the status."""


@contextmanager
def lossy_way(behind: S3) -> Iterator[LossyWay]:
    """Run a proxy to a store."""
    target = urlsplit(behind.endpoint).netloc
    way = LossyWay("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            connection = http.client.HTTPConnection(target, timeout=30)
            # Headers are forwarded unchanged: the signature covers the host known to the client.
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                connection.putheader(name, value)
            connection.endheaders(body)
            response = connection.getresponse()
            data = response.read()
            connection.close()
            if way.loses(self.command, self.path):
                self.lose()
                return
            self.send_response_only(response.status)
            for name, value in response.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                    self.send_header(name, value)
            length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            self.wfile.write(data)

        def lose(self) -> None:
            if way.answer is not None:
                body = b""
                if way.reason is not None and self.command != "HEAD":
                    code, message = way.reason
                    fields = f"<Code>{code}</Code><Message>{message}</Message>"
                    body = f"<?xml version='1.0'?>\n<Error>{fields}</Error>".encode()
                self.send_response_only(way.answer)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            return

    for method in ("GET", "PUT", "HEAD", "POST", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.do)
    with _serving(Handler) as port:
        way.endpoint = f"http://{HOST}:{port}"
        yield way


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer((HOST, 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
