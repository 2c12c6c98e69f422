"""Requests to other hosts: permitted addresses, one address per request, time limits."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from omnigraph.server import outgoing_http
from omnigraph.server.outgoing_http import OutgoingAnswer, OutgoingFailed, Reach, is_permitted, request, url_problem
from support.receiver import Receiver, receiving


def ends_of(block: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, ...]:
    """Return the first and the last address of a block."""
    network = ipaddress.ip_network(block)
    return network[0], network[-1]


PUBLIC = (
    "1.1.1.1", "93.184.216.34", "192.0.1.0", "198.20.0.1", "2606:4700:4700::1111", "2001:4860:4860::8888",
    "::ffff:1.1.1.1", "64:ff9b::1.1.1.1",
)  # fmt: skip
PRIVATE = (
    "127.0.0.1", "127.8.9.1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "::1", "fd12::1", "fc00::1",
    "::ffff:127.0.0.1", "::ffff:192.168.0.1", "64:ff9b::10.0.0.1",
)  # fmt: skip
SPECIAL = (
    # The IANA IPv4 special-purpose address registry, and multicast.
    "0.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32",
    "192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
    "192.88.99.0/24", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4",
    "240.0.0.0/4", "255.255.255.255/32",
    # The IANA IPv6 special-purpose address registry, multicast, and forms that are not in use any more.
    "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28",
    "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fe80::/10", "fec0::/10", "ff00::/8",
    "::ffff:0:0:0/96",
)  # fmt: skip
PLATFORM = (
    "169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42", "100.100.100.200", "168.63.129.16",
    "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42",
    "fe80::a9fe:a9fe", "fe80::1%eth0",
)  # fmt: skip
FORMS = ("{}", "::ffff:{}", "64:ff9b::{}", "::{}", "2002:{hex}::1", "2001:0:{hex}::1")
"""Addresses that contain an IPv4 address: mapped, NAT64, compatible, 6to4, Teredo."""


def forms_of(text: str) -> list[str]:
    """Return every form of an address."""
    if ":" in text:
        return [text]
    number = int(ipaddress.IPv4Address(text))
    return [form.format(text, hex=f"{number >> 16:x}:{number & 0xFFFF:x}") for form in FORMS]


NEVER = [
    form for text in (*PLATFORM, *(str(end) for block in SPECIAL for end in ends_of(block))) for form in forms_of(text)
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_permitted(address: str) -> None:
    assert is_permitted(address, "public")
    assert is_permitted(address, "private")


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_need_permission(address: str) -> None:
    assert not is_permitted(address, "public")


@pytest.mark.parametrize("address", PRIVATE)
def test_a_permission_covers_private_addresses(address: str) -> None:
    assert is_permitted(address, "private")


@pytest.mark.parametrize("reach", ["public", "private"])
def test_special_and_metadata_addresses_are_never_permitted(reach: Reach) -> None:
    assert [address for address in NEVER if is_permitted(address, reach)] == []


@pytest.mark.parametrize("address", ["::10.0.0.1", "2002:7f00:1::1", "2001:0:a00:1::1"])
def test_tunnels_to_private_networks_are_never_permitted(address: str) -> None:
    assert not is_permitted(address, "private")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/", "https://", "https://user@example.org/", "https://example.org:99999/", "https://[::1/",
        "https://example.org/\n", "https://example.org/#part", "https://exämple.org/", "http://example.org/",
    ],
)  # fmt: skip
def test_bad_urls_are_refused(url: str) -> None:
    assert url_problem(url, plain=False)


def test_plain_http_needs_permission() -> None:
    assert url_problem("http://example.org/a?b=c", plain=True) is None
    assert url_problem("https://example.org:8443/a", plain=False) is None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


def post(url: str, *, timeout_s: float = 10.0, reach: Reach = "private") -> OutgoingAnswer:
    return request("POST", url, headers={}, body=b"{}", timeout_s=timeout_s, answer_max=1000, reach=reach)


def test_an_answer(receiver: Receiver) -> None:
    assert post(f"{receiver.url}?a=b").status == 204
    assert receiver.received[0].path == "/hook?a=b"
    assert receiver.received[0].headers["host"] == f"127.0.0.1:{receiver.port}"


def test_a_redirect_is_an_answer(receiver: Receiver) -> None:
    receiver.script = [(307, {"Location": receiver.url})]
    assert post(receiver.url).status == 307
    assert len(receiver.received) == 1


def test_a_refused_address_is_not_connected(receiver: Receiver) -> None:
    for host in ("127.0.0.1", "localhost"):
        with pytest.raises(OutgoingFailed, match="not permitted") as caught:
            post(f"http://{host}:{receiver.port}/", reach="public")
        assert caught.value.refused
    assert receiver.received == []


def resolving(monkeypatch: pytest.MonkeyPatch, *answers: list[str]) -> list[str]:
    """Make names resolve to these addresses, one list per lookup; returns the looked-up names."""
    names: list[str] = []
    left = list(answers)

    def look_up(host: str, port: int, **_: Any) -> list[Any]:
        names.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in left.pop(0)]

    monkeypatch.setattr(outgoing_http.socket, "getaddrinfo", look_up)
    return names


def test_the_connection_goes_to_the_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch, receiver: Receiver
) -> None:
    """A name that resolves to another address a moment later has no effect."""
    connected: list[Any] = []

    def connect(address: tuple[str, int], *_: Any) -> socket.socket:
        connected.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(outgoing_http.socket, "create_connection", connect)
    names = resolving(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    with pytest.raises(OutgoingFailed, match="no connection"):
        post(f"http://rebinding.example:{receiver.port}/", reach="public")
    assert (names, connected) == (["rebinding.example"], [("93.184.216.34", receiver.port)])
    with pytest.raises(OutgoingFailed, match="not permitted"):
        post(f"http://rebinding.example:{receiver.port}/", reach="public")
    assert len(connected) == 1


def test_one_private_address_among_several_refuses_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving(monkeypatch, ["93.184.216.34", "10.0.0.1"])
    with pytest.raises(OutgoingFailed, match=r"10\.0\.0\.1"):
        post("http://mixed.example/", reach="public")


def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(outgoing_http.socket, "getaddrinfo", fail)
    with pytest.raises(OutgoingFailed, match="cannot be resolved"):
        post("http://nowhere.example/")


@contextmanager
def answering(*chunks: bytes, pause_s: float = 0.0) -> Iterator[int]:
    """A server that sends these bytes to its first connection; yields its port."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        with listener.accept()[0] as connection:
            connection.recv(65536)
            try:
                for chunk in chunks:
                    connection.sendall(chunk)
                    if done.wait(pause_s):
                        return
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        done.set()
        listener.close()
        thread.join(10)


def test_an_answer_that_trickles_ends_at_the_limit() -> None:
    head = [b"HTTP/1.1 200 OK\r\n", *(b"X-A: b\r\n" for _ in range(1000))]
    with answering(*head, pause_s=0.05) as port, pytest.raises(OutgoingFailed, match="did not answer within"):
        post(f"http://127.0.0.1:{port}/", timeout_s=0.5)


def test_a_host_that_does_not_speak_http() -> None:
    with answering(b"SSH-2.0-x\r\n") as port, pytest.raises(OutgoingFailed, match="does not answer in HTTP"):
        post(f"http://127.0.0.1:{port}/")


def test_a_long_answer_is_refused() -> None:
    with (
        answering(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 2000) as port,
        pytest.raises(OutgoingFailed, match="more than 1,000 bytes"),
    ):
        post(f"http://127.0.0.1:{port}/")


def test_a_lookup_that_hangs_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    free = threading.Event()

    def hang(*_: Any, **__: Any) -> list[Any]:
        free.wait(30)
        return []

    monkeypatch.setattr(outgoing_http.socket, "getaddrinfo", hang)
    with pytest.raises(OutgoingFailed, match="did not answer within"):
        post("http://slow.example/", timeout_s=0.1)
    free.set()
    time.sleep(0)
