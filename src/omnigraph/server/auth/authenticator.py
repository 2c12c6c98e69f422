"""`Authenticator`: the caller of a request, from a token of the server or a token of an issuer."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import Unauthorized
from omnigraph.server.auth.oidc.json_web_tokens import JsonWebTokens, is_json_web_token
from omnigraph.server.auth.tokens import Principal, TokenSet, bearer_token


@dataclass(frozen=True)
class Authenticator:
    """Finds the caller of an `Authorization` header; one of the two sources is present."""

    tokens: TokenSet | None
    json_web_tokens: JsonWebTokens | None

    async def find(self, header: str | None) -> Principal:
        """Return the caller; raises `Unauthorized`, and `Overloaded` if the keys of an issuer are not available."""
        issued = self._issued(header)
        if issued is not None and self.json_web_tokens is not None:
            return await self.json_web_tokens.find(issued)
        return self._static(header)

    def find_now(self, header: str | None) -> Principal:
        """Return the caller without waiting for the keys of an issuer."""
        issued = self._issued(header)
        if issued is not None and self.json_web_tokens is not None:
            return self.json_web_tokens.find_now(issued)
        return self._static(header)

    def _issued(self, header: str | None) -> bytes | None:
        """Return a token that an issuer may have made and that is no token of the server."""
        if self.json_web_tokens is None:
            return None
        token = bearer_token(header)
        if not is_json_web_token(token) or (self.tokens is not None and token in self.tokens):
            return None
        return token

    def _static(self, header: str | None) -> Principal:
        if self.tokens is None:
            bearer_token(header)
            raise Unauthorized(
                "invalid bearer token", code="invalid_token", hint="the server accepts tokens of its issuers only"
            )
        return self.tokens.find(header)
