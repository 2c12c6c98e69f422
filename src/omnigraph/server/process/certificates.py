"""The TLS certificate of the server."""

from __future__ import annotations

import ssl
from pathlib import Path

from omnigraph.errors import InputError
from omnigraph.server.deployment.settings import TlsSettings
from omnigraph.server.deployment.watched_files import WatchedFiles


def check_certificate(tls: TlsSettings, files: WatchedFiles) -> None:
    """Refuse a certificate, key or list of authorities that cannot be loaded."""
    if tls.cert is not None:
        files.note(tls.cert, tls.key, tls.client_ca)
        make_tls_context(tls)


def make_tls_context(tls: TlsSettings) -> ssl.SSLContext:
    """Return the TLS context of the server; a client certificate is required if authorities are given."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_certificate(context, tls)
    return context


def load_certificate(context: ssl.SSLContext, tls: TlsSettings) -> None:
    """Load the certificate files into a context; new connections use them."""
    assert tls.cert is not None
    path: Path = tls.cert
    try:
        context.load_cert_chain(tls.cert, tls.key)
        if tls.client_ca is not None:
            path = tls.client_ca
            context.load_verify_locations(tls.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except FileNotFoundError:
        missing = next((file for file in (tls.cert, tls.key, tls.client_ca) if file and not file.exists()), path)
        raise InputError(f"there is no file '{missing}'", code="no_such_file") from None
    except (ssl.SSLError, OSError) as error:
        reason = getattr(error, "reason", None) or error.strerror or str(error)
        raise InputError(
            f"the certificate '{path}' cannot be loaded: {reason}",
            code="bad_certificate",
            hint="the certificate chain and the unencrypted private key must be PEM files that belong together",
        ) from None
