"""The listening socket: abandoned sockets, modes, and the limit of open files."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys

import pytest

from omnigraph.errors import InputError
from omnigraph.server.deployment.settings import default_settings
from omnigraph.server.process.listening import bind, curl_command, listen_address, remove_socket_file
from support.serving import WAIT_S

unix_only = pytest.mark.skipif(sys.platform == "win32", reason="Unix sockets")


def test_port_0_takes_a_free_port():
    with bind(default_settings(bind="127.0.0.1:0")) as listener:
        assert listen_address(listener) == f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(InputError, match=r"cannot listen on '127\.0\.0\.1:"):
            bind(default_settings(bind=listen_address(listener)))


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(InputError) as caught:
        bind(default_settings(bind="192.0.2.1:0"))
    assert caught.value.code == "cannot_bind"


@unix_only
def test_an_abandoned_socket_is_replaced(tmp_path):
    settings = default_settings(bind=f"unix:{tmp_path}/og.sock")
    with socket.socket(socket.AF_UNIX) as old:
        old.bind(str(tmp_path / "og.sock"))
    with bind(settings) as listener:
        assert listen_address(listener) == settings.bind
        assert stat.S_IMODE((tmp_path / "og.sock").stat().st_mode) == 0o600
        with pytest.raises(InputError, match="cannot listen on 'unix:"):
            bind(settings)
    remove_socket_file(settings)
    assert not (tmp_path / "og.sock").exists()


@unix_only
def test_a_file_that_is_no_socket_is_not_replaced(tmp_path):
    (tmp_path / "data").write_text("kept")
    with pytest.raises(InputError):
        bind(default_settings(bind=f"unix:{tmp_path}/data"))
    assert (tmp_path / "data").read_text() == "kept"


def test_the_command_quotes_its_paths(tmp_path):
    assert curl_command("127.0.0.1:80", "og_x", tmp_path / "my cert.pem") == (
        f"curl -H 'Authorization: Bearer og_x' --cacert '{tmp_path}/my cert.pem' https://127.0.0.1:80/snapshot"
    )


@unix_only
def test_the_limit_of_open_files_is_raised():
    # A hard limit cannot be raised again, so another process lowers it.
    script = (
        "import resource\n"
        "from omnigraph.server.process.listening import raise_file_limit\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1000, 2000))\n"
        "print(raise_file_limit(500), resource.getrlimit(resource.RLIMIT_NOFILE)[0], raise_file_limit(1500))\n"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert found.stdout == (
        "None 1524 the limit of open files is 2000, but 'server.limits.connections' of 1500 needs 2524\n"
    )
