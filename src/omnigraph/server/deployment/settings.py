"""The settings of the server: options first, then variables, then the configuration file, then defaults.

The keys are those of `omnigraph.config_keys`. The path of an attribute is its key: `server.limits.body_bytes` is
`settings.limits.body_bytes`.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints

from omnigraph.config import Config
from omnigraph.config_keys import GIB, SERVER, SERVER_SETTINGS, Setting, parse_memory, parse_size
from omnigraph.errors import InputError
from omnigraph.machine_memory import MemoryBudget
from omnigraph.redaction import redact

UNIX = "unix:"
CACHE_BYTES = 2 * GIB
"""The default bound of the caches of all workers."""
LOOPBACK_NAMES = ("localhost",)


@dataclass(frozen=True)
class ServerLimits:
    """Limits of requests, answers, queries and connections; each applies to one process."""

    body_bytes: int
    envelope_bytes: int
    load_bytes: int
    body_memory: int
    body_rate: int
    header_bytes: int
    url_bytes: int
    query_s: float
    query_max_s: float
    rows_max: int
    query_bytes: int
    json_rows: int
    json_bytes: int
    reads: int
    reads_per_actor: int
    queue_s: float
    writes_per_actor: int
    bytes_per_actor: int
    exports: int
    streams: int
    connections: int
    memory_high: int | str
    idle_s: float
    request_head_s: float


@dataclass(frozen=True)
class CorsSettings:
    """Cross-origin requests."""

    origins: tuple[str, ...]


@dataclass(frozen=True)
class TlsSettings:
    """Files of the TLS certificate."""

    cert: Path | None
    key: Path | None
    client_ca: Path | None


@dataclass(frozen=True)
class ServerPolicySettings:
    """The policy of server actions."""

    file: Path | None


@dataclass(frozen=True)
class TokenSettings:
    """Sources of bearer tokens; the variables of `server.auth.sources` come first."""

    file: Path | None
    command: str | None
    refresh_s: float


@dataclass(frozen=True)
class AuthSettings:
    """Authentication."""

    tokens: TokenSettings
    resource: str | None
    oidc: tuple[Mapping[str, Any], ...]
    """The entries of `server.auth.oidc`; `server.auth.oidc.issuers` turns them into objects."""


@dataclass(frozen=True)
class AuditSettings:
    """The audit log."""

    dir: Path | None
    bucket: str | None
    reads: str
    required: bool


@dataclass(frozen=True)
class MaintainSettings:
    """Maintenance in the background."""

    enabled: bool
    every_s: float
    rows_min: int
    fragments_min: int


@dataclass(frozen=True)
class LogSettings:
    """The log on stderr."""

    level: str
    format: str


@dataclass(frozen=True)
class MetricsSettings:
    """Metrics."""

    enabled: bool
    bind: str | None

    @property
    def is_on(self) -> bool:
        """True if metrics are collected."""
        return self.enabled or self.bind is not None


@dataclass(frozen=True)
class TraceSettings:
    """Traces."""

    enabled: bool


@dataclass(frozen=True)
class McpServerSettings:
    """The Model Context Protocol."""

    enabled: bool
    write: bool
    adhoc: bool
    branches: tuple[str, ...]
    result_tokens: int


@dataclass(frozen=True)
class ServerSettings:
    """All settings of a server process."""

    bind: str
    graph: str | None
    graphs: tuple[str, ...]
    cluster: str | None
    default_graph: str | None
    require_all_graphs: bool
    unauthenticated: bool
    local: bool
    ui: bool
    workers: int
    inline_reads: bool
    read_staleness_ms: int | None
    memory: int | str | None
    cache_bytes: int | None
    hide_uri: bool
    drain_s: float
    shutdown_grace_s: float
    proxies: tuple[str, ...]
    cors: CorsSettings
    tls: TlsSettings
    policy: ServerPolicySettings
    auth: AuthSettings
    audit: AuditSettings
    log: LogSettings
    mcp: McpServerSettings
    maintain: MaintainSettings
    metrics: MetricsSettings
    traces: TraceSettings
    slow_ms: int
    slow_profile: bool
    webhooks: tuple[Mapping[str, Any], ...]
    """The entries of `server.webhooks`; `server.webhooks` turns them into objects."""
    limits: ServerLimits

    @property
    def socket_path(self) -> Path | None:
        """The path of the Unix socket, or None for a TCP address."""
        return Path(self.bind.removeprefix(UNIX)) if self.bind.startswith(UNIX) else None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of a TCP address."""
        return split_address(self.bind)

    @cached_property
    def is_loopback(self) -> bool:
        """True if only this machine can connect: a Unix socket or a loopback address."""
        return self.socket_path is not None or is_loopback(self.address[0])

    @property
    def cache_bytes_max(self) -> int:
        """The bound of the caches of this process."""
        if self.cache_bytes is not None:
            return self.cache_bytes
        if self.memory is not None:
            return MemoryBudget.of(self.memory, {}).cache_bytes
        return CACHE_BYTES // self.workers

    def get(self, key: str) -> Any:
        """Return the value of a key without `server.`, such as `limits.body_bytes`."""
        value: Any = self
        for part in key.split("."):
            value = getattr(value, part)
        return value

    def with_values(self, values: Mapping[str, Any]) -> ServerSettings:
        """Return these settings with other values of some keys."""
        current = {setting.key: self.get(setting.key) for setting in SERVER_SETTINGS}
        changed: ServerSettings = _build(ServerSettings, "", {**current, **values})
        return changed


def is_loopback(host: str) -> bool:
    """True if a host is a loopback address or `localhost`."""
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def split_address(text: str, key: str = "server.bind", also: str = " or unix:PATH") -> tuple[str, int]:
    """Return host and port of `IP:PORT`; an IPv6 address is in brackets."""
    host, colon, port = text.rpartition(":")
    host = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    valid = colon and port.isascii() and port.isdigit() and int(port) <= 65535 and _is_host(host)
    if not valid:
        raise InputError(
            f"'{key}' must be IP:PORT{also}, not '{text}'",
            code="bad_setting",
            hint=f"such as 127.0.0.1:8080, [::1]:8080{', 0.0.0.0:0 or unix:/run/omnigraph.sock' if also else ''}",
        )
    return host, int(port)


def _is_host(host: str) -> bool:
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class ReadSettings:
    """Settings and what to report about them."""

    settings: ServerSettings
    warnings: tuple[str, ...] = ()


def read_settings(config: Config, environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> ReadSettings:
    """Return the settings in effect; `flags` maps keys without `server.` to the values of options."""
    warnings: list[str] = []
    values = {setting.key: _value(setting, config, environ, flags or {}, warnings) for setting in SERVER_SETTINGS}
    settings: ServerSettings = _build(ServerSettings, "", values)
    _check(settings)
    return ReadSettings(settings, tuple(warnings))


def default_settings(**values: Any) -> ServerSettings:
    """Return the built-in settings with other values of some keys; `limits__reads=1` sets `limits.reads`."""
    settings = read_settings(Config(), {}).settings
    return settings.with_values({key.replace("__", "."): value for key, value in values.items()})


def _value(
    setting: Setting, config: Config, environ: Mapping[str, str], flags: Mapping[str, Any], warnings: list[str]
) -> Any:
    """Return the value of one key: that of its option, its variables, the file, or the default."""
    given = flags.get(setting.key)
    if given is not None and given != ():
        return _valid(setting, list(given) if isinstance(given, tuple) else given, setting.flag or setting.key, Path())
    for name in (setting.variable, *setting.older_variables):
        text = environ.get(name, "").strip()
        if not text:
            continue
        value = setting.parse(text)
        if setting.lenient and name != setting.variable and setting.check(value):
            warnings.append(f"{name} must be {setting.check(value)}, not '{redact(text)}'; the default applies")
            continue
        return _valid(setting, value, name, Path())
    value = config.values.get(SERVER + setting.key)
    if value is None:
        return _default(setting)
    return _valid(setting, value, SERVER + setting.key, config.base)


def _valid(setting: Setting, value: Any, source: str, base: Path) -> Any:
    """Return a value in the form that the settings hold; raises `InputError` that names its source."""
    expected = setting.check(value)
    if expected and setting.kind == "entries":
        # The entries may contain secrets.
        raise InputError(f"'{source}' must be {expected}", code="bad_setting")
    if expected:
        raise InputError(f"'{source}' must be {expected}, not {redact(repr(value))}", code="bad_setting")
    match setting.kind:
        case "path":
            return base / Path(value).expanduser()
        case "texts":
            return tuple(value)
        case "size":
            return parse_size(value)
        case "memory":
            return parse_memory(value)
        case "seconds":
            return float(value)
        case "entries":
            return tuple(_entry(setting, entry, source, base) for entry in value)
        case _:
            return value


def _entry(setting: Setting, entry: Mapping[str, Any], source: str, base: Path) -> dict[str, Any]:
    """Return the members of one entry of a list, with the defaults of absent ones."""
    given = {key: value for key, value in entry.items() if value is not None}
    return {
        member.key: _valid(member, given[member.key], source, base) if member.key in given else member.default
        for member in setting.members
    }


def _default(setting: Setting) -> Any:
    return 2 * (os.cpu_count() or 1) if setting.key == "limits.reads" else setting.default


def _build(kind: Any, prefix: str, values: Mapping[str, Any]) -> Any:
    """Create a settings object from values by key; a nested object takes the keys below its name."""
    hints = get_type_hints(kind)
    members = {}
    for member in fields(kind):
        key = prefix + member.name
        nested = hints[member.name]
        members[member.name] = _build(nested, key + ".", values) if is_dataclass(nested) else values[key]
    return kind(**members)


def _check(settings: ServerSettings) -> None:
    """Check settings that depend on one another."""
    if settings.socket_path is None:
        split_address(settings.bind)
    if settings.metrics.bind is not None:
        split_address(settings.metrics.bind, "server.metrics.bind", "")
    tls = settings.tls
    if (tls.cert is None) != (tls.key is None):
        raise InputError("'server.tls.cert' and 'server.tls.key' must be given together", code="bad_setting")
    if tls.client_ca is not None and tls.cert is None:
        raise InputError("'server.tls.client_ca' requires 'server.tls.cert'", code="bad_setting")
    if "*" in settings.cors.origins:
        raise InputError("'server.cors.origins' must name origins, not '*'", code="bad_setting")


def keep_fixed(settings: ServerSettings, running: ServerSettings) -> ReadSettings:
    """Return new settings with the running values of keys that need a restart, and a warning for each difference."""
    fixed = [setting.key for setting in SERVER_SETTINGS if setting.restart]
    changed = [key for key in fixed if settings.get(key) != running.get(key)]
    warnings = tuple(f"'{SERVER}{key}' changed; the change takes effect at the next start" for key in changed)
    return ReadSettings(settings.with_values({key: running.get(key) for key in changed}), warnings)
