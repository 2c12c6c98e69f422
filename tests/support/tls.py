"""Certificates for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

WAIT_S = 60.0


def write_certificate(folder: Path, name: str) -> None:
    """Write a self-signed certificate for 127.0.0.1, `cert.pem`, and its key, `key.pem`."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, timeout=WAIT_S)
