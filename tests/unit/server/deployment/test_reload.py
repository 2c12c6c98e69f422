"""Reloads under load: no request fails, and a broken file never replaces what is in force."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path

import pytest

from omnigraph.server.deployment.state_builder import StartOptions
from support.serving import POLICY, WAIT_S, make_graph, serving

ALWAYS = "token-that-stays"
CLIENTS = 2


class Client(threading.Thread):
    """Sends reads on one connection until it is stopped, and keeps what went wrong."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self.stopped = threading.Event()
        self.answered = 0
        self.wrong: list[object] = []

    def run(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=WAIT_S)
        try:
            while not self.stopped.is_set():
                connection.request("GET", "/snapshot", headers={"Authorization": f"Bearer {ALWAYS}"})
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    self.wrong.append((answer.status, body))
                self.answered += 1
        except Exception as error:
            self.wrong.append(error)
        finally:
            connection.close()


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_no_request_fails_while_files_change(tmp_path: Path, count: int, caplog: pytest.LogCaptureFixture):
    caplog.set_level("CRITICAL")
    tokens, policy = tmp_path / "tokens.json", tmp_path / "policy.yaml"
    tokens.write_text(json.dumps({"ana": ALWAYS}))
    policy.write_text(POLICY)
    (tmp_path / "omnigraph.yaml").write_text(
        "graphs: {kb: {uri: ./kb.omni}}\npolicy: {file: policy.yaml}\n"
        "server: {graph: kb, bind: '127.0.0.1:0', auth: {tokens: {file: tokens.json}}}\n"
    )
    make_graph(tmp_path / "kb.omni", "Ana")
    with serving(StartOptions(config=str(tmp_path / "omnigraph.yaml"), environ={})) as (address, holder):
        clients = [Client(address) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        for round_ in range(count):
            before = holder.current.digests
            if round_ % 3 == 2:
                (tokens, policy)[round_ % 2].write_text("{ broken")
                assert not holder.reload("test").ok
                assert holder.current.digests == before
            tokens.write_text(json.dumps({"ana": ALWAYS, "bo": f"token-{round_}"}))
            policy.write_text(POLICY.replace("[ana]", f"[ana, actor-{round_}]"))
            # The server watches the files too and can be first.
            assert holder.reload("test").ok
            assert holder.current.digests.policy != before.policy
            assert holder.current.tokens is not None
            assert holder.current.tokens.find(f"Bearer token-{round_}").actor == "bo"
        for client in clients:
            client.stopped.set()
            client.join(WAIT_S)
    assert [client.wrong for client in clients] == [[]] * CLIENTS
    assert all(client.answered for client in clients)
