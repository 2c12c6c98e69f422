"""Translation of object-store failures into typed errors.

obstore and Lance report a failed request as one sentence that contains the URL of the request and, if the store
responded, its XML document. The code and message of that document are the reason that is shown.
"""

from __future__ import annotations

import re

from omnigraph.errors import InputError, OmniGraphError, StorageError
from omnigraph.redaction import redact

_DENIED = (
    "credential",
    "accessdenied",
    "access denied",
    "invalidaccesskeyid",
    "signaturedoesnotmatch",
    "lacked the necessary privileges",
    "status code: 401",
    "status code: 403",
    "forbidden",
    "unauthorized",
    "169.254.169.254",
    "expiredtoken",
    "tokenrefreshrequired",
    "<code>invalidtoken</code>",
    "requesttimetooskewed",
)
"""Words with which object stores and their clients refuse a caller; no file has such a name."""

_NO_CREDENTIALS = ("credentialsnotloaded", "no providers in chain provided credentials")
SOURCE_LINE = re.compile(r",?\s*[^\s,()]+\.rs:\d+(:\d+)?")
"""A source position of the storage library, as its messages contain it."""
_CODE = re.compile(r"<Code>\s*([A-Za-z0-9.]{1,80})\s*</Code>")
_MESSAGE = re.compile(r"<Message>\s*([^<]{1,300})")
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired"})
_SKEWED = frozenset({"RequestTimeTooSkewed"})
_SHOWN = 300


def object_store_error(error: BaseException, where: str) -> OmniGraphError:
    """Return the typed error for a failed request, with the reason that the store gave."""
    reason, where = _reason(error), redact(where)
    code = _code(error)
    if code in _EXPIRED:
        return StorageError(
            f"the credentials for '{where}' have expired: {reason}",
            code="credentials_expired",
            hint="obtain new credentials, set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN, and open "
            "the graph again",
        )
    if code in _SKEWED:
        return StorageError(
            f"the clock of this machine differs too much from the clock of '{where}': {reason}",
            code="clock_skew",
            hint="set the clock of this machine, for example with NTP",
        )
    if is_denied(error):
        return StorageError(
            f"no access to '{where}': {reason}",
            code="no_access",
            hint="set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a self-hosted store, AWS_ENDPOINT_URL_S3",
        )
    if is_bucket_missing(error):
        return InputError(
            f"the bucket of '{where}' does not exist", code="no_such_bucket", hint="create the bucket first"
        )
    return StorageError(
        f"'{where}' cannot be reached: {reason}" if code is None else f"'{where}' refused the request: {reason}",
        code="unreachable",
        hint="check the network and, for a self-hosted store, AWS_ENDPOINT_URL_S3"
        if code is None
        else "try again; the reason above comes from the store",
    )


def is_denied(error: BaseException) -> bool:
    """Return True if the store refused the caller; the object itself may exist."""
    text = str(error).lower()
    return any(word in text for word in _DENIED)


def is_bucket_missing(error: BaseException) -> bool:
    """Return True if the bucket is missing."""
    text = str(error).lower()
    return "nosuchbucket" in text or "no such bucket" in text


def _code(error: BaseException) -> str | None:
    found = _CODE.search(str(error))
    return found[1] if found else None


def _reason(error: BaseException) -> str:
    """Return the reason that the store gave, else the first line of the client's message."""
    text = str(error)
    code, message = _CODE.search(text), _MESSAGE.search(text)
    if code is not None:
        return redact(f"{code[1]}: {message[1].strip()}" if message else code[1])
    if any(word in text.lower() for word in _NO_CREDENTIALS):
        return "no credentials were found"
    lines = SOURCE_LINE.sub("", text).strip().splitlines()
    return redact(lines[0])[:_SHOWN] if lines else type(error).__name__
