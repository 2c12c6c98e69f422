"""Resolution of provider and model from variables.

One configuration serves a graph handle for all embeddings, because vectors of different models are not comparable. The
variables are passed as a mapping: only the interfaces read the process environment. The key does not appear in `repr`
or in any message.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from omnigraph import older_names
from omnigraph.embedding.local import choose_model
from omnigraph.embedding.rate_limit import NO_LIMITS, RateLimits
from omnigraph.errors import EmbeddingError, ModelMismatch

Provider = Literal["gemini", "openai", "openai-compatible", "mock", "local"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)

MOCK_SWITCHES = ("OMNIGRAPH_EMBEDDINGS_MOCK", older_names.MOCK_VARIABLE)
PROVIDER_VARIABLE = "OMNIGRAPH_EMBED_PROVIDER"
MODEL_VARIABLE = "OMNIGRAPH_EMBED_MODEL"
BASE_URL_VARIABLE = "OMNIGRAPH_EMBED_BASE_URL"
DEADLINE_VARIABLE = "OMNIGRAPH_EMBED_DEADLINE_MS"

HOW_TO_CONFIGURE = "set GEMINI_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY, or for tests OMNIGRAPH_EMBEDDINGS_MOCK=1"

TIMEOUT_MS = 30_000
ATTEMPTS = 4
BACKOFF_MS = 200
DEADLINE_MS = 60_000

_log = logging.getLogger(__name__)

_TRUE = frozenset({"1", "true", "yes", "on"})
_INTEGER = re.compile(r"\+?[0-9]{1,15}")  # longer values exceed 30,000 years and are not durations
_HEADER_TEXT = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class _Service:
    """Settings of an HTTP provider: variables in order of precedence, then the default."""

    keys: tuple[str, ...]
    base_urls: tuple[str, ...]
    base_url: str
    models: tuple[str, ...]
    model: str


_SERVICES: Mapping[Provider, _Service] = {
    "gemini": _Service(
        ("GEMINI_API_KEY",),
        (BASE_URL_VARIABLE, "OMNIGRAPH_GEMINI_BASE_URL"),
        "https://generativelanguage.googleapis.com/v1beta",
        (MODEL_VARIABLE,),
        "gemini-embedding-2-preview",
    ),
    "openai": _Service(
        ("OPENAI_API_KEY",),
        (BASE_URL_VARIABLE, "OPENAI_BASE_URL"),
        "https://api.openai.com/v1",
        (MODEL_VARIABLE, older_names.MODEL_VARIABLE),
        "text-embedding-3-small",
    ),
    "openai-compatible": _Service(
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
        (BASE_URL_VARIABLE,),
        "https://openrouter.ai/api/v1",
        (MODEL_VARIABLE,),
        "openai/text-embedding-3-large",
    ),
}

_BY_KEY: tuple[tuple[str, Provider], ...] = (
    ("GEMINI_API_KEY", "gemini"),
    ("OPENAI_API_KEY", "openai"),
    ("OPENROUTER_API_KEY", "openai-compatible"),
)


@dataclass(frozen=True)
class EmbeddingConfig:
    """Configuration of the client; all times are in milliseconds.

    `attempts` is the number of attempts of a call. `deadline_ms` bounds them together, and 0 means no deadline; waiting
    because of `limits` does not count.
    """

    provider: Provider
    model: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    timeout_ms: int = TIMEOUT_MS
    attempts: int = ATTEMPTS
    backoff_ms: int = BACKOFF_MS
    deadline_ms: int = DEADLINE_MS
    limits: RateLimits = NO_LIMITS

    def __post_init__(self) -> None:
        if self.provider in _SERVICES:
            _check_base_url(self.provider, self.base_url)
            _check_key(self.provider, self.api_key)

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Refuse a property with vectors of another model; a property without a recorded model is not checked."""
        if recorded is not None and recorded != self.model:
            raise ModelMismatch(f"'{type_name}.{property_name}'", recorded=recorded, resolved=self.model)


def find_config(environ: Mapping[str, str]) -> EmbeddingConfig | None:
    """Return the configuration in the variables; None if they contain neither a provider nor a key.

    Raises `EmbeddingError` if the configuration is invalid.
    """
    variables = _trimmed(environ)
    provider = _provider(variables)
    if provider is None:
        return None
    wanted = variables.get(MODEL_VARIABLE)
    service = _SERVICES.get(provider)
    if service is None:
        model = wanted or "" if provider == "mock" else choose_model(wanted)
        base_url = api_key = ""
    else:
        model = _first(variables, service.models, service.model)
        base_url = _first(variables, service.base_urls, service.base_url).rstrip("/")
        api_key = _first(variables, service.keys, "")
    return EmbeddingConfig(
        provider,
        model,
        base_url,
        api_key,
        timeout_ms=_number(variables, "TIMEOUT_MS", TIMEOUT_MS),
        attempts=_number(variables, "RETRY_ATTEMPTS", ATTEMPTS),
        backoff_ms=_number(variables, "RETRY_BACKOFF_MS", BACKOFF_MS),
        deadline_ms=_integer(variables.get(DEADLINE_VARIABLE), DEADLINE_MS, least=0),
        limits=RateLimits.of(variables),
    )


def get_config(environ: Mapping[str, str], *, needed_by: str) -> EmbeddingConfig:
    """Return the configuration in the variables; `needed_by` names the operation that requires it, for the error."""
    config = find_config(environ)
    if config is None:
        raise EmbeddingError(
            f"{needed_by} needs an embedding, and no provider is configured: {HOW_TO_CONFIGURE}",
            hint=f"{PROVIDER_VARIABLE}=local needs no key: it compares wordings, offline",
        )
    return config


def _provider(variables: Mapping[str, str]) -> Provider | None:
    named = variables.get(PROVIDER_VARIABLE)
    switch = next((name for name in MOCK_SWITCHES if variables.get(name, "").lower() in _TRUE), None)
    if switch is not None:
        if named not in (None, "mock"):
            # Mock vectors cannot be distinguished from real ones, so a warning is logged.
            _log.warning(
                "%s is on: embeddings are mock vectors, although %s names '%s'", switch, PROVIDER_VARIABLE, named
            )
        return "mock"
    if named is not None:
        for provider in PROVIDERS:
            if named == provider:
                return provider
        accepted = ", ".join(f"'{provider}'" for provider in PROVIDERS)
        raise EmbeddingError(
            f"{PROVIDER_VARIABLE} is '{_short(named)}', which is not a provider; the providers are {accepted}"
        )
    return next((provider for key, provider in _BY_KEY if key in variables), None)


def _trimmed(environ: Mapping[str, str]) -> dict[str, str]:
    # A blank value counts as unset.
    return {name: value.strip() for name, value in environ.items() if value.strip()}


def _first(variables: Mapping[str, str], names: tuple[str, ...], default: str) -> str:
    return next((variables[name] for name in names if name in variables), default)


def _number(variables: Mapping[str, str], name: str, default: int) -> int:
    text = _first(variables, (f"OMNIGRAPH_EMBED_{name}", f"{older_names.EMBED_PREFIX}{name}"), "")
    return _integer(text, default, least=1)


def _integer(text: str | None, default: int, *, least: int) -> int:
    if text is None or not _INTEGER.fullmatch(text):
        return default
    number = int(text)
    return number if number >= least else default


def _check_key(provider: Provider, key: str) -> None:
    names = " or ".join(_SERVICES[provider].keys)
    if not key:
        raise EmbeddingError(f"provider '{provider}' needs a key, and {names} is not set")
    if not _HEADER_TEXT.fullmatch(key):
        raise EmbeddingError(
            f"the key of provider '{provider}' contains invalid characters, such as a space or a line end",
            hint=f"set {names} again, without quotes around it",
        )


def _check_base_url(provider: Provider, base_url: str) -> None:
    # The URL is not shown, because it may contain a password.
    service = _SERVICES[provider]
    hint = f"set {service.base_urls[0]} to something like {service.base_url}"
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        raise EmbeddingError(f"the base URL of provider '{provider}' is not a URL", hint=hint) from None
    if not _HEADER_TEXT.fullmatch(base_url) or parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise EmbeddingError(f"the base URL of provider '{provider}' is not an http or https URL", hint=hint)
    if "@" in parts.netloc or "?" in base_url or "#" in base_url:
        raise EmbeddingError(
            f"the base URL of provider '{provider}' must not have a user, a query or a fragment", hint=hint
        )


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"
