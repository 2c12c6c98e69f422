"""No secret of a known form remains in a log line."""

from __future__ import annotations

import json
import logging

import pytest

from omnigraph.server.observability.log import log_request
from omnigraph.server.observability.masking import is_suspect, mask

TOKEN = "og_" + "aB3-_" * 9 + "x1y2"
SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
TEXTS = {
    f"token {TOKEN} used": TOKEN[3:],
    f"x={TOKEN}&y=1": TOKEN[3:],
    f"x{TOKEN}": TOKEN[3:],
    f"_{TOKEN}": TOKEN[3:],
    "Authorization: Bearer s3cr3t-välue": "s3cr3t",
    "authorization: bearer   s3cr3t": "s3cr3t",
    "{'authorization': 'Bearer s3cr3t'}": "s3cr3t",
    '{"authorization": "Basic czNjcjN0"}': "czNjcjN0",
    "[(b'authorization', b'Bearer s3cr3t')]": "s3cr3t",
    "[(b'authorization', b's3cr3t')]": "s3cr3t",
    "Authorization: s3cr3t": "s3cr3t",
    "Authorization: Digest username=s3cr3t": "s3cr3t",
    "?h=Bearer%20s3cr3t": "s3cr3t",
    "BEARER\ts3cr3t": "s3cr3t",
    "key AKIAIOSFODNN7EXAMPLE": "IOSFODNN7",
    "key ASIAIOSFODNN7EXAMPLE.": "IOSFODNN7",
    f"aws_secret_access_key={SECRET}": SECRET,
    f'{{"SecretAccessKey": "{SECRET}"}}': SECRET,
    f"AWS_SECRET_ACCESS_KEY: {SECRET}": SECRET,
    "X-Amz-Signature=abcdef123&x": "abcdef123",
    "x-api-key: abcdef123": "abcdef123",
    "OPENAI_API_KEY='abcdef123'": "abcdef123",
    "aws_session_token = abcdef123": "abcdef123",
    "password=abcdef123": "abcdef123",
    "https://user:abcdef123@host/path": "abcdef123",
    "s3://abcdef123@bucket/x": "abcdef123",
    "postgresql://u:abc/def123@host": "def123",
    "https://host/path?sig=abcdef123": "abcdef123",
}


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_secrets_are_masked(text):
    assert TEXTS[text] in text
    assert is_suspect(text)
    assert TEXTS[text] not in mask(text)
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.parametrize("format", ["json", "text"])
def test_secrets_are_in_no_line(configured, text, format):
    stream = configured("debug", format)
    log_request("GET", text, 200, 1.0, text, text)
    logging.getLogger("omnigraph.x").debug("got %s", text)
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("other").exception("it failed: %s", text)
    assert TEXTS[text] not in stream.getvalue()
    assert "***" in stream.getvalue() or "://" in text
    if format == "json":
        assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "og_short",
        "blog_entries_of_the_whole_year",
        "/graphs/{graph_id}/branches",
        "the token is missing",
        "secret",
        "see https://host/path",
    ],
)
def test_other_texts_stay(text):
    assert mask(text) == text


def test_a_long_text_is_masked_in_linear_time():
    """Patterns that backtrack would not end."""
    for text in (
        "a" * 200_000,
        "secret" * 40_000,
        "authorization" * 20_000,
        "bearer " * 40_000,
        "og_" * 60_000,
        "-" * 200_000 + "secret",
    ):
        assert len(mask(text)) <= len(text) + 10
