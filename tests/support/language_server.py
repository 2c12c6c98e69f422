"""A session with a language server as plain messages, without a client library."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any


def session_answer(command: list[str], folder: Path) -> Any:
    """Open a session over stdin and stdout, end it, and return the answer to `initialize`."""
    empty: dict[str, Any] = {"processId": None, "rootUri": None, "capabilities": {}}
    sent = [{"id": 1, "method": "initialize", "params": empty}, {"method": "initialized", "params": {}}]
    sent += [{"id": 2, "method": "shutdown"}, {"method": "exit"}]
    bodies = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in sent]
    text = b"".join(b"Content-Length: %d\r\n\r\n%s" % (len(body), body) for body in bodies)
    done = subprocess.run(command, input=text, cwd=folder, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    answers = [
        json.loads(part) for part in re.findall(rb"\r\n\r\n(\{.*?\})(?=Content-Length|$)", done.stdout, re.DOTALL)
    ]
    (found,) = (answer["result"] for answer in answers if answer.get("id") == 1)
    return found
