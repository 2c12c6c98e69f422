"""The keys of `omnigraph.yaml` and of the operator file, and the checks of their values.

The keys of the server form one table, `SERVER_SETTINGS`. The configuration file, the `OMNIGRAPH_SERVER_…` variables,
the options of `omnigraph serve` and docs/server-config.md are made from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, assert_never

from omnigraph.fast_dataclass import dataclass
from omnigraph.suggestions import did_you_mean

FORMATS = ("table", "kv", "csv", "json", "jsonl")
LAYOUTS = ("truncate", "wrap")
CLI_POLICIES = ("ignore", "enforce")
TRUE_WORDS = ("1", "true", "yes", "on")
FALSE_WORDS = ("0", "false", "no", "off")
UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
SERVER = "server."
VARIABLE_PREFIX = "OMNIGRAPH_SERVER_"

Check = Callable[[Any], str | None]
"""Returns a description of the expected value, or None if the value is valid."""
Kind = Literal["text", "path", "texts", "switch", "count", "size", "memory", "seconds", "choice", "map", "entries"]


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) and value.strip() else "a non-empty string"


def _texts(value: Any) -> str | None:
    good = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return None if good else "a list of strings"


def _members(value: Any) -> str | None:
    return None if isinstance(value, dict) and all(isinstance(key, str) for key in value) else "a map"


def _width(value: Any) -> str | None:
    return None if type(value) is int and value >= 1 else "an integer of at least 1"


def _switch(value: Any) -> str | None:
    return None if isinstance(value, bool) else "true or false"


def _one_of(*words: str) -> Check:
    def check(value: Any) -> str | None:
        return None if value in words else f"one of {', '.join(words)}"

    return check


@dataclass(frozen=True)
class KeyTable:
    """The keys of a configuration file."""

    keys: Mapping[str, Check]
    """Dotted key to the check of its value; `*` stands for a name."""
    required: Mapping[str, tuple[str, ...]]
    """Section of named entries to the keys that each entry must have; `a|b` means exactly one of them."""
    notes: Mapping[str, str] = field(default_factory=dict)
    """Last part of an unknown key to an explanation, which the warning includes."""


@dataclass(frozen=True)
class Setting:
    """A key of the server: its kind, default, variables, option and description."""

    key: str
    """The key without `server.`; also the path of the attribute in `ServerSettings`."""
    kind: Kind
    default: Any
    description: str
    flag: str | None = None
    least: int = 0
    choices: tuple[str, ...] = ()
    older_variables: tuple[str, ...] = ()
    lenient: bool = False
    """True if an invalid value of an older variable is a warning and the default applies."""
    restart: bool = False
    """True if a change takes effect at the next start."""
    default_text: str | None = None
    required: bool = False
    """True if every entry of a list must have this member."""
    members: tuple[Setting, ...] = ()
    """The members of each entry of a list."""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return VARIABLE_PREFIX + self.key.replace(".", "_").upper()

    def check(self, value: Any) -> str | None:
        """Return a description of the expected value, or None if the value is valid."""
        match self.kind:
            case "text" | "path":
                return _text(value)
            case "texts":
                return _texts(value)
            case "switch":
                return _switch(value)
            case "choice":
                return _one_of(*self.choices)(value)
            case "count":
                return None if type(value) is int and value >= self.least else f"an integer of at least {self.least}"
            case "size":
                good = parse_size(value) is not None
                return None if good else "a number of bytes, such as 1048576 or 1 MiB"
            case "memory":
                return _memory(value)
            case "seconds":
                good = isinstance(value, int | float) and not isinstance(value, bool) and value >= self.least
                return None if good else f"a number of seconds of at least {self.least}"
            case "map":
                return _members(value)
            case "entries":
                return self._check_entries(value)
            case _:
                assert_never(self.kind)

    def _check_entries(self, value: Any) -> str | None:
        if not isinstance(value, list | tuple):
            return "a list of maps"
        for position, entry in enumerate(value, 1):
            problem = self._entry_problem(entry)
            if problem is not None:
                return f"a list of maps; in entry {position}, {problem}"
        return None

    def _entry_problem(self, entry: Any) -> str | None:
        """Return what is wrong with one entry, without the values in it."""
        if _members(entry):
            return "there is no map"
        known = {member.key: member for member in self.members}
        unknown = next((key for key in entry if key not in known), None)
        if unknown is not None:
            note = did_you_mean(unknown, known)
            return f"the key '{unknown}' is unknown" + (f" ({note})" if note else "")
        for key, member in known.items():
            if entry.get(key) is None:
                if member.required:
                    return f"the key '{key}' is missing"
            elif expected := member.check(entry[key]):
                return f"'{key}' must be {expected}"
        return None

    def parse(self, text: str) -> Any:
        """Return the value that a variable or option spells; a text of another form is returned unchanged."""
        match self.kind:
            case "texts":
                return [item.strip() for item in text.split(",") if item.strip()]
            case "switch":
                word = text.lower()
                return True if word in TRUE_WORDS else False if word in FALSE_WORDS else text
            case "count":
                return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else text
            case "seconds":
                return float(text) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) else text
            case "map" | "entries":
                return _json(text)
            case "text" | "path" | "choice" | "size" | "memory":
                return text
            case _:
                assert_never(self.kind)


def _json(text: str) -> Any:
    """Return the value of a JSON text; a text of another form is returned unchanged."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _memory(value: Any) -> str | None:
    good = parse_memory(value) is not None
    return None if good else "a number of bytes, such as 4 GiB, or a share of the memory, such as 80%"


def parse_size(value: Any) -> int | None:
    """Return a number of bytes: a non-negative integer, or a text such as '32 MiB'; None for another value."""
    if type(value) is int:
        return value if value >= 0 else None
    match = re.fullmatch(r"([0-9]{1,15})\s*([A-Za-z]*)", value.strip()) if isinstance(value, str) else None
    unit = UNITS.get(match[2].lower()) if match else None
    return int(match[1]) * unit if match and unit is not None else None


def parse_memory(value: Any) -> int | str | None:
    """Return a number of bytes, or a share of the memory such as '80%'; None for another value."""
    match = re.fullmatch(r"([0-9]{1,2}(?:\.[0-9]{1,3})?|100)\s*%", value.strip()) if isinstance(value, str) else None
    if match:
        return f"{match[1]}%" if float(match[1]) > 0 else None
    return parse_size(value) or None


MIB = UNITS["mib"]
GIB = UNITS["gib"]
SERVER_SETTINGS: tuple[Setting, ...] = (
    Setting("bind", "text", "127.0.0.1:8080", "The address: `IP:PORT` (port 0: any free port) or `unix:PATH`.",
            flag="--bind", restart=True),
    Setting("graph", "text", None, "The name of the graph to serve; with `graphs`, the default graph.",
            flag="--target", restart=True),
    Setting("graphs", "texts", (), "The names of the graphs to serve (default: every graph in storage)."),
    Setting("cluster", "text", None, "The folder or storage of a cluster, whose applied revision is served. The option "
            "also takes its name in the operator file.",
            flag="--cluster", restart=True),
    Setting("default_graph", "text", None, "The graph that paths without `/graphs/{graph_id}` use.",
            flag="--default-graph"),
    Setting("require_all_graphs", "switch", False, "Refuse to start if a graph cannot be opened.",
            flag="--require-all-graphs", older_variables=("OMNIGRAPH_REQUIRE_ALL_GRAPHS",)),
    Setting("unauthenticated", "switch", False, "Serve without tokens on any address.", flag="--unauthenticated",
            older_variables=("OMNIGRAPH_UNAUTHENTICATED",), restart=True),
    Setting("local", "switch", False, "Single-user mode: one generated token, loopback or Unix socket only.",
            flag="--local", restart=True),
    Setting("ui", "switch", True, "Serve the web explorer at `/ui/`.", flag="--ui"),
    Setting("workers", "count", 1, "The number of processes.", flag="--workers", least=1, restart=True),
    Setting("inline_reads", "switch", True, "Run short reads of local graphs without a change of thread."),
    Setting("read_staleness_ms", "count", None, "The age up to which a read may use an earlier look at the branches.",
            default_text="0 on disk, 100 on S3"),
    Setting("memory", "memory", None, "The memory budget of each process for caches, queries and builds of a graph.",
            default_text="`OMNIGRAPH_MEMORY`, else 50%", restart=True),
    Setting("cache_bytes", "size", None, "Memory of the caches of all graphs in one process.",
            default_text="half of `memory`, else 2 GiB ÷ `workers`"),
    Setting("hide_uri", "switch", False, "Omit the storage address of graphs from answers.", flag="--hide-uri"),
    Setting("drain_s", "seconds", 0.0, "The time between the stop signal and the end of accepting connections.",
            flag="--drain-s"),
    Setting("shutdown_grace_s", "seconds", 30.0, "The time that writes get to finish at shutdown.",
            older_variables=("OMNIGRAPH_SHUTDOWN_GRACE_SECS",)),
    Setting("proxies", "texts", (), "The proxies whose `X-Forwarded-*` headers are used: addresses or networks.",
            flag="--trusted-proxy", restart=True),
    Setting("cors.origins", "texts", (), "The origins whose web pages may call the server.", flag="--cors-origin"),
    Setting("tls.cert", "path", None, "The certificate chain, PEM.", flag="--tls-cert", restart=True),
    Setting("tls.key", "path", None, "The private key, PEM.", flag="--tls-key", restart=True),
    Setting("tls.client_ca", "path", None, "The authorities of client certificates, PEM; a client must present one.",
            flag="--tls-client-ca", restart=True),
    Setting("policy.file", "path", None, "The policy of the server actions `graph_list`, `audit_read` and `admin`."),
    Setting("auth.tokens.file", "path", None, "The file of tokens, JSON."),
    Setting("auth.tokens.command", "text", None, "A command that prints the tokens as JSON."),
    Setting("auth.tokens.refresh_s", "seconds", 300.0, "The interval at which a command or a secret is read again.",
            least=1),
    Setting("auth.resource", "text", None, "The public URL of the server, for the metadata of OAuth.",
            default_text="the address of the request"),
    Setting("auth.oidc", "entries", (), "Issuers of OpenID Connect whose tokens are accepted.", members=(
        Setting("issuer", "text", None, "The issuer, `https://`; equal to the claim `iss`.", required=True),
        Setting("audience", "text", None, "The audience; one of the claim `aud`.", required=True),
        Setting("jwks_url", "text", None, "The address of the keys.", default_text="from the discovery document"),
        Setting("algorithms", "texts", (), "Accepted algorithms, all asymmetric.", default_text="`RS256`, `ES256`"),
        Setting("actor_claim", "text", "sub", "The claim that names the actor; also a path, such as `a.b`."),
        Setting("actor_prefix", "text", None, "A text in front of the actor, so that it differs from other actors."),
        Setting("groups_claim", "text", None, "The claim that lists the groups of the actor."),
        Setting("groups_map", "map", None, "Group of the claim to group of the policy; other groups do not count.",
                default_text="the same names"),
        Setting("attributes", "map", None, "Attribute of the policy to claim."),
        Setting("client_id", "text", None, "The web explorer as a public client of the issuer; with it, the explorer "
                "offers to sign in."),
        Setting("scopes", "texts", (), "The scopes that the explorer requests.", default_text="`openid`"),
        Setting("allow_private", "switch", False, "Permit `http://`, and addresses of this machine and of private "
                "networks."),
    )),
    Setting("audit.dir", "path", None, "The folder of the audit log; without it there is none.", flag="--audit-dir",
            restart=True),
    Setting("audit.bucket", "text", None, "A folder or `s3://bucket/prefix` that gets copies of closed audit files.",
            restart=True),
    Setting("audit.reads", "choice", "none", "Which reads are recorded.", choices=("none", "all")),
    Setting("audit.required", "switch", False, "Refuse writes that cannot be recorded, with status 503."),
    Setting("log.level", "choice", "info", "The level of the log.", flag="--log-level",
            choices=("error", "warn", "info", "debug"), older_variables=("OMNIGRAPH_LOG",)),
    Setting("log.format", "choice", "text", "The form of log lines.", choices=("text", "json"),
            older_variables=("OMNIGRAPH_LOG_FORMAT",), restart=True),
    Setting("metrics.enabled", "switch", False, "Collect metrics; `GET /metrics` shows them to administrators.",
            restart=True),
    Setting("metrics.bind", "text", None,
            "An address `IP:PORT` that answers `GET /metrics` without a token; it implies `metrics.enabled`.",
            flag="--metrics-bind", restart=True),
    Setting("traces.enabled", "switch", False, "Make spans of requests with OpenTelemetry (extra `otel`).",
            restart=True),
    Setting("slow_ms", "count", 1_000, "A query that takes longer, in milliseconds, is logged as slow."),
    Setting("slow_profile", "switch", False, "Run a slow read once more and log its plan with actual rows and times."),
    Setting("maintain.enabled", "switch", False, "Compact and index the branch `main` of each graph in the background.",
            flag="--maintain"),
    Setting("maintain.every_s", "seconds", 60.0, "The interval at which the graphs are inspected.", least=1),
    Setting("maintain.rows_min", "count", 10_000, "Rows without an index from which a table is indexed, if they are "
            "also a tenth of its rows.", least=1),
    Setting("maintain.fragments_min", "count", 32, "Superfluous fragments from which a table is compacted.", least=2),
    Setting("webhooks", "entries", (), "Addresses that receive events of the graphs.", members=(
        Setting("name", "text", None, "Lower-case letters, digits and hyphens. It identifies the progress of the "
                "webhook, which each graph keeps.", required=True),
        Setting("url", "text", None, "The address, `https://`.", required=True),
        Setting("secret", "text", None, "The key of signatures: a variable, written `${NAME}`.", required=True),
        Setting("previous_secret", "text", None, "A second key that signs too, while receivers change to a new one."),
        Setting("events", "texts", (), "Kinds of events, such as `commit`, `branch.*`, `tag.created`.",
                default_text="all"),
        Setting("graphs", "texts", (), "Ids of graphs.", default_text="all"),
        Setting("branches", "texts", (), "Patterns of branches: `*` within a segment, `**` across segments. Events "
                "that concern no branch are always sent.", default_text="all"),
        Setting("include", "texts", (), "`diff_summary`: numbers of changed rows by type."),
        Setting("allow_private", "switch", False, "**Dangerous.** Permit `http://`, and addresses of this machine and "
                "of private networks."),
    )),
    Setting("mcp.enabled", "switch", True, "Serve the Model Context Protocol at `/mcp` (extra `mcp`)."),
    Setting("mcp.write", "switch", False, "Offer MCP tools that change the graph, on branches of the actor only."),
    Setting("mcp.adhoc", "switch", True, "Offer the MCP tool `query`; stored queries are tools of their own."),
    Setting("mcp.branches", "texts", ("mcp/<actor>/*",), "The branches that MCP tools may change: patterns, in which "
            "`<actor>` is the actor. `main` is never changed."),
    Setting("mcp.result_tokens", "count", 4_000, "The largest size of the answer of an MCP tool, in tokens of 3.5 "
            "bytes.", least=1_000),
    Setting("limits.body_bytes", "size", MIB, "Size of a request body."),
    Setting("limits.envelope_bytes", "size", 32 * MIB, "Size of the body of `/ingest` and `/load`."),
    Setting("limits.load_bytes", "size", GIB, "Size of a streamed load."),
    Setting("limits.body_memory", "size", 512 * MIB, "Memory of all JSON bodies over 64 KiB. Each counts three times "
            "its size, for its text and its values. One actor may have half of it."),
    Setting("limits.body_rate", "size", 1 << 10, "Bytes per second, over 30 seconds, below which the upload of a body "
            "ends with status 408. 0 permits any rate.", restart=True),
    Setting("limits.header_bytes", "size", 16 << 10, "Size of the request headers.", restart=True),
    Setting("limits.url_bytes", "size", 8 << 10, "Length of path and query string.", restart=True),
    Setting("limits.query_s", "seconds", 30.0, "Time of a query without `Omnigraph-Timeout-Ms`."),
    Setting("limits.query_max_s", "seconds", 300.0, "Ceiling of `Omnigraph-Timeout-Ms`."),
    Setting("limits.rows_max", "count", 5_000_000, "Rows at any point of a match.", least=1),
    Setting("limits.query_bytes", "size", GIB, "Memory of the rows of a query."),
    Setting("limits.json_rows", "count", 100_000, "Rows of a JSON answer.", least=1),
    Setting("limits.json_bytes", "size", 64 * MIB, "Size of a JSON answer."),
    Setting("limits.reads", "count", None, "Reads that run at once.", least=1, restart=True,
            default_text="2 × cores"),
    Setting("limits.reads_per_actor", "count", 32, "Reads of one actor, running and waiting.", least=1),
    Setting("limits.queue_s", "seconds", 5.0, "Time that a request waits for a free thread."),
    Setting("limits.writes_per_actor", "count", 16, "Writes of one actor in flight.",
            older_variables=("OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX",), lenient=True),
    Setting("limits.bytes_per_actor", "size", 4 * GIB, "Estimated bytes of the writes of one actor in flight.",
            older_variables=("OMNIGRAPH_PER_ACTOR_BYTES_MAX",), lenient=True),
    Setting("limits.exports", "count", 8, "Exports that run at once.", least=1, restart=True),
    Setting("limits.streams", "count", 256, "Event streams that are open at once.", least=1, restart=True),
    Setting("limits.connections", "count", 4096, "Connections that are open at once.", least=1, restart=True),
    Setting("limits.memory_high", "memory", "80%",
            "Memory of the process above which new work is refused: a size, or a share of the memory of the control "
            "group or machine, divided by `workers`. At 9/8 of it the largest query is cancelled."),
    Setting("limits.idle_s", "seconds", 75.0, "Time after which an idle connection is closed.", least=1, restart=True),
    Setting("limits.request_head_s", "seconds", 10.0, "Time in which the headers of a request must arrive.", least=1,
            restart=True),
)  # fmt: skip
"""Every key under `server:`, in the order of the documentation."""

KEYS: Mapping[str, Check] = {
    "project.name": _text,
    "graphs.*.uri": _text,
    "graphs.*.bearer_token_env": _text,
    "graphs.*.policy.file": _text,
    "graphs.*.read_only": _switch,
    "graphs.*.search.approximate": _switch,
    **{SERVER + setting.key: setting.check for setting in SERVER_SETTINGS},
    "cli.graph": _text,
    "cli.branch": _text,
    "cli.actor": _text,
    "cli.policy": _one_of(*CLI_POLICIES),
    "cli.warm": _switch,
    "cli.memory": _memory,
    "cli.output_format": _one_of(*FORMATS),
    "cli.table_max_column_width": _width,
    "cli.table_cell_layout": _one_of(*LAYOUTS),
    "query.roots": _texts,
    "auth.env_file": _text,
    "aliases.*.command": _one_of("read", "change", "query", "mutate"),
    "aliases.*.query": _text,
    "aliases.*.name": _text,
    "aliases.*.args": _texts,
    "aliases.*.graph": _text,
    "aliases.*.branch": _text,
    "aliases.*.format": _one_of(*FORMATS),
    "policy.file": _text,
    "policy.tests": _text,
}
CONFIG_KEYS = KeyTable(KEYS, {"graphs": ("uri",), "aliases": ("command", "query")})
OPERATOR_KEYS = KeyTable(
    {
        "operator.actor": _text,
        "servers.*.url": _text,
        "clusters.*.root": _text,
        "defaults.output": _one_of(*FORMATS),
        "defaults.table_max_column_width": _width,
        "defaults.table_cell_layout": _one_of(*LAYOUTS),
        "defaults.store": _text,
        "defaults.server": _text,
        "defaults.default_graph": _text,
        "profiles.*.store": _text,
        "profiles.*.server": _text,
        "profiles.*.default_graph": _text,
        "aliases.*.server": _text,
        "aliases.*.graph": _text,
        "aliases.*.query": _text,
        "aliases.*.file": _text,
        "aliases.*.name": _text,
        "aliases.*.args": _texts,
        "aliases.*.params": _members,
        "aliases.*.format": _one_of(*FORMATS),
    },
    {"servers": ("url",), "clusters": ("root",), "profiles": ("store|server",), "aliases": ("server", "query|file")},
    {"token": "the file holds no tokens; 'omnigraph login NAME' stores one"},
)
