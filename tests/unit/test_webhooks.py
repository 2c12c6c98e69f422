"""Signatures of webhooks: vectors, the window of time, several secrets."""

from __future__ import annotations

import pytest

from omnigraph.errors import InputError, SignatureInvalid
from omnigraph.webhooks import TOLERANCE_S, sign, verify_signature

NOW = 1_790_000_000
ZEROS = "0" * 64
BODY = b'{"event_id":"01J","kind":"commit"}'


@pytest.mark.parametrize(
    ("secret", "at", "body", "digest"),
    [
        ("a-secret-of-the-receiver", NOW, BODY, "09b6a101ed5bddbc146608143d357fa395e5a159a467610b15f77e67087fc94d"),
        ("a-secret-of-the-receiver", NOW, b"", "58bfe0081264fa297bc5a76c6066e8e22d77316211b00658dc0953297efabf15"),
        (
            "zweiter Schlüssel, 16+",
            0,
            '{"name":"Zoë"}'.encode(),
            "dee08b5071dc3dd085ba10add383fa30da679feafbc796272115f965b2822276",
        ),
    ],
)
def test_signatures_have_the_form_of_the_specification(secret: str, at: int, body: bytes, digest: str) -> None:
    # The digests are those of: printf '%s' "$AT.$BODY" | openssl dgst -sha256 -hmac "$SECRET"
    assert sign(body, [secret], at) == f"t={at},v1={digest}"
    assert verify_signature(body, f"t={at},v1={digest}", secret, now=at) == at


@pytest.mark.parametrize("offset", [-TOLERANCE_S, 0, TOLERANCE_S])
def test_a_signature_within_the_window_is_valid(offset: int) -> None:
    assert verify_signature(BODY, sign(BODY, ["one secret"], NOW), "one secret", now=NOW + offset) == NOW


@pytest.mark.parametrize("offset", [-TOLERANCE_S - 1, TOLERANCE_S + 1])
def test_a_signature_outside_the_window_is_refused(offset: int) -> None:
    with pytest.raises(SignatureInvalid, match="at most 300 s"):
        verify_signature(BODY, sign(BODY, ["one secret"], NOW), "one secret", now=NOW + offset)


def test_during_a_change_of_secrets_both_sides_may_know_either() -> None:
    header = sign(BODY, ["new secret", "old secret"], NOW)
    assert header.count("v1=") == 2
    for known in ("new secret", "old secret", ["unused", "old secret"]):
        assert verify_signature(BODY, header, known, now=NOW) == NOW
    with pytest.raises(SignatureInvalid, match="not made with this secret"):
        verify_signature(BODY, header, "another secret", now=NOW)


def test_the_body_and_the_time_are_signed() -> None:
    header = sign(BODY, ["one secret"], NOW)
    for body, changed in ((BODY + b" ", header), (BODY, header.replace(str(NOW), str(NOW + 1)))):
        with pytest.raises(SignatureInvalid, match="body was changed"):
            verify_signature(body, changed, "one secret", now=NOW)


@pytest.mark.parametrize(
    "header",
    [None, "", "t=1", f"v1={ZEROS}", f"t=x,v1={ZEROS}", "t=1,v1=00", f"t=1,t=2,v1={ZEROS}", f"t=-1,v1={ZEROS}"],
)
def test_a_malformed_header_is_refused(header: str | None) -> None:
    with pytest.raises(SignatureInvalid):
        verify_signature(BODY, header, "one secret", now=1)


@pytest.mark.parametrize("secrets", ["", [], [""]])
def test_a_missing_secret_is_no_signature_that_everything_has(secrets: str | list[str]) -> None:
    with pytest.raises(InputError, match="secret is required"):
        verify_signature(BODY, sign(BODY, [""], NOW), secrets, now=NOW)
