"""An issuer of OpenID Connect on loopback: a real HTTP server with a discovery document and keys."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

AUDIENCE = "omnigraph"
Private = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


@cache
def rsa_key(name: str = "k1", bits: int = 2048) -> rsa.RSAPrivateKey:
    """An RSA key; the same one for the same name."""
    return rsa.generate_private_key(65537, bits)


def public_jwk(key: Private, key_id: str | None, **members: Any) -> dict[str, Any]:
    """The public half of a key as JSON."""
    public = key.public_key()
    if isinstance(public, rsa.RSAPublicKey):
        document = RSAAlgorithm.to_jwk(public, as_dict=True)
    elif isinstance(public, ec.EllipticCurvePublicKey):
        document = ECAlgorithm.to_jwk(public, as_dict=True)
    else:
        document = OKPAlgorithm.to_jwk(public, as_dict=True)
    document = {name: value for name, value in document.items() if name != "key_ops"}
    named = {} if key_id is None else {"kid": key_id}
    return {**document, **named, "use": "sig", **members}


class IssuerServer:
    """The server. Replace `keys`, `discovery` or `answer` to make it change or misbehave."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = [public_jwk(rsa_key(), "k1", alg="RS256")]
        self.discovery: dict[str, Any] = {}
        self.answer: bytes | None = None
        """Sent instead of a document; None sends the documents."""
        self.status = 200
        self.paths: list[str] = []
        self.gate: threading.Event | None = None
        """Answers wait for it."""
        server = self

        self.codes: dict[str, dict[str, str]] = {}
        """Code → the request of the sign-in that it answers."""
        self.asked: list[dict[str, str]] = []
        """The requests for tokens, and the answers to them as `answered`."""
        self.id_claims: dict[str, Any] = {}
        """Claims of ID tokens, in place of the right ones."""
        self.life_s = 300
        """The life of an access token in seconds."""
        self.refuse: str | None = None
        """The error of a sign-in; None permits it."""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                status, document = server.exchange(sent)
                self.reply(status, json.dumps(document).encode(), {"Content-Type": "application/json"})

            def reply(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
                self.send_response(status)
                for name, value in {"Access-Control-Allow-Origin": "*", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                server.paths.append(self.path)
                if self.path.startswith("/authorize?"):
                    self.reply(302, b"", {"Location": server.authorize(self.path)})
                    return
                if server.gate is not None:
                    server.gate.wait(30)
                body = server.answer if server.answer is not None else json.dumps(server.document(self.path)).encode()
                self.reply(server.status, body, {})

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The issuer."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def document(self, path: str) -> dict[str, Any]:
        """The document of a path."""
        if path == "/.well-known/openid-configuration":
            endpoints = {"authorization_endpoint": f"{self.url}/authorize", "token_endpoint": f"{self.url}/token"}
            return {"issuer": self.url, "jwks_uri": f"{self.url}/keys", **endpoints, **self.discovery}
        return {"keys": self.keys}

    def authorize(self, path: str) -> str:
        """Sign the actor `ana` in, and return where the browser goes with the code."""
        request = dict(parse_qsl(path.partition("?")[2]))
        assert request["response_type"] == "code"
        assert request["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(12)
        self.codes[code] = request
        answer = {"code": code} if self.refuse is None else {"error": self.refuse}
        mark = "#" if request.get("response_mode") == "fragment" else "?"
        return f"{request['redirect_uri']}{mark}{urlencode({**answer, 'state': request['state']})}"

    def exchange(self, sent: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the tokens for a code with its verifier, or for a refresh token."""
        self.asked.append(sent)
        nonce = None
        if sent["grant_type"] == "authorization_code":
            request = self.codes.pop(sent["code"], None)
            digest = hashlib.sha256(sent["code_verifier"].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            known = ("client_id", "redirect_uri")
            if request is None or request["code_challenge"] != challenge or any(sent[k] != request[k] for k in known):
                return 400, {"error": "invalid_grant"}
            nonce = request["nonce"]
        elif sent["refresh_token"] != "refresh-of-ana":
            return 400, {"error": "invalid_grant"}
        now = int(time.time())
        access = self.token(exp=now + self.life_s, jti=secrets.token_urlsafe(6))
        document = {"access_token": access, "token_type": "Bearer", "expires_in": self.life_s}
        named = {"aud": sent["client_id"], "nonce": nonce, **self.id_claims}
        return 200, {**document, "refresh_token": "refresh-of-ana", "id_token": self.token(**named)}

    @property
    def fetches(self) -> int:
        """How often the keys were fetched."""
        return self.paths.count("/keys")

    def claims(self, **claims: Any) -> dict[str, Any]:
        """The claims of a valid token, and others; None removes one."""
        now = int(time.time())
        merged = {"iss": self.url, "aud": AUDIENCE, "sub": "ana", "iat": now, "exp": now + 300, **claims}
        return {name: value for name, value in merged.items() if value is not None}

    def token(
        self, *, key: Any = None, algorithm: str = "RS256", headers: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token of the issuer."""
        named = {"kid": "k1", **(headers or {})}
        named = {name: value for name, value in named.items() if value is not None}
        return jwt.encode(self.claims(**claims), key if key is not None else rsa_key(), algorithm, named)

    def entry(self, extra: str = "") -> str:
        """An entry of `server.auth.oidc` in YAML."""
        return f'{{issuer: "{self.url}", audience: {AUDIENCE}, allow_private: true{extra}}}'

    def close(self) -> None:
        """Stop the server."""
        if self.gate is not None:
            self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


@contextmanager
def issuing() -> Iterator[IssuerServer]:
    """Run an issuer."""
    server = IssuerServer()
    try:
        yield server
    finally:
        server.close()
