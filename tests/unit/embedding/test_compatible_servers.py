"""The contract with OpenAI-compatible servers, for the documented forms of base URLs and habits of servers."""

from __future__ import annotations

import base64
import struct

import pytest

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import get_config
from omnigraph.errors import EmbeddingError
from support.provider import KEY, Reply, Seen, raw_vector

BASES = {
    "openai": ("openai", "OPENAI_BASE_URL", "/v1", "OPENAI_API_KEY"),
    "openai, any server": ("openai", "OMNIGRAPH_EMBED_BASE_URL", "/v1/", "OPENAI_API_KEY"),
    "openrouter": ("openai-compatible", "OMNIGRAPH_EMBED_BASE_URL", "/api/v1", "OPENROUTER_API_KEY"),
    "a gateway": ("openai-compatible", "OMNIGRAPH_EMBED_BASE_URL", "/team-7/openai/v1//", "OPENAI_API_KEY"),
    "no path": ("openai-compatible", "OMNIGRAPH_EMBED_BASE_URL", "", "OPENAI_API_KEY"),
}
TEXTS = ["one", "two", "three"]


@pytest.fixture(params=BASES.values(), ids=BASES)
def server(request, provider, fake_time):
    """A client that is configured by variables, and the path that its requests must have."""
    name, variable, path, key = request.param
    root = provider.url.removesuffix("/v1")
    environ = {"OMNIGRAPH_EMBED_PROVIDER": name, variable: f"{root}{path}", key: KEY, "OMNIGRAPH_EMBED_MODEL": "m-1"}
    with EmbeddingClient(
        get_config(environ, needed_by="a test"), clock=fake_time.clock, sleep=fake_time.sleep
    ) as client:
        yield client, f"{path.rstrip('/')}/embeddings"


def body(seen: Seen, **changes) -> Reply:
    """The answer of a server; `encode` changes the vectors."""
    encode = changes.get("encode", lambda vector: vector)
    dim = changes.get("dim", seen.body["dimensions"])
    items = [{"index": at, "embedding": encode(raw_vector(text, dim))} for at, text in enumerate(seen.body["input"])]
    return Reply(body={"data": items, **changes.get("members", {})})


def limited(most: int, status: int):
    """A server that accepts a number of texts per request."""

    def answer(seen: Seen) -> Reply:
        if len(seen.body["input"]) > most:
            size = len(seen.body["input"])
            return Reply(status, {"error": {"message": f"batch size {size} > maximum allowed batch size {most}"}})
        return body(seen)

    return answer


def test_requests_and_answers(server, provider):
    client, path = server
    expected = client.embed(TEXTS, 4)
    assert [seen.path for seen in provider.seen] == [path]
    assert provider.seen[0].headers["Authorization"] == f"Bearer {KEY}"
    provider.script = [body, lambda seen: body(seen, members={"usage": None, "model": "other", "object": "list"})]
    for _ in range(2):  # an answer without `usage`, and one with an unknown one
        assert client.embed(TEXTS, 4).tolist() == expected.tolist()


def test_vectors_in_base64(server, provider):
    client, _ = server
    expected = client.embed(TEXTS, 4)
    provider.script = [
        lambda seen: body(seen, encode=lambda vector: base64.b64encode(struct.pack("<4f", *vector)).decode())
    ]
    assert client.embed(TEXTS, 4).tolist() == expected.tolist()


@pytest.mark.parametrize(("status", "most"), [(413, 32), (422, 20)])
def test_limits_of_texts_per_request(connect, provider, status, most):
    client = connect("openai-compatible")
    texts = [f"text {number}" for number in range(65)]
    expected = client.embed(texts, 3)
    provider.seen.clear()
    provider.script = [limited(most, status)] * 50
    assert client.embed(texts, 3).tolist() == expected.tolist()
    refused = [len(seen.body["input"]) for seen in provider.seen if len(seen.body["input"]) > most]
    assert refused == [64 >> halving for halving in range(len(refused))]
    provider.seen.clear()
    client.embed(texts, 3)
    assert max(len(seen.body["input"]) for seen in provider.seen) <= most


def test_refused_text_is_named(connect, provider):
    client = connect("openai-compatible")

    def answer(seen: Seen) -> Reply:
        return Reply(413, {"error": {"message": "too long"}}) if "long" in seen.body["input"] else body(seen)

    provider.script = [answer] * 50
    with pytest.raises(EmbeddingError, match="status 413: too long") as caught:
        client.embed(["a", "b", "c", "long", "d"], 3)
    assert caught.value.text_index == 3


def test_wrong_dimension(server, provider):
    client, _ = server
    provider.script = [lambda seen: body(seen, dim=7)]
    with pytest.raises(EmbeddingError, match="expected a vector of 4 numbers, received 7"):
        client.embed(TEXTS, 4)


@pytest.mark.parametrize(("headers", "waited"), [({}, 0.2), ({"Retry-After": "2"}, 2.0)])
def test_too_many_requests(server, provider, fake_time, headers, waited):
    client, _ = server
    provider.script = [Reply(429, {"error": {"message": "slow down"}}, headers)]
    assert client.embed(TEXTS, 4).shape == (3, 4)
    assert fake_time.slept == [waited]


def test_slow_body(provider, fake_time):
    provider.script = [Reply(body=b'{"data": [' + b" " * 40, trickle_s=0.02)]
    config = provider.config("openai-compatible", timeout_ms=150, attempts=1)
    with (
        EmbeddingClient(config, clock=fake_time.clock, sleep=fake_time.sleep) as client,
        pytest.raises(EmbeddingError, match="timeout after 150 ms"),
    ):
        client.embed(TEXTS, 4)
