"""Documents of the operator file: credentials and profiles."""

from __future__ import annotations

from omnigraph.wire.document import Document


class CredentialsDocument(Document):
    """A server whose token was stored or removed; `declared` is false if the operator file does not name it."""

    server: str
    credentials_path: str
    declared: bool


class ProfileDocument(Document):
    """A profile, and the address that it names."""

    name: str
    store: str | None
    server: str | None
    default_graph: str | None
    uri: str


class ProfileListDocument(Document):
    """The profiles of the operator file."""

    profiles: list[ProfileDocument]
