"""Tokens from AWS Secrets Manager: boto3 against an endpoint on the loopback address."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from omnigraph.errors import InputError, MissingPackage
from omnigraph.server.auth import aws_secret
from omnigraph.server.auth.sources import LoadedTokens, TokenSources

VARIABLE = "OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET"


class Options:
    file = None
    command = None


@dataclass
class SecretsManager:
    """An endpoint of Secrets Manager. It gives its answers in order, the last one again and again."""

    url: str = ""
    answers: list[tuple[int, Any]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    """Target, body and signature of each request."""

    def answer(self) -> tuple[int, Any]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Iterator[SecretsManager]:
    endpoint = SecretsManager()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.requests.append((self.headers["X-Amz-Target"], body, self.headers["Authorization"]))
            status, answer = endpoint.answer()
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}"
    aws_environment(monkeypatch, tmp_path, endpoint.url)
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def aws_environment(monkeypatch: pytest.MonkeyPatch, home: Any, url: str) -> None:
    settings = {
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": url,
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "canary-key",
        "AWS_REGION": "eu-central-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": str(home / "config"),
        "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials"),
    }
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)


def load(secret: str = "prod/tokens", **more: str) -> LoadedTokens:
    return TokenSources.of({**os.environ, VARIABLE: secret, **more}, Options()).load()


def failure(secret: str = "prod/tokens") -> InputError:
    with pytest.raises(InputError) as caught:
        load(secret)
    error = caught.value
    assert f"'{secret}'" in error.message
    assert "canary" not in f"{error} {error.hint}"
    return error


def secret_of(text: Any) -> tuple[int, Any]:
    return 200, {"ARN": "arn:…", "Name": "prod/tokens", "SecretString": json.dumps(text)}


def test_secret_is_used_alone(manager: SecretsManager) -> None:
    manager.answers = [secret_of({"ana": "a", "ben": "b"})]
    base = "OMNIGRAPH_SERVER_BEARER_TOKEN"
    loaded = load(**{base: "c", f"{base}S_FILE": "/nowhere", f"{base}S_JSON": " "})
    assert loaded.tokens is not None
    assert loaded.tokens.actors == {"ana", "ben"}
    assert loaded.tokens.find("Bearer b").actor == "ben"
    assert loaded.source == "aws-secrets-manager"
    assert loaded.warnings == (
        f"{base}S_FILE has no effect beside {VARIABLE}",
        f"{base} has no effect beside {VARIABLE}",
    )
    ((target, body, signature),) = manager.requests
    assert (target, body) == ("secretsmanager.GetSecretValue", {"SecretId": "prod/tokens"})
    assert "/eu-central-1/secretsmanager/" in signature


def test_endpoint_of_all_services_and_second_form(manager: SecretsManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_SECRETS_MANAGER")
    monkeypatch.setenv("AWS_ENDPOINT_URL", manager.url)
    manager.answers = [secret_of({"tokens": [{"actor": "ana", "token": "a", "groups": ["staff"]}]})]
    loaded = load()
    assert loaded.tokens is not None
    assert loaded.tokens.find("Bearer a").groups == ("staff",)


def test_region_of_an_arn(manager: SecretsManager, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    manager.answers = [secret_of({"ana": "a"})]
    load("arn:aws:secretsmanager:us-west-2:123456789012:secret:tokens-AbCdEf")
    assert "/us-west-2/secretsmanager/" in manager.requests[0][2]


def test_variables_of_an_environment_that_is_not_that_of_the_process(
    manager: SecretsManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {name: value for name, value in os.environ.items() if name.startswith("AWS_")}
    for name in environ:
        monkeypatch.delenv(name)
    manager.answers = [secret_of({"ana": "a"})]
    sources = TokenSources.of({**environ, VARIABLE: "prod/tokens", "AWS_SESSION_TOKEN": "x"}, Options())
    assert sources.load().tokens is not None
    assert "Credential=AKIDEXAMPLE/" in manager.requests[0][2]
    assert "x-amz-security-token" in manager.requests[0][2]


def test_profile(manager: SecretsManager, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "credentials").write_text("[team]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = canary\n")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    manager.answers = [secret_of({"ana": "a"})]
    load(AWS_PROFILE="team")
    assert "Credential=AKIDPROFILE/" in manager.requests[0][2]
    with pytest.raises(InputError, match="cannot be read: The config profile"):
        load(AWS_PROFILE="absent")


def test_each_load_reads_the_secret_again(manager: SecretsManager) -> None:
    manager.answers = [secret_of({"ana": "a"}), secret_of({"ben": "b"})]
    assert [loaded.tokens.actors for loaded in (load(), load()) if loaded.tokens] == [{"ana"}, {"ben"}]


def test_service_errors_are_repeated_once(manager: SecretsManager) -> None:
    error = (500, {"__type": "InternalServiceError", "Message": "busy"})
    manager.answers = [error, secret_of({"ana": "a"})]
    assert load().tokens is not None
    manager.answers = [error]
    assert "InternalServiceError: busy" in failure().message
    assert len(manager.requests) == 4


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((400, {"__type": "ResourceNotFoundException", "Message": "no such secret"}), "ResourceNotFoundException"),
        ((400, {"__type": "AccessDeniedException", "Message": "not authorized"}), "AccessDeniedException"),
        ((400, b"canary is no JSON"), "answered with status 400"),
        ((502, b"<html>canary</html>"), "answered with status 502"),
        ((200, b"canary is no JSON"), "it has no text"),
        ((200, b"[3]"), "the answer is not one of Secrets Manager"),
        ((200, {"Name": "x", "SecretBinary": "Y2FuYXJ5"}), "it has no text"),
        ((200, {"Name": "x", "SecretString": "canary"}), "is not JSON"),
        ((200, {"Name": "x", "SecretString": '{"ana": ["canary"]}'}), "the token of 'ana' must be a text"),
        ((200, {"Name": "x", "SecretString": '{"ana": "canary", "ben": "canary"}'}), None),
    ],
)
def test_unusable_answers(manager: SecretsManager, answer: tuple[int, Any], reason: str | None) -> None:
    manager.answers = [answer]
    if reason is None:
        with pytest.raises(InputError, match="'ana' and 'ben' have the same token"):
            load()
    else:
        assert reason in failure().message


def test_no_answer(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_secret, "ANSWER_S", 0.2)
    monkeypatch.setattr(aws_secret, "TRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        aws_environment(monkeypatch, tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        error = failure()
    assert (error.code, "timeout" in error.message.lower()) == ("token_source_failed", True)


def test_nothing_listens(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aws_secret, "TRIES", 1)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    aws_environment(monkeypatch, tmp_path, f"http://127.0.0.1:{port}")
    assert "Could not connect" in failure().message


@pytest.mark.parametrize(("missing", "reason"), [("AWS_REGION", "region"), ("AWS_ACCESS_KEY_ID", "credentials")])
def test_incomplete_environment(
    manager: SecretsManager, monkeypatch: pytest.MonkeyPatch, missing: str, reason: str
) -> None:
    monkeypatch.delenv(missing)
    if missing == "AWS_ACCESS_KEY_ID":
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert reason in failure().message
    assert manager.requests == []


def test_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingPackage) as caught:
        load()
    assert "'boto3'" in caught.value.message
    assert caught.value.hint == "install it: pip install 'omnigraph[aws]'"
