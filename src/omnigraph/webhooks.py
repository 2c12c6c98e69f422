"""Signatures of webhooks: the header `Omnigraph-Signature`, made by the server and verified by a receiver.

The header is `t=<unix time>,v1=<hex>`. The hexadecimal digits are the HMAC-SHA256 of `<t>.<body>` with the secret.
While a secret is replaced by another, the header has one `v1` for each. The module uses the standard library only.

    from omnigraph.webhooks import verify_signature

    verify_signature(body, headers["Omnigraph-Signature"], secret)   # raises SignatureInvalid

A receiver verifies the bytes of the body as they arrived, before it decodes them. Events are delivered at least once:
`event_id` identifies an event that arrives again.
"""

from __future__ import annotations

import hmac
import re
import time
from collections.abc import Iterable

from omnigraph.errors import InputError, SignatureInvalid

HEADER = "Omnigraph-Signature"
TOLERANCE_S = 300
"""The age of a signature up to which it is accepted."""
SECRET_BYTES_MIN = 16
_TIME = re.compile(r"[0-9]{1,12}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_HEADER_MAX = 1024


def sign(body: bytes, secrets: Iterable[str], at: int) -> str:
    """Return the header of a body at a time in seconds since the epoch; one digest for each secret."""
    return ",".join([f"t={at}", *(f"v1={_digest(body, secret, at)}" for secret in secrets)])


def verify_signature(
    body: bytes,
    header: str | None,
    secrets: str | Iterable[str],
    *,
    tolerance_s: float = TOLERANCE_S,
    now: float | None = None,
) -> int:
    """Verify a header against one or several secrets, and return its time; raises `SignatureInvalid`.

    A signature that is older or newer than `tolerance_s` is refused, so that a recorded request cannot be sent again
    later. `now` is the time in seconds since the epoch; without it, that of this machine.
    """
    at, digests = _parse(header)
    known = [secrets] if isinstance(secrets, str) else list(secrets)
    if not known or not all(known):
        raise InputError("a secret is required to verify a signature", code="no_secret")
    # Every pair is compared, so the time of the comparison does not tell which one is equal.
    equal = [hmac.compare_digest(_digest(body, secret, at), digest) for secret in known for digest in digests]
    if not any(equal):
        raise SignatureInvalid("the signature was not made with this secret, or the body was changed")
    age = (time.time() if now is None else now) - at
    if abs(age) > tolerance_s:
        raise SignatureInvalid(
            f"the signature is {abs(age):.0f} s {'old' if age > 0 else 'in the future'}; at most {tolerance_s:.0f} s",
            hint="compare the clock of this machine with that of the server",
        )
    return at


def _parse(header: str | None) -> tuple[int, list[str]]:
    if not header:
        raise SignatureInvalid(f"the header {HEADER} is missing")
    fields = [part.strip().partition("=") for part in header[:_HEADER_MAX].split(",")]
    times = [value for name, _, value in fields if name == "t"]
    digests = [value for name, _, value in fields if name == "v1" and _DIGEST.fullmatch(value)]
    if len(times) != 1 or not _TIME.fullmatch(times[0]) or not digests:
        raise SignatureInvalid(f"the header {HEADER} is malformed", hint="it is t=<unix time>,v1=<hex>")
    return int(times[0]), digests


def _digest(body: bytes, secret: str, at: int) -> str:
    return hmac.new(secret.encode(), b"%d.%s" % (at, body), "sha256").hexdigest()
