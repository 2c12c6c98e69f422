"""The client against a real HTTP server that answers like OpenAI and Gemini, well or badly."""

from __future__ import annotations

import json
import logging
import math
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import numpy as np
import pytest

from omnigraph.embedding import provider as provider_module
from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.errors import EmbeddingError, InputError, ModelMismatch
from support.waiting import wait_for

STYLES = ["openai", "openai-compatible", "gemini"]


@pytest.fixture(autouse=True)
def _everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG)


@pytest.fixture
def helpers(request):
    """Definitions of conftest besides its fixtures."""
    return sys.modules[type(request.getfixturevalue("provider")).__module__]


@pytest.fixture
def reply(helpers):
    return helpers.Reply


def f32(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def unit(values):
    total = 0.0
    for value in map(f32, values):
        total += value * value
    norm = f32(math.sqrt(total))
    return [f32(f32(value) / norm) for value in values]


def failing(client, texts=("some private text",), dim=4, role="document"):
    with pytest.raises(EmbeddingError) as caught:
        client.embed(list(texts), dim, role)
    return caught.value


# -- asking ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("role", ["document", "query"])
def test_vectors_come_back_in_order_and_normalised(connect, helpers, style, role):
    texts = [f"text number {number}" for number in range(9)]
    vectors = connect(style).embed(texts, 6, role)
    assert vectors.dtype == np.float32
    assert vectors.shape == (9, 6)
    assert vectors.tolist() == [unit(helpers.raw_vector(text, 6)) for text in texts]


def test_request_to_openai(connect, provider):
    connect().embed(["one", "zwölf"], 3, "query")
    (seen,) = provider.seen
    assert seen.path == "/v1/embeddings"
    assert seen.body == {"model": "m-1", "input": ["one", "zwölf"], "dimensions": 3}
    assert seen.headers["Authorization"] == "Bearer sk-very-secret-0123456789"
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["User-Agent"].startswith("omnigraph/")
    assert "x-goog-api-key" not in seen.headers


@pytest.mark.parametrize(("role", "task"), [("document", "RETRIEVAL_DOCUMENT"), ("query", "RETRIEVAL_QUERY")])
def test_request_to_gemini(connect, provider, role, task):
    connect("gemini").embed(["one"], 3, role)
    (seen,) = provider.seen
    assert seen.path == "/v1/models/m-1:embedContent"
    assert seen.body == {
        "model": "models/m-1",
        "content": {"parts": [{"text": "one"}]},
        "taskType": task,
        "outputDimensionality": 3,
    }
    assert seen.headers["x-goog-api-key"] == "sk-very-secret-0123456789"
    assert "Authorization" not in seen.headers
    assert "sk-" not in seen.path


def test_a_model_name_cannot_change_the_path(connect, provider):
    connect("gemini", model="a b?x=1\r\nHost: evil").embed(["one"], 3)
    assert provider.seen[0].path == "/v1/models/a%20b%3Fx%3D1%0D%0AHost:%20evil:embedContent"


@pytest.mark.parametrize(("texts", "sizes"), [(1, [1]), (64, [64]), (65, [64, 1]), (130, [64, 64, 2])])
def test_openai_requests_have_up_to_64_texts(connect, provider, texts, sizes):
    assert connect().embed([f"{number}" for number in range(texts)], 2).shape == (texts, 2)
    assert [len(seen.body["input"]) for seen in provider.seen] == sizes
    assert provider.peak == 1


def test_gemini_requests_have_one_text_and_four_run_concurrently(connect, provider):
    provider.delay_s = 0.03
    assert connect("gemini").embed([f"{number}" for number in range(10)], 2).shape == (10, 2)
    assert len(provider.seen) == 10
    assert 1 < provider.peak <= 4


def test_the_limit_of_four_requests_covers_all_threads(connect, provider):
    provider.delay_s = 0.02
    client = connect("gemini")
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(client.embed, [f"{job} {n}" for n in range(5)], 2, "document") for job in range(4)]
    assert [job.result().shape for job in jobs] == [(5, 2)] * 4
    assert len(provider.seen) == 20
    assert 1 < provider.peak <= 4


@pytest.mark.parametrize("style", STYLES)
def test_identical_texts_are_embedded_once(connect, provider, style):
    vectors = connect(style).embed(["a", "b", "a", "b", "b", "c"], 4)
    asked = [
        seen.body["input"] if style != "gemini" else seen.body["content"]["parts"][0]["text"] for seen in provider.seen
    ]
    assert asked == [["a", "b", "c"]] if style != "gemini" else sorted(asked) == ["a", "b", "c"]
    assert (vectors[0] == vectors[2]).all()
    assert (vectors[1] == vectors[[3, 4]]).all()
    assert (vectors[0] != vectors[1]).any()


def test_no_texts_send_no_request(connect, provider):
    assert connect().embed([], 7).shape == (0, 7)
    assert provider.seen == []


def test_connections_are_opened_on_first_use_and_reused(connect, provider):
    client = connect()
    for number in range(3):
        client.embed([f"{number}"], 2)
    assert len({seen.connection for seen in provider.seen}) == 1
    client.close()
    client.embed(["again"], 2)
    assert len({seen.connection for seen in provider.seen}) == 2


def test_a_closed_connection_is_replaced_without_a_retry(connect, provider, reply, fake_time):
    provider.script = [reply(body=answer([1.0, 2.0])), hang_up_later(reply)]
    client = connect()
    client.embed(["one"], 2)
    client.embed(["two"], 2)
    wait_for(lambda: provider.closed == 1, "the end of the connection")
    client.embed(["three"], 2)
    assert len(provider.seen) == 3
    assert fake_time.slept == []


def hang_up_later(reply):
    """Send a complete response, then close the connection without a `Connection: close` header."""
    body = json.dumps(answer([1.0, 2.0])).encode()
    return reply(body=body, hang_up_after=len(body))


def test_one_client_serves_many_threads(connect, provider, helpers):
    client = connect()
    with ThreadPoolExecutor(8) as pool:
        texts = [f"text {number}" for number in range(40)]
        found = list(pool.map(lambda text: client.embed([text], 5)[0].tolist(), texts))
    assert found == [unit(helpers.raw_vector(text, 5)) for text in texts]


# -- answers that are wrong --------------------------------------------------------------------------


def answer(*vectors, indexes=None):
    indexes = range(len(vectors)) if indexes is None else indexes
    return {"data": [{"index": index, "embedding": vector} for index, vector in zip(indexes, vectors, strict=True)]}


FOUR = [1.0, 2.0, 3.0, 4.0]
WRONG = {
    # two texts were requested, four numbers each
    "too few": (answer(FOUR), "expected 2 vectors, received 1"),
    "too many": (answer(FOUR, FOUR, FOUR), "expected 2 vectors, received 3"),
    "index twice": (answer(FOUR, FOUR, indexes=[0, 0]), "indexes of the vectors are not exactly 0 to 1"),
    "index from one": (answer(FOUR, FOUR, indexes=[1, 2]), "not exactly 0 to 1"),
    "index negative": (answer(FOUR, FOUR, indexes=[-1, 0]), "not exactly 0 to 1"),
    "index no number": (answer(FOUR, FOUR, indexes=["0", "1"]), "not exactly 0 to 1"),
    "index a bool": (answer(FOUR, FOUR, indexes=[False, True]), "not exactly 0 to 1"),
    "index missing": ({"data": [{"embedding": FOUR}] * 2}, "not exactly 0 to 1"),
    "items no objects": ({"data": [FOUR, FOUR]}, "not exactly 0 to 1"),
    "no data": ({"vectors": []}, "no list 'data'"),
    "a list": ([], "no list 'data'"),
    "null": (None, "no list 'data'"),
    "data no list": ({"data": {"0": FOUR}}, "no list 'data'"),
    "too short": (answer(FOUR, FOUR[:3]), "expected a vector of 4 numbers, received 3"),
    "too long": (answer([*FOUR, 5.0], FOUR), "expected a vector of 4 numbers, received 5"),
    "empty": (answer(FOUR, []), "expected a vector of 4 numbers, received 0"),
    "not a number": (answer(FOUR, [1.0, math.nan, 0.0, 0.0]), "component 1 of the vector is not a finite number"),
    "infinite": (answer(FOUR, [1.0, 0.0, 0.0, math.inf]), "component 3 "),
    "beyond 32 bits": (answer(FOUR, [1.0, 0.0, -1e300, 0.0]), "component 2 "),
    "zero": (answer(FOUR, [0.0] * 4), "no direction"),
    "null inside": (answer(FOUR, [1.0, None, 3.0, 4.0]), "not a list of numbers"),
    "text inside": (answer(FOUR, ["1", "2", "3", "4"]), "not a list of numbers"),
    "bool inside": (answer(FOUR, [True, False, True, True]), "not a list of numbers"),
    "a huge integer": (answer(FOUR, [10**400, 1, 1, 1]), "too large"),
    "short base64": (answer(FOUR, "AACAPwAAAEA="), "expected a vector of 4 numbers, received 2"),
    "no base64": (answer(FOUR, "not base64"), "not base64 of 32-bit floats"),
    "odd base64": (answer(FOUR, "AACAPwA="), "not base64 of 32-bit floats"),
    "no embedding": ({"data": [{"index": 0}, {"index": 1}]}, "not a list of numbers"),
    "not JSON": (b"<html>gateway</html>", "the answer is not JSON: <html>gateway</html>"),
    "half of JSON": (b'{"data": [', "not JSON"),
    "not UTF-8": (b"\xff\xfe\xff", "not JSON"),
    "nested": (b"[" * 100_000, "not JSON"),
    "nothing": (b"", "not JSON"),
}


@pytest.mark.parametrize(("body", "said"), WRONG.values(), ids=WRONG)
def test_an_invalid_response_is_not_retried(connect, provider, reply, fake_time, body, said):
    provider.script = [reply(body=body)]
    error = failing(connect(), ["a", "b"])
    assert said in error.message
    assert "openai model 'm-1' failed after 1 try" in error.message
    assert len(provider.seen) == 1
    assert fake_time.slept == []


GEMINI_WRONG = {
    "no embedding": ({"embeddings": [{"values": FOUR}]}, "not a list of numbers"),
    "no values": ({"embedding": {"value": FOUR}}, "not a list of numbers"),
    "a list": ([FOUR], "not a list of numbers"),
    "too short": ({"embedding": {"values": [1]}}, "expected a vector of 4 numbers, received 1"),
    "infinite": ({"embedding": {"values": [math.inf, 0, 0, 0]}}, "component 0 "),
    "zero": ({"embedding": {"values": [0, 0, 0, 0]}}, "no direction"),
    "not JSON": (b"{", "not JSON"),
}


@pytest.mark.parametrize(("body", "said"), GEMINI_WRONG.values(), ids=GEMINI_WRONG)
def test_an_invalid_response_of_gemini(connect, provider, reply, body, said):
    provider.script = [reply(body=body)]
    error = failing(connect("gemini"))
    assert said in error.message
    assert "gemini model 'm-1' failed after 1 try" in error.message
    assert len(provider.seen) == 1


def test_text_index_counts_the_texts_of_the_caller(connect, provider, reply):
    texts = ["a", "a", "b", "a", "c"]
    provider.script = [reply(body=answer(FOUR, FOUR, [0.0] * 4))]
    assert failing(connect(), texts).text_index == 4
    provider.script = [reply(body=answer(FOUR, [1.0], FOUR))]
    assert failing(connect(), texts).text_index == 2
    provider.script = [reply(body=answer(*[FOUR] * 64)), reply(status=400)]
    assert failing(connect(), [f"{number}" for number in range(70)]).text_index == 64


def test_an_oversized_response_is_aborted(connect, provider, reply, monkeypatch):
    monkeypatch.setattr(provider_module, "_ANSWER_BYTES", 1_000)
    provider.script = [reply(body=b" " * 5_000)]
    assert "longer than any right one" in failing(connect()).message


# -- failures of the provider ------------------------------------------------------------------------


def test_a_refusal_contains_the_message_of_the_provider(connect, provider, reply, fake_time):
    provider.script = [reply(400, {"error": {"message": "dimensions is too large", "type": "invalid"}})]
    error = failing(connect())
    assert error.message.endswith("failed after 1 try: status 400: dimensions is too large")
    assert error.code == "embedding_error"
    assert error.text_index == 0
    assert len(provider.seen) == 1
    assert fake_time.slept == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"plain words\n", "status 400: plain words"),
        ({"error": "words"}, 'status 400: {"error": "words"}'),
        ({"error": {"message": ""}}, 'status 400: {"error": {"message": ""}}'),
        ({"error": {"message": "two\n\nlines"}}, "status 400: two lines"),
        ([1], "status 400: [1]"),
        (b"\xff", "status 400: \ufffd"),
        (b"", "failed after 1 try: status 400"),
        (b"x" * 10_000, "x" * 499 + "…"),
    ],
)
def test_refusals_with_any_body(connect, provider, reply, body, said):
    provider.script = [reply(400, body)]
    assert failing(connect()).message.endswith(said)


@pytest.mark.parametrize("status", [301, 304, 400, 401, 403, 404, 408, 409, 413, 422])
def test_other_statuses_are_not_retried(connect, provider, reply, status):
    provider.script = [reply(status, b"", {"Location": "http://127.0.0.1:1/"})]
    assert f"status {status}" in failing(connect()).message
    assert len(provider.seen) == 1


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
@pytest.mark.parametrize("style", ["openai", "gemini"])
def test_a_temporary_failure_is_retried(connect, provider, reply, fake_time, status, style):
    provider.script = [reply(status, b"later")] * 3
    assert connect(style).embed(["a"], 4).shape == (1, 4)
    assert len(provider.seen) == 4
    assert provider.seen[0].body == provider.seen[3].body
    assert fake_time.slept == [0.2, 0.4, 0.8]


def test_a_permanent_failure_ends_after_four_attempts(connect, provider, reply, fake_time):
    provider.script = [reply(500, {"error": {"message": f"down {number}"}}) for number in range(9)]
    error = failing(connect())
    assert "openai model 'm-1' failed after 4 tries: status 500: down 3" in error.message
    assert len(provider.seen) == 4
    assert fake_time.slept == [0.2, 0.4, 0.8]


@pytest.mark.parametrize(
    ("headers", "waited"),
    [
        ({"Retry-After": "3"}, 3.0),
        ({"Retry-After": "0"}, 0.2),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After": "soon"}, 0.2),
        ({"Retry-After": "-5"}, 0.2),
        ({"Retry-After": "Wed, 21 Oct 2099 07:28:07 GMT", "Date": "Wed, 21 Oct 2099 07:28:00 GMT"}, 7.0),
        ({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.2),
        ({"Retry-After": "Wed, 99 Oct 2099 07:28:00 GMT"}, 0.2),
    ],
)
def test_retry_after(connect, provider, reply, fake_time, headers, waited, monkeypatch):
    # The server's own Date header would come first, twice.
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: headers.get("Date", "now"))
    provider.script = [reply(429, b"", {"Retry-After": headers["Retry-After"]})]
    connect().embed(["a"], 4)
    assert fake_time.slept == [waited]


def test_retry_after_a_date_without_a_server_date(connect, provider, reply, fake_time, monkeypatch):
    monkeypatch.setattr("http.server.BaseHTTPRequestHandler.date_time_string", lambda *_: "none of your business")
    provider.script = [reply(503, b"", {"Retry-After": formatdate(time.time() + 86_000, usegmt=True)})]
    connect(deadline_ms=0).embed(["a"], 4)
    assert 0 < fake_time.slept[0] <= 86_000


def test_retry_after_beyond_the_deadline_fails_immediately(connect, provider, reply, fake_time):
    provider.script = [reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "120"})]
    error = failing(connect())
    for part in ("deadline of 60000 ms", "openai", "'m-1'", "status 429: slow down"):
        assert part in error.message
    assert fake_time.slept == []


def test_a_long_retry_after_does_not_block_later_calls(connect, provider, reply, fake_time):
    provider.script = [reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "120"})]
    client = connect()
    failing(client)
    assert "the provider asked for a pause that ends in 120 s" in failing(client).message
    assert len(provider.seen) == 1
    assert fake_time.slept == []
    fake_time.now += 121
    assert client.embed(["a"], 4).shape == (1, 4)


def test_a_slow_response_times_out(connect, provider, reply, fake_time):
    provider.script = [reply(delay_s=0.9)] * 2
    error = failing(connect(timeout_ms=150, attempts=2))
    assert "failed after 2 tries: timeout after 150 ms" in error.message
    assert len(provider.seen) == 2
    assert fake_time.slept == [0.2]


def test_a_timeout_is_retried(connect, provider, reply):
    provider.script = [reply(delay_s=1.0)]
    assert connect(timeout_ms=500, attempts=20, deadline_ms=0).embed(["a"], 4).shape == (1, 4)


@pytest.mark.parametrize("body", [b" " * 40, b"x" * 40])
def test_the_timeout_covers_the_whole_response(connect, provider, reply, body):
    provider.script = [reply(body=body, trickle_s=0.03)]  # no single read takes as long as the timeout
    assert "timeout after 150 ms" in failing(connect(timeout_ms=150, attempts=1)).message


def test_the_deadline_cuts_a_request_short(provider, reply):
    provider.script = [reply(delay_s=1.5)]
    with EmbeddingClient(provider.config(deadline_ms=200)) as client:
        error = failing(client)
    assert "deadline of 200 ms" in error.message
    assert len(provider.seen) == 1


@pytest.mark.parametrize("style", ["openai", "gemini"])
def test_a_refused_connection_is_an_error(fake_time, style):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    config = EmbeddingConfig(style, "m-1", f"http://127.0.0.1:{port}", "sk-very-secret-0123456789")
    error = failing(EmbeddingClient(config, clock=fake_time.clock, sleep=fake_time.sleep))
    assert f"{style} model 'm-1' failed after 4 tries" in error.message
    assert f"127.0.0.1:{port}: Connection refused" in error.message
    assert fake_time.slept == [0.2, 0.4, 0.8]


def test_an_unknown_host_is_an_error(fake_time):
    config = EmbeddingConfig("openai", "m", "https://nowhere.invalid", "k", attempts=2)
    error = failing(EmbeddingClient(config, clock=fake_time.clock, sleep=fake_time.sleep))
    assert "no connection to nowhere.invalid:443" in error.message


@pytest.mark.parametrize("after", [-1, 0, 10])
def test_a_broken_connection_is_retried(connect, provider, reply, fake_time, after):
    provider.script = [reply(body=answer(FOUR), hang_up_after=after)]
    assert connect().embed(["a"], 4).shape == (1, 4)
    assert len(provider.seen) == 2
    assert fake_time.slept == [0.2]


def test_a_response_that_is_not_http(fake_time):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet():
            connection, _ = server.accept()
            with connection:
                connection.recv(65_536)
                connection.sendall(b"220 mail.example.org ready\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        config = EmbeddingConfig("openai", "m", f"http://127.0.0.1:{server.getsockname()[1]}", "k")
        error = failing(EmbeddingClient(config, sleep=fake_time.sleep))
        thread.join()
    assert "does not answer in HTTP" in error.message
    assert fake_time.slept == []


def test_one_failed_text_cancels_the_others(connect, provider, reply):
    provider.delay_s = 0.02
    provider.script = [reply(400, {"error": {"message": "no"}})]
    error = failing(connect("gemini"), [f"{number}" for number in range(200)])
    assert "status 400: no" in error.message
    assert len(provider.seen) <= 8
    assert error.text_index in range(4)


# -- before any request ------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize("style", [*STYLES, "mock", "local"])
def test_zero_dimensions_are_refused_before_any_request(connect, provider, dim, style):
    changes = {"model": "local-hashed-ngrams-v1"} if style == "local" else {}
    assert f"{dim} dimensions" in failing(connect(style, **changes), dim=dim).message
    assert provider.seen == []


@pytest.mark.parametrize("style", [*STYLES, "mock"])
def test_an_unpaired_surrogate_is_refused_before_any_request(connect, provider, style):
    with pytest.raises(InputError, match=r"text 1 .*surrogate"):
        connect(style).embed(["fine", "half \ud800"], 4)
    assert provider.seen == []


def test_a_query_text_is_embedded_in_its_role(connect, provider):
    vector = connect("gemini").embed_query(" where? ", 3, subject="parameter '$q'")
    assert vector.shape == (3,)
    assert provider.seen[0].body["taskType"] == "RETRIEVAL_QUERY"
    assert provider.seen[0].body["content"]["parts"][0]["text"] == " where? "


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0"])
def test_a_blank_query_text_is_refused(connect, provider, text):
    with pytest.raises(InputError, match=r"parameter '\$q' is blank.* 3 numbers"):
        connect().embed_query(text, 3, subject="parameter '$q'")
    assert provider.seen == []


def test_another_model_is_refused_before_any_request(connect, provider):
    client = connect()
    client.check_model("Doc", "meaning", None)
    client.check_model("Doc", "meaning", "m-1")
    with pytest.raises(ModelMismatch, match=r"'Doc\.meaning'.*'m-2'.*'m-1'"):
        client.check_model("Doc", "meaning", "m-2")
    assert client.model == "m-1"
    assert provider.seen == []


# -- secrets -----------------------------------------------------------------------------------------


def everything_said(error, caplog):
    said = [caplog.text, *(record.getMessage() for record in caplog.records)]
    while error is not None:
        said += [str(error), repr(error), getattr(error, "message", ""), getattr(error, "hint", "") or ""]
        error = error.__cause__ or error.__context__
    return "\n".join(said)


KEY = "sk-very-secret-0123456789"
TELLTALES = {
    "refused": lambda reply: [reply(401, {"error": {"message": f"Incorrect API key provided: {KEY}."}})],
    "refused in plain": lambda reply: [reply(403, f"bad key {KEY}".encode())],
    "limited": lambda reply: [reply(429, {"error": {"message": f"{KEY}: quota"}})] * 9,
    "not JSON": lambda reply: [reply(200, f"<p>{KEY}</p>".encode())],
    "long": lambda reply: [reply(500, f"{'x' * 495}{KEY}".encode())] * 9,
    "broken": lambda reply: [reply(body=b"{}", hang_up_after=1)] * 9,
    "wrong": lambda reply: [reply(body={"data": []})],
}


@pytest.mark.parametrize("script", TELLTALES.values(), ids=TELLTALES)
@pytest.mark.parametrize("style", ["openai", "gemini"])
def test_the_key_never_appears_in_errors_or_logs(connect, provider, reply, caplog, script, style):
    provider.script = script(reply)
    client = connect(style)
    error = failing(client)
    said = everything_said(error, caplog) + repr(client) + repr(client.config)
    assert KEY not in said
    assert "sk-very" not in said
    assert any(KEY in value for value in provider.seen[0].headers.values())


def test_the_text_is_never_logged(connect, provider, reply, caplog):
    echo = {"error": {"message": "cannot embed 'some private text'"}}
    provider.script = [reply(500, echo), reply(429, echo)]
    connect().embed(["some private text"], 4)
    assert len(caplog.records) == 2
    assert "private" not in caplog.text
