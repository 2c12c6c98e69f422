"""A command in a warm server and in its own process: the same output, errors, exit codes and effects."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.cli.warm import client, messages, sockets

pytestmark = pytest.mark.skipif(not sockets.is_offered(), reason="no fork or no Unix sockets")

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\nedge Knows: Person -> Person\n"
QUERIES = """
query person($n: String) { match { $p: Person { name: $n } } return { $p.name, $p.age } }
query all() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }
query older($age: I32) { match { $p: Person  $p.age > $age } return { $p.name } order { $p.name } }
query grow($n: String) { update Person set { age: 99 } where name = $n }
"""
POLICY = """
version: 1
groups: { team: [ana] }
rules:
  - { id: read-main, allow: { actors: { group: team }, actions: [read], branch_scope: any } }
"""


@pytest.fixture(scope="module")
def runtime() -> Iterator[Path]:
    """A private folder with a short path: the address of a socket is limited."""
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415

    path = Path(tempfile.mkdtemp(prefix="og"))
    yield path
    shutil.rmtree(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warm")
    graph = og.init(folder / "g.omni", SCHEMA)
    people = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in (("Ada", 36), ("Bo", 7))]
    graph.load([*people, {"edge": "Knows", "from": "Ada", "to": "Bo"}], mode="merge")
    (folder / "omnigraph.yaml").write_text(
        "graphs: { people: { uri: ./g.omni } }\ncli: { graph: people }\n"
        "aliases: { one: { command: read, query: q.gq, name: person, args: [n] } }\n"
    )
    (folder / "q.gq").write_text(QUERIES)
    (folder / "bad.gq").write_text("query x() { match { $p: Persn } return { $p.name } }\n")
    (folder / "policy.yaml").write_text(POLICY)
    (folder / "strict.yaml").write_text(
        "graphs: { people: { uri: ./g.omni } }\ncli: { graph: people, policy: enforce }\n"
        "policy: { file: policy.yaml }\n"
    )
    (folder / "sub").mkdir()
    return folder


def environment(runtime: Path, **more: str) -> dict[str, str]:
    """The environment of the tests without settings of the user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OMNIGRAPH_") and name != "TMPDIR"}
    kept["OMNIGRAPH_CACHE_DIR"] = os.environ["OMNIGRAPH_CACHE_DIR"]
    return {**kept, "XDG_RUNTIME_DIR": str(runtime), "OMNIGRAPH_HOME": "/nowhere", "HOME": str(runtime), **more}


class Server:
    """A running warm server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def stop(self) -> int:
        """Stop the server and return the number of commands that it ran."""
        self.process.terminate()
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        return int(errors.split("ended after ")[1].split(" ")[0])


@contextmanager
def warm(folder: Path, runtime: Path, *words: str, **more: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "omnigraph", "serve", "--warm", *words]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=folder, env=environment(runtime, **more), text=True, **pipes)  # type: ignore[call-overload]
    try:
        for _ in range(1_200):
            if process.poll() is not None or list(runtime.glob("omnigraph/*.sock")):
                break
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()
        yield Server(process)
    finally:
        process.kill()
        process.communicate(timeout=60)


@pytest.fixture(scope="module")
def server(folder: Path, runtime: Path) -> Iterator[Server]:
    with warm(folder, runtime) as server:
        yield server


def outcome(
    words: list[str], cwd: Path, runtime: Path, *, use: bool, given: str | None = None, **more: str
) -> tuple[int, str, str]:
    switch = {} if use else {"OMNIGRAPH_WARM": "off"}
    stdin = {"input": given} if given is not None else {"stdin": subprocess.DEVNULL}
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph", *words],
        cwd=cwd,
        env=environment(runtime, **switch, **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **stdin,  # type: ignore[arg-type]
    )
    return done.returncode, done.stdout, done.stderr


READ = ["read", "-q", "q.gq", "-n", "person", "-p", "n=Ada"]
CASES: dict[str, tuple[list[str], dict[str, str]]] = {
    "table": (READ, {}),
    "columns": ([*READ, "-f", "table"], {"COLUMNS": "20"}),
    "csv": ([*READ, "--format", "csv"], {}),
    "json": ([*READ, "--json"], {}),
    "jsonl": (["read", "-q", "q.gq", "-n", "all", "--format", "jsonl"], {}),
    "kv": ([*READ, "--format", "kv"], {}),
    "alias": (["read", "--alias", "one", "Bo"], {}),
    "unicode": (["read", "-q", "q.gq", "-n", "person", "-p", "n=Zoë ☃"], {}),
    "inline": (["read", "-e", "match { $p: Person } return { $p.name }"], {}),
    "store": ([*READ, "--store", "g.omni"], {}),
    "address": ([*READ, "./g.omni"], {}),
    "no such graph": ([*READ, "./none.omni"], {}),
    "no such query": (["read", "-q", "q.gq", "-n", "nobody"], {}),
    "compile error": (["read", "-q", "bad.gq"], {}),
    "compile error as json": (["read", "-q", "bad.gq", "--json"], {}),
    "bad parameter": (["read", "-q", "q.gq", "-n", "older", "-p", "age=old"], {}),
    "no such file": (["read", "-q", "none.gq"], {}),
    "usage": (["read", "--nope"], {}),
    "bad number": ([*READ, "--page", "0"], {}),
    "help": (["read", "--help"], {}),
    "configuration": ([*READ], {"OMNIGRAPH_CONFIG": "none.yaml"}),
    "policy": ([*READ], {"OMNIGRAPH_CONFIG": "strict.yaml", "OMNIGRAPH_ACTOR": "ana"}),
    "denied": ([*READ], {"OMNIGRAPH_CONFIG": "strict.yaml", "OMNIGRAPH_ACTOR": "eve"}),
    "explain": (["explain", "-q", "q.gq", "-n", "person"], {}),
    "status": (["status"], {}),
    "log": (["log"], {}),
    "branches": (["branch", "list"], {}),
    "schema": (["schema", "show"], {}),
    "lint": (["lint", "-q", "bad.gq"], {}),
    "history": (["history", "Person", "Ada"], {}),
    "bad setting": (READ, {"OMNIGRAPH_TMPDIR": "/none"}),
    "server address": (["read", "-q", "q.gq", "-n", "all", "--server", "http://127.0.0.1:1"], {}),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_outcome_is_the_same(server: Server, folder: Path, runtime: Path, case: str) -> None:
    words, more = CASES[case]
    assert outcome(words, folder, runtime, use=True, **more) == outcome(words, folder, runtime, use=False, **more)


def on_terminal(words: list[str], folder: Path, environ: dict[str, str]) -> tuple[int, bytes]:
    """Run a command with a terminal as its three streams."""
    own, other = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph", *words], cwd=folder, env=environ, stdin=other, stdout=other, stderr=other
    )
    os.close(other)
    shown = b""
    try:
        while data := os.read(own, 65_536):
            shown += data
    except OSError:
        # Linux reports the end of a terminal as an error.
        pass
    os.close(own)
    return process.wait(60), shown


@pytest.mark.parametrize("words", [READ, ["status"], ["read", "--nope"]], ids=["read", "status", "usage"])
def test_colours_on_a_terminal(server: Server, folder: Path, runtime: Path, words: list[str]) -> None:
    """Without a pager, a command also runs in the server on a terminal."""
    both = [
        on_terminal(words, folder, environment(runtime, PAGER="cat", TERM="xterm", **switch))
        for switch in ({}, {"OMNIGRAPH_WARM": "off"})
    ]
    assert both[0] == both[1]
    assert b"\x1b[" in both[0][1]


def test_queries_from_stdin(server: Server, folder: Path, runtime: Path) -> None:
    words = ["read", "-q", "-", "-n", "all"]
    both = [outcome(words, folder, runtime, use=use, given=QUERIES) for use in (True, False)]
    assert both[0] == both[1]
    assert both[0][0] == 0


def test_changes_act_as_in_a_process_of_their_own(tmp_path: Path, server: Server, runtime: Path) -> None:
    """The directory, the actor and the masks of files are those of the caller."""
    made = []
    for use in (True, False):
        own = tmp_path / str(use)
        own.mkdir()
        og.init(own / "g.omni", SCHEMA).load([{"type": "Person", "data": {"name": "Ada"}}], mode="merge")
        (own / "q.gq").write_text(QUERIES)
        words = ["change", "-q", "q.gq", "-n", "grow", "-p", "n=Ada", "g.omni", "--json"]
        code, text, errors = outcome(words, own, runtime, use=use, OMNIGRAPH_ACTOR="eve")
        assert (code, errors) == (0, "")
        commit = og.open(own / "g.omni").commits()[0]
        rows = outcome(["read", "-e", "match { $p: Person } return { $p.age }", "g.omni"], own, runtime, use=use)
        made.append((commit.actor, sorted(json.loads(text)), rows))
    assert made[0] == made[1]
    assert made[0][0] == "eve"


def test_files_have_the_mask_of_the_caller(server: Server, folder: Path, runtime: Path) -> None:
    for use in (True, False):
        out = folder / f"out-{use}.csv"
        switch = {} if use else {"OMNIGRAPH_WARM": "off"}
        command = [sys.executable, "-m", "omnigraph", *READ, "--format", "csv", "--out", str(out)]
        env = environment(runtime, **switch)
        subprocess.run(command, cwd=folder, env=env, check=True, umask=0o077, stdin=subprocess.DEVNULL)
        assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_a_closed_pipe_ends_the_command(server: Server, folder: Path, runtime: Path) -> None:
    codes = []
    for use in (True, False):
        switch = {} if use else {"OMNIGRAPH_WARM": "off"}
        command = [sys.executable, "-m", "omnigraph", "read", "-q", "q.gq", "-n", "all"]
        env = environment(runtime, **switch)
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            command, cwd=folder, env=env, stdout=writer, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False
        )
        os.close(writer)
        codes.append((done.returncode, done.stderr))
    assert codes[0] == codes[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_command(server: Server, folder: Path, runtime: Path, number: int) -> None:
    """The command waits for its query on stdin; the signal goes to the program, as from a terminal."""
    ends = []
    for use in (True, False):
        switch = {} if use else {"OMNIGRAPH_WARM": "off"}
        command = [sys.executable, "-c", INTERRUPTIBLE, "read", "-q", "-"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=folder, env=environment(runtime, **switch), **pipes)  # type: ignore[call-overload]
        _wait_for_reader(process, server if use else None)
        process.send_signal(number)
        # The pipe stays open: only the signal ends the command.
        code = process.wait(60)
        ends.append((code, process.stderr.read(), process.stdout.read()))
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
    assert ends[0] == ends[1]


INTERRUPTIBLE = "from omnigraph.cli.entry import main; main()"


def _wait_for_reader(process: subprocess.Popen[bytes], server: Server | None) -> None:
    """Wait until a process reads the pipe: that of the command, or the child of the server."""
    for _ in range(1_200):
        for number in [process.pid] if server is None else _children(server.process.pid):
            with_pipe = Path(f"/proc/{number}/wchan")
            try:
                waiting = with_pipe.read_text()
            except OSError:
                waiting = ""
            if "pipe" in waiting or _is_reading(number):
                time.sleep(0.2)
                return
        time.sleep(0.05)
    raise AssertionError("the command does not read its input")


def _is_reading(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/syscall").read_text().startswith("0 0x0 ")
    except OSError:
        return False


def _children(process: int) -> list[int]:
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in path.read_text().split()] if path.exists() else []


@pytest.mark.parametrize(
    "more",
    [{"LC_ALL": "C"}, {"PYTHONUTF8": "1"}, {"TZ": "Asia/Tokyo"}, {"OMP_NUM_THREADS": "3"}, {"OMNIGRAPH_DEBUG": "1"}],
)
def test_other_start_variables_run_in_the_process(
    server: Server, folder: Path, runtime: Path, more: dict[str, str]
) -> None:
    assert not _served(folder, runtime, READ, **more)


@pytest.mark.parametrize(
    "words",
    [["--quiet", *READ], ["version"], [*READ, "--engine", "memory"], ["config"], []],
    ids=lambda words: " ".join(words[:1]),
)
def test_other_commands_run_in_the_process(server: Server, folder: Path, runtime: Path, words: list[str]) -> None:
    assert not _served(folder, runtime, words)


def test_the_command_runs_in_the_server(server: Server, folder: Path, runtime: Path) -> None:
    assert _served(folder, runtime, READ)


def _served(folder: Path, runtime: Path, words: list[str], **more: str) -> bool:
    """True if a command line runs in the server: the program then imports neither typer nor Lance."""
    code = (
        "import os, sys\n"
        "from omnigraph.cli.warm.client import try_run\n"
        "code = try_run(sys.argv[1:])\n"
        f"heavy = {HEAVY!r} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "os.write(2, b'served' if code == 0 else b'own')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=environment(runtime, **more),
        capture_output=True,
        check=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return done.stderr.endswith(b"served")


HEAVY = {"lance", "pyarrow", "pandas", "numpy", "typer", "yaml", "json", "typing", "re", "dataclasses", "pathlib"}


def test_the_socket_is_private(server: Server, runtime: Path) -> None:
    (path,) = (runtime / "omnigraph").glob("*.sock")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        assert sockets.peer_user(connection) in (os.geteuid(), None)
        assert sockets.is_own_peer(connection)


@pytest.mark.parametrize("data", [b"", b"x", b"\0\0\0\4\0\0\0\xff", b"\xff\xff\xff\xff", messages.encode([b"1"] * 9)])
def test_a_bad_request_does_not_end_the_server(server: Server, folder: Path, runtime: Path, data: bytes) -> None:
    (path,) = (runtime / "omnigraph").glob("*.sock")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(30)
        assert connection.recv(100) == b""
    assert _served(folder, runtime, READ)


def test_a_request_without_its_start_is_not_run(server: Server, tmp_path: Path, runtime: Path, folder: Path) -> None:
    """A client that gave up waiting has run the command itself: the server must not run it again."""
    (path,) = (runtime / "omnigraph").glob("*.sock")
    target = tmp_path / "made.csv"
    code = (
        "import socket, sys\n"
        "from omnigraph.cli.warm import client\n"
        "connection = socket.socket(socket.AF_UNIX); connection.connect(sys.argv[1]); connection.settimeout(30)\n"
        "call = client._Call(connection)\n"
        "assert call._offer(sys.argv[2:])\n"
    )
    words = [*READ, "--format", "csv", "--out", str(target)]
    subprocess.run([sys.executable, "-c", code, str(path), *words], cwd=folder, env=environment(runtime), check=True)
    assert _served(folder, runtime, READ), "the server handled the end of the connection before"
    assert not target.exists()


def test_life_of_a_server(folder: Path, tmp_path: Path) -> None:
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="og") as name:
        runtime = Path(name)
        with warm(folder, runtime) as server:
            again = outcome(["serve", "--warm"], folder, runtime, use=True)
            assert again[0] == 1
            assert "a warm server of this graph runs already" in again[2]
            assert outcome(READ, folder, runtime, use=True)[0] == 0
            assert server.stop() == 1
            assert not list(runtime.glob("omnigraph/*.sock"))
        with warm(folder, runtime) as server:
            server.process.kill()
            server.process.wait(60)
            assert list(runtime.glob("omnigraph/*.sock")), "a killed server leaves its socket"
            assert outcome(READ, folder, runtime, use=True)[0] == 0, "the program runs the command itself"
        other = tmp_path / "other.omni"
        og.init(other, SCHEMA)
        with warm(folder, runtime, str(other)) as server:
            for _ in range(1_200):
                if len(list(runtime.glob("omnigraph/*.sock"))) == 1 and _served(folder, runtime, READ):
                    break
                time.sleep(0.05)
            assert len(list(runtime.glob("omnigraph/*.sock"))) == 1, "the stale socket is removed"
            assert server.stop() >= 1


def test_a_server_ends_when_it_is_idle_or_outdated(folder: Path) -> None:
    """The loop is run in a new process with a short idle time, and with a module that changes."""
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="og") as name:
        code = (
            "import sys\n"
            "from omnigraph.cli.warm.server import open_server\n"
            "server = open_server(sys.argv[1], idle_s=0.1)\n"
            "assert server.serve() is None\n"
            "print(server.served)\n"
        )
        command = [sys.executable, "-c", code, str(folder / "g.omni")]
        done = subprocess.run(command, env=environment(Path(name)), capture_output=True, text=True, check=True)
        assert done.stdout == "0\n"
        assert not list(Path(name).glob("omnigraph/*.sock"))
        stale = code.replace("assert server", "server._files['/nowhere'] = 1\nserver._idle_s = 60\nassert server")
        command[2] = stale
        pipes = {"stdout": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, env=environment(Path(name)), **pipes)  # type: ignore[call-overload]
        for _ in range(1_200):
            if list(Path(name).glob("omnigraph/*.sock")):
                break
            time.sleep(0.05)
        assert outcome(READ, folder, Path(name), use=True)[0] == 0
        assert process.communicate(timeout=60)[0] == "0\n", "it refused the command and ended"


def test_a_server_is_started_on_demand(folder: Path) -> None:
    import tempfile  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="og") as name:
        runtime = Path(name)
        assert outcome(READ, folder, runtime, use=True)[0] == 0
        assert not list(runtime.iterdir()), "off by default"
        (folder / "on.yaml").write_text("graphs: { p: { uri: ./g.omni } }\ncli: { graph: p, warm: true }\n")
        here = {"OMNIGRAPH_CONFIG": "on.yaml"}
        assert outcome(READ, folder, runtime, use=False, **here)[0] == 0
        assert not list(runtime.iterdir()), "the variable turns it off"
        first = outcome(READ, folder, runtime, use=True, **here)
        for _ in range(1_200):
            if list(runtime.glob("omnigraph/*.sock")):
                break
            time.sleep(0.05)
        try:
            assert _served(folder, runtime, READ, **here)
            assert outcome(READ, folder, runtime, use=True, **here) == first
        finally:
            _end_servers(runtime)


def _end_servers(runtime: Path) -> None:
    """End the servers of a folder: the owner of a socket is its peer."""
    for path in runtime.glob("omnigraph/*.sock"):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            process = int.from_bytes(
                connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[:4], sys.byteorder
            )
        os.kill(process, signal.SIGTERM)
        for _ in range(1_200):
            if not path.exists():
                break
            time.sleep(0.05)


def test_folders_that_others_can_enter_are_not_used(tmp_path: Path) -> None:
    private = tmp_path / "p"
    private.mkdir(mode=0o700)
    environ = {"XDG_RUNTIME_DIR": str(private), "TMPDIR": str(tmp_path)}
    if len(str(tmp_path)) > 40:
        environ = {"XDG_RUNTIME_DIR": str(private), "TMPDIR": str(tmp_path)[:0]}
    assert sockets.find_folder({"XDG_RUNTIME_DIR": "/nowhere", "TMPDIR": "/nowhere"}, make=True) is None
    found = sockets.find_folder(environ, make=True)
    long_path = len(str(private)) + 50 > 100
    assert found == (None if long_path else f"{private}/omnigraph")
    open_to_all = private / "omnigraph"
    open_to_all.chmod(0o755)
    assert sockets.find_folder(environ) is None
    open_to_all.rmdir()
    open_to_all.symlink_to(tmp_path)
    assert sockets.find_folder(environ, make=True) is None


def test_platforms_without_fork(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """There is a clear message, and the program runs every command itself."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sockets, "is_offered", lambda: False)
    assert client.try_run(READ) is None
    assert run(["serve", "--warm"]) == 1
    assert capsys.readouterr().err.startswith("error: a warm server needs Unix sockets and fork")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--local"], "--warm serves the command line and excludes --local"),
        (["--bind", "127.0.0.1:0"], "--warm serves the command line and excludes --bind"),
        (["a.omni", "b.omni"], "--warm takes one graph"),
    ],
)
def test_options_that_warm_servers_do_not_have(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], problem: str
) -> None:
    monkeypatch.chdir(folder)
    assert run(["serve", "--warm", *words]) == 2
    assert problem in capsys.readouterr().err


def test_a_warm_server_needs_storage(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert run(["serve", "--warm", "http://127.0.0.1:1"]) == 1
    assert "requires direct storage access" in capsys.readouterr().err


def test_messages() -> None:
    reader = messages.Reader()
    for items in ([], [b""], [b"a", b"\0" * 300]):
        data = messages.encode(items)
        for at in range(len(data)):
            reader.add(data[at : at + 1])
            found = reader.next()
            assert (found is None) == (at < len(data) - 1)
        assert found == items
    with pytest.raises(messages.BadMessage):
        messages.decode(b"\0\0\0\5ab")
    reader.add(b"\xff\xff\xff\xff")
    with pytest.raises(messages.BadMessage):
        reader.next()


def test_the_commands_are_commands_of_the_program() -> None:
    from omnigraph.cli.program import COMMANDS  # noqa: PLC0415

    assert {command.name for command in COMMANDS} >= client.COMMANDS
    spark = {"load", "ingest", "export", "embed", "analyze"}
    assert not client.COMMANDS & (spark | {"shell", "serve", "top", "login", "demo"})
