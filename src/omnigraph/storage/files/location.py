"""The location of a graph: a parsed URI and the options of its store.

A plain path and `file://` denote the local disk; the path is made absolute without accessing the disk.
`s3://bucket/prefix` denotes an S3-compatible store. Other schemes are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.redaction import redact_uri

_PATH_BYTES, _NAME_BYTES = 4095, 255
_COPIED = {
    "AWS_ACCESS_KEY_ID": "aws_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "aws_secret_access_key",
    "AWS_SESSION_TOKEN": "aws_session_token",
    "AWS_DEFAULT_REGION": "aws_region",
    "AWS_REGION": "aws_region",
}
"""Variable → option; if two variables set the same option, the later one wins."""


@dataclass(frozen=True, slots=True)
class Location:
    """A location of a graph; `options` contain credentials and are never shown."""

    uri: str
    path: Path | None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def is_local(self) -> bool:
        """True if the location is on the local disk."""
        return self.path is not None

    @property
    def storage_options(self) -> dict[str, str] | None:
        """The options in the form that Lance expects; None if there are none."""
        return dict(self.options) or None

    @property
    def bucket(self) -> str:
        """The bucket of an object store."""
        return self.uri.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        """The path below the bucket."""
        return self.uri.removeprefix("s3://").partition("/")[2].strip("/")

    @property
    def store_id(self) -> str | None:
        """The object store: its endpoint and bucket; None on the local disk."""
        if self.path is not None:
            return None
        return f"{self.options.get('aws_endpoint') or self.options.get('endpoint') or 'aws'}|{self.bucket}"

    def child(self, relative: str) -> str:
        """Return the URI of a path below the location."""
        return str(self.path / relative) if self.path is not None else f"{self.uri}/{relative}"

    def writable_child(self, relative: str) -> str:
        """Return the URI by which Lance writes files below the location.

        By a plain path, Lance ignores the failure of the last write of a file and acknowledges a truncated file. By
        this scheme, it writes the same file and reports every failure. Random reads by it are slower.
        """
        return f"file-object-store://{quote(self.child(relative))}" if self.path is not None else self.child(relative)


def locate(uri: str | os.PathLike[str], environ: Mapping[str, str]) -> Location:
    """Parse a URI; `environ` supplies the credentials and the endpoint of an object store."""
    text = os.fspath(uri).strip()
    if not text:
        raise InputError("the graph's location is empty", hint="give a folder or s3://bucket/prefix")
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if scheme in ("http", "https"):
        raise InputError(f"'{redact_uri(text)}' is a server, not storage", hint="give a folder or s3://bucket/prefix")
    if scheme == "s3":
        return _s3(text, environ)
    if scheme == "file":
        parts = urlsplit(text)
        if parts.netloc not in ("", "localhost"):
            raise InputError(f"'{redact_uri(text)}' names another host", hint="write file:///absolute/path")
        text = unquote(parts.path)
    elif scheme:
        raise InputError(f"'{scheme}://' is not supported", hint="give a folder or s3://bucket/prefix")
    check_path(text)
    path = Path(os.path.abspath(Path(text).expanduser()))  # noqa: PTH100 (lexical: links are not resolved)
    return Location(str(path), path)


def check_path(text: str) -> None:
    """Refuse a path that is invalid in every file system."""
    if "\0" in text:
        raise InputError("a path cannot contain a null character")
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError("a path must be valid Unicode text") from None
    if len(encoded) > _PATH_BYTES or max(map(len, encoded.split(b"/"))) > _NAME_BYTES:
        raise InputError(f"a path must not exceed {_PATH_BYTES:,} bytes, and a name in it {_NAME_BYTES} bytes")


def _s3(text: str, environ: Mapping[str, str]) -> Location:
    bucket, _, path = text[len("s3://") :].partition("/")
    if "@" in bucket:
        raise InputError(
            "a graph's location must not contain credentials", hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if not bucket or ".." in segments:
        raise InputError(f"'{redact_uri(text)}' is not a location in a bucket", hint="write s3://bucket/prefix")
    reserved = next((sign for sign in "?#%" if sign in f"{bucket}/{path}"), None)
    if reserved is not None:
        raise InputError(
            f"a location in a bucket cannot contain '{reserved}', which is reserved in URIs",
            hint="choose a prefix of letters, digits and - _ . / only",
        )
    return Location("/".join([f"s3://{bucket}", *segments]), None, _s3_options(environ))


def _s3_options(environ: Mapping[str, str]) -> dict[str, str]:
    options = {key: _header_value(environ, name) for name, key in _COPIED.items() if environ.get(name)}
    named = next((name for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if environ.get(name)), None)
    endpoint = _header_value(environ, named) if named is not None else ""
    if named is not None:
        if redact_uri(endpoint) != endpoint:
            raise InputError(
                f"{named} contains a user, a password or a query, which an endpoint cannot have",
                hint=f"set {named} to scheme://host:port, and the credentials with AWS_ACCESS_KEY_ID and "
                "AWS_SECRET_ACCESS_KEY",
            )
        options["aws_endpoint"] = endpoint
    options.setdefault("aws_region", "us-east-1")
    if environ.get("AWS_ALLOW_HTTP", "").lower() == "true" or endpoint.startswith("http://"):
        options["allow_http"] = "true"
    if environ.get("AWS_S3_FORCE_PATH_STYLE", "").lower() == "true":
        options["aws_virtual_hosted_style_request"] = "false"
    return options


def _header_value(environ: Mapping[str, str], name: str) -> str:
    """Return the value of a variable that becomes part of a request; control characters are refused."""
    value = environ[name]
    if not value.isprintable() or not value.isascii():
        raise InputError(
            f"{name} contains a line break or another character that a request cannot contain",
            hint=f"set {name} again, without a line break at its end",
        )
    return value
