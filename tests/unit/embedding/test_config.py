"""Which provider, model, address and key a set of variables means."""

from __future__ import annotations

import logging

import pytest

from omnigraph.embedding.config import EmbeddingConfig, find_config, get_config
from omnigraph.errors import EmbeddingError, InputError, ModelMismatch

G, O, R = {"GEMINI_API_KEY": "g-key"}, {"OPENAI_API_KEY": "o-key"}, {"OPENROUTER_API_KEY": "r-key"}  # noqa: E741
GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
OPENAI_URL = "https://api.openai.com/v1"
ROUTER_URL = "https://openrouter.ai/api/v1"
HASHED = "local-hashed-ngrams-v1"


def named(provider, **variables):
    return {"OMNIGRAPH_EMBED_PROVIDER": provider, **variables}


RESOLVED = {
    # variables → provider, model, base URL, key
    "gemini by key": (G, "gemini", "gemini-embedding-2-preview", GEMINI_URL, "g-key"),
    "openai by key": (O, "openai", "text-embedding-3-small", OPENAI_URL, "o-key"),
    "openrouter by key": (R, "openai-compatible", "openai/text-embedding-3-large", ROUTER_URL, "r-key"),
    "gemini before openai": (G | O | R, "gemini", "gemini-embedding-2-preview", GEMINI_URL, "g-key"),
    "openai before openrouter": (O | R, "openai", "text-embedding-3-small", OPENAI_URL, "o-key"),
    "the name beats the keys": (
        G | O | named("openai"), "openai", "text-embedding-3-small", OPENAI_URL, "o-key"),
    "compatible takes the router's key": (
        O | R | named("openai-compatible"), "openai-compatible", "openai/text-embedding-3-large", ROUTER_URL, "r-key"),
    "compatible takes openai's key": (
        O | named("openai-compatible"), "openai-compatible", "openai/text-embedding-3-large", ROUTER_URL, "o-key"),
    "values are trimmed": (
        {"OPENAI_API_KEY": "  o-key\n", "OMNIGRAPH_EMBED_MODEL": "\tm "}, "openai", "m", OPENAI_URL, "o-key"),
    "blank is unset": (
        {"GEMINI_API_KEY": "  ", "OMNIGRAPH_EMBED_PROVIDER": "", **O},
        "openai", "text-embedding-3-small", OPENAI_URL, "o-key"),
    "common base URL first": (
        O | {"OMNIGRAPH_EMBED_BASE_URL": "http://a/v1/", "OPENAI_BASE_URL": "http://b"},
        "openai", "text-embedding-3-small", "http://a/v1", "o-key"),
    "openai's own base URL": (
        O | {"OPENAI_BASE_URL": "http://b:8080///"}, "openai", "text-embedding-3-small", "http://b:8080", "o-key"),
    "gemini's own base URL": (
        G | {"OMNIGRAPH_GEMINI_BASE_URL": "http://c/x/"},
        "gemini", "gemini-embedding-2-preview", "http://c/x", "g-key"),
    "common before gemini's": (
        G | {"OMNIGRAPH_GEMINI_BASE_URL": "http://c", "OMNIGRAPH_EMBED_BASE_URL": "http://d"},
        "gemini", "gemini-embedding-2-preview", "http://d", "g-key"),
    "others' base URLs do not count": (
        R | {"OMNIGRAPH_GEMINI_BASE_URL": "http://c", "OPENAI_BASE_URL": "http://b"},
        "openai-compatible", "openai/text-embedding-3-large", ROUTER_URL, "r-key"),
    "the older model variable, for openai": (
        O | {"NANOGRAPH_EMBED_MODEL": "old"}, "openai", "old", OPENAI_URL, "o-key"),
    "the newer model variable first": (
        O | {"NANOGRAPH_EMBED_MODEL": "old", "OMNIGRAPH_EMBED_MODEL": "new"}, "openai", "new", OPENAI_URL, "o-key"),
    "the older one is not for gemini": (
        G | {"NANOGRAPH_EMBED_MODEL": "old"}, "gemini", "gemini-embedding-2-preview", GEMINI_URL, "g-key"),
    "mock by name": (O | named("mock"), "mock", "", "", ""),
    "mock with a model": (named("mock", OMNIGRAPH_EMBED_MODEL="m"), "mock", "m", "", ""),
    "mock by switch": (O | {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}, "mock", "", "", ""),
    "mock by the older switch": (O | {"NANOGRAPH_EMBEDDINGS_MOCK": " Yes "}, "mock", "", "", ""),
    "either switch is enough": (
        {"OMNIGRAPH_EMBEDDINGS_MOCK": "0", "NANOGRAPH_EMBEDDINGS_MOCK": "ON"}, "mock", "", "", ""),
    "a switch that is off": (
        O | {"OMNIGRAPH_EMBEDDINGS_MOCK": "false"}, "openai", "text-embedding-3-small", OPENAI_URL, "o-key"),
    "local": (G | named("local"), "local", HASHED, "", ""),
    "local, pinned": (named("local", OMNIGRAPH_EMBED_MODEL=HASHED), "local", HASHED, "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("environ", "provider", "model", "base_url", "key"), RESOLVED.values(), ids=RESOLVED)
def test_resolution(environ, provider, model, base_url, key):
    config = find_config(environ)
    assert (config.provider, config.model, config.base_url, config.api_key) == (provider, model, base_url, key)


@pytest.mark.parametrize("value", ["1", "true", "TRUE", "yes", "On", " on "])
def test_truthy(value):
    assert find_config({"OMNIGRAPH_EMBEDDINGS_MOCK": value}).provider == "mock"


@pytest.mark.parametrize("value", ["", "0", "no", "off", "2", "y", "t"])
def test_not_truthy(value):
    assert find_config({"OMNIGRAPH_EMBEDDINGS_MOCK": value}) is None


@pytest.mark.parametrize("other", ["gemini", "local", "something"])
def test_mock_instead_of_another_provider_logs_a_warning(caplog, other):
    find_config(named(other, NANOGRAPH_EMBEDDINGS_MOCK="1"))
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "NANOGRAPH_EMBEDDINGS_MOCK" in record.getMessage()
    assert f"'{other}'" in record.getMessage()


@pytest.mark.parametrize("environ", [named("mock"), named("mock", OMNIGRAPH_EMBEDDINGS_MOCK="1"), G])
def test_no_warning_otherwise(caplog, environ):
    find_config(environ)
    assert not caplog.records


def timing(**variables):
    config = find_config({**O, **variables})
    return config.timeout_ms, config.attempts, config.backoff_ms, config.deadline_ms


DEFAULTS = (30_000, 4, 200, 60_000)
TIMING = [
    ({}, DEFAULTS),
    (
        {
            "OMNIGRAPH_EMBED_TIMEOUT_MS": "1",
            "OMNIGRAPH_EMBED_RETRY_ATTEMPTS": " 2 ",
            "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS": "3",
            "OMNIGRAPH_EMBED_DEADLINE_MS": "0",
        },
        (1, 2, 3, 0),
    ),
    (
        {
            "NANOGRAPH_EMBED_TIMEOUT_MS": "5",
            "NANOGRAPH_EMBED_RETRY_ATTEMPTS": "6",
            "NANOGRAPH_EMBED_RETRY_BACKOFF_MS": "7",
            "NANOGRAPH_EMBED_DEADLINE_MS": "8",
        },
        (5, 6, 7, 60_000),
    ),
    ({"OMNIGRAPH_EMBED_TIMEOUT_MS": "9", "NANOGRAPH_EMBED_TIMEOUT_MS": "5"}, (9, 4, 200, 60_000)),
    ({"OMNIGRAPH_EMBED_TIMEOUT_MS": " ", "NANOGRAPH_EMBED_TIMEOUT_MS": "5"}, (5, 4, 200, 60_000)),
    ({"OMNIGRAPH_EMBED_TIMEOUT_MS": "soon", "NANOGRAPH_EMBED_TIMEOUT_MS": "5"}, DEFAULTS),
]


@pytest.mark.parametrize(("variables", "expected"), TIMING)
def test_timing(variables, expected):
    assert timing(**variables) == expected


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "1e3", "ten", "0x10", "1_000", "٣", "9" * 5_000])
def test_invalid_numbers_mean_the_default(value):
    names = ("TIMEOUT_MS", "RETRY_ATTEMPTS", "RETRY_BACKOFF_MS")
    assert timing(**{f"OMNIGRAPH_EMBED_{name}": value for name in names}) == DEFAULTS
    if value != "0":
        assert timing(OMNIGRAPH_EMBED_DEADLINE_MS=value) == DEFAULTS


@pytest.mark.parametrize("environ", [{}, {"OPENAI_API_KEY": " "}, {"OMNIGRAPH_EMBED_MODEL": "m"}])
def test_unconfigured(environ):
    assert find_config(environ) is None
    with pytest.raises(EmbeddingError) as caught:
        get_config(environ, needed_by="loading 'Doc.meaning'")
    for part in ("loading 'Doc.meaning'", "GEMINI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"):
        assert part in caught.value.message
    assert "OMNIGRAPH_EMBEDDINGS_MOCK" in caught.value.message
    assert caught.value.code == "embedding_error"


def test_configured_is_returned():
    assert get_config(O, needed_by="a query") == find_config(O)


@pytest.mark.parametrize("name", ["Gemini", "azure", "open ai"])
def test_an_unknown_provider_lists_the_accepted_ones(name):
    with pytest.raises(EmbeddingError) as caught:
        find_config(O | named(name))
    for part in (name, "'gemini'", "'openai'", "'openai-compatible'", "'mock'", "'local'"):
        assert part in caught.value.message


@pytest.mark.parametrize(
    ("provider", "variables"),
    [
        ("gemini", "GEMINI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
        ("openai-compatible", "OPENROUTER_API_KEY or OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_names_provider_and_variable(provider, variables):
    with pytest.raises(EmbeddingError, match=f"'{provider}'.* {variables} ") as caught:
        find_config(named(provider))
    assert not isinstance(caught.value, InputError)


def test_an_unknown_local_model_lists_the_installed_ones():
    with pytest.raises(EmbeddingError, match=f"'local-words-nowhere-v1'.*'{HASHED}'"):
        find_config(named("local", OMNIGRAPH_EMBED_MODEL="local-words-nowhere-v1"))


@pytest.mark.parametrize("key", ["two words", "line\nend", "schlüssel", "tab\there"])
def test_a_key_with_invalid_header_characters_is_refused(key):
    with pytest.raises(EmbeddingError, match="'openai'") as caught:
        find_config({"OPENAI_API_KEY": key})
    assert key not in caught.value.message
    assert "OPENAI_API_KEY" in caught.value.hint


@pytest.mark.parametrize(
    "url",
    [
        "api.example.org/v1",
        "ftp://example.org",
        "http://",
        "http://host:99999",
        "http://host:port",
        "http://[::1",
        "http://ho st/",
        "http://user:hunter2@example.org",
        "http://example.org/v1?signature=hunter2",
        "http://example.org/v1#hunter2",
    ],
)
def test_an_invalid_base_url_is_refused(url):
    with pytest.raises(EmbeddingError, match="base URL of provider 'openai'") as caught:
        find_config(O | {"OPENAI_BASE_URL": url})
    assert "hunter2" not in f"{caught.value.message}{caught.value.hint}"
    assert "OMNIGRAPH_EMBED_BASE_URL" in caught.value.hint


def test_the_key_is_not_shown():
    config = find_config({"OPENAI_API_KEY": "sk-hidden"})
    assert "sk-hidden" not in f"{config!r} {config}"
    assert "api_key" not in repr(config)


def test_equal_variables_give_equal_configurations():
    assert find_config(O) == find_config({**O, "UNRELATED": "x"})
    assert find_config(O) != find_config(O | {"OMNIGRAPH_EMBED_MODEL": "m"})


# -- model mismatch ----------------------------------------------------------------------------------


@pytest.mark.parametrize("recorded", [None, "m-1"])
def test_the_same_or_no_recorded_model_is_accepted(recorded):
    EmbeddingConfig("mock", "m-1").check_model("Doc", "meaning", recorded)


@pytest.mark.parametrize(
    ("resolved", "recorded"),
    [
        ("text-embedding-3-large", "openai/text-embedding-3-large"),
        ("m-1", "M-1"),
        ("", "m-1"),
        ("m-1", ""),
    ],
)
def test_another_model_is_refused(resolved, recorded):
    with pytest.raises(ModelMismatch) as caught:
        EmbeddingConfig("mock", resolved).check_model("Doc", "meaning", recorded)
    for part in ("'Doc.meaning'", f"'{recorded}'", f"'{resolved}'", "OMNIGRAPH_EMBED_MODEL", "provider", "re-embed"):
        assert part in caught.value.message
    assert isinstance(caught.value, InputError)
    assert (caught.value.recorded, caught.value.resolved) == (recorded, resolved)
