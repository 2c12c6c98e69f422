"""Construction of the state of a server from configuration, variables, options, tokens, graphs and policies.

The order of the steps is that of the start: configuration, tokens, mode, graphs, policies, audit log. The first failure
raises; nothing of the running state was changed by then.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.config import Config, config_path, find_config, with_env_file
from omnigraph.config_keys import SERVER_SETTINGS
from omnigraph.config_parser import check_known
from omnigraph.errors import InputError, StorageError
from omnigraph.machine_memory import MEMORY
from omnigraph.operations.file_copies import FileCopies
from omnigraph.server.audit import AuditLog
from omnigraph.server.auth.authenticator import Authenticator
from omnigraph.server.auth.modes import LOCAL_ACTOR, start_mode
from omnigraph.server.auth.oidc.issuers import check_resource, read_issuers
from omnigraph.server.auth.oidc.json_web_tokens import JsonWebTokens
from omnigraph.server.auth.sources import LoadedTokens, TokenSources
from omnigraph.server.auth.tokens import Principal, TokenEntry, TokenSet, token_digest
from omnigraph.server.deployment.cluster_source import open_cluster
from omnigraph.server.deployment.graphs import (
    DEFAULT_ID,
    GraphList,
    ServedGraph,
    folder_id,
    is_graph_id,
    list_graphs,
    open_graphs,
)
from omnigraph.server.deployment.policies import load_policies
from omnigraph.server.deployment.settings import ReadSettings, ServerSettings, keep_fixed, read_settings
from omnigraph.server.deployment.state import Digests, ServerState
from omnigraph.server.deployment.watched_files import WatchedFiles
from omnigraph.server.process.certificates import check_certificate
from omnigraph.server.webhooks.targets import read_webhooks

_OF_COMMANDS = frozenset({"aliases", "cli", "project", "query"})
"""Sections of the configuration that do not concern a server; their unknown keys are warnings."""


@dataclass(frozen=True)
class StartOptions:
    """The arguments of the program; a worker process receives the same ones."""

    uris: tuple[str, ...] = ()
    config: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Keys without `server.` and the values of their options."""
    local_token: str | None = field(default=None, repr=False)
    """The generated token of single-user mode."""
    environ: Mapping[str, str] | None = field(default=None, repr=False)
    """The environment; None means that of the process."""
    local_actor: str = LOCAL_ACTOR
    """The actor of the generated token."""
    private: bool = False
    """True if the process belongs to one command: the settings of servers in file and environment do not apply."""
    read_only: bool = False
    """True if no graph may be changed."""


def build_state(options: StartOptions, files: WatchedFiles, running: ServerState | None = None) -> ServerState:
    """Read everything and return a new state; what did not change is taken from the running one."""
    config, environ = _read_config(options, files)
    read = _read_settings(options, config, environ)
    warnings = [*config.warnings, *read.warnings]
    settings = read.settings
    if running is not None:
        kept = keep_fixed(settings, running.settings)
        settings, warnings = kept.settings, [*warnings, *kept.warnings]
    cluster = open_cluster(settings, options.uris, environ, running.cluster if running is not None else None)
    if cluster is None:
        listed = _list_graphs(options, config, settings)
    else:
        listed, settings = cluster.graph_list(settings.default_graph), cluster.with_policy(settings)
    check_certificate(settings.tls, files)
    sources = TokenSources.of(environ, settings.auth.tokens)
    files.note(sources.file)
    loaded = _local_tokens(options) if options.local_token is not None else sources.load()
    has_policy = any(entry.policy_file is not None for entry in listed.entries) or settings.policy.file is not None
    authenticator = _authenticator(options, settings, loaded, running)
    mode = start_mode(
        has_tokens=authenticator is not None,
        has_policy=has_policy,
        bind=settings.bind,
        is_loopback=settings.is_loopback,
        unauthenticated=settings.unauthenticated,
        local=settings.local,
        running=running.mode if running is not None else None,
    )
    if settings.memory is not None:
        environ = {**environ, MEMORY: str(settings.memory)}
    graphs = open_graphs(listed.entries, environ, running.graphs if running is not None else None)
    _check_graphs(graphs, settings)
    known = running.policies if running is not None else None
    _check_tests_file(config)
    policies = load_policies(listed.entries, settings.policy.file, files, known, graphs)
    return ServerState(
        settings=settings,
        tokens=loaded.tokens,
        authenticator=authenticator,
        token_source=loaded.source,
        mode=mode,
        graphs={
            graph_id: replace(graph, policy=policies.graphs[graph_id].policy if graph_id in policies.graphs else None)
            for graph_id, graph in graphs.items()
        },
        graph_list=listed,
        policies=policies,
        audit=running.audit if running is not None else _open_audit(settings, environ),
        digests=Digests(
            _config_digest(settings, listed), policies.digest, loaded.tokens.digest if loaded.tokens else None
        ),
        sources=sources,
        webhooks=read_webhooks(settings.webhooks, environ, [entry.graph_id for entry in listed.entries]),
        warnings=(*warnings, *loaded.warnings),
        cluster=cluster,
    )


def read_start_settings(options: StartOptions) -> ServerSettings:
    """Return the settings that decide how the process starts."""
    config, environ = _read_config(options, WatchedFiles())
    return _read_settings(options, config, environ).settings


def _read_settings(options: StartOptions, config: Config, environ: Mapping[str, str]) -> ReadSettings:
    if options.private:
        return read_settings(Config(), {}, options.flags)
    return read_settings(config, environ, options.flags)


def _read_config(options: StartOptions, files: WatchedFiles) -> tuple[Config, Mapping[str, str]]:
    """Return the configuration, and the environment with the assignments of `auth.env_file` below it."""
    environ = os.environ if options.environ is None else options.environ
    files.note(config_path(options.config, environ)[0])
    config = find_config(options.config, environ)
    if not options.private:
        check_known(config.unknown, config.path, _OF_COMMANDS)
    named = config.get("auth.env_file")
    files.note(config.resolve(named) if named else None)
    return config, with_env_file(config, environ)


def _list_graphs(options: StartOptions, config: Config, settings: ServerSettings) -> GraphList:
    """Return the graphs to serve; the only graph of a private process has the name of its folder as its id."""
    listed = list_graphs(config, settings, options.uris)
    if options.private and listed.default == DEFAULT_ID:
        named = folder_id(listed.entries[0].uri)
        entry = replace(listed.entries[0], graph_id=named if is_graph_id(named) else DEFAULT_ID)
        listed = replace(listed, entries=(entry,), default=entry.graph_id)
    if options.read_only:
        listed = replace(listed, entries=tuple(replace(entry, read_only=True) for entry in listed.entries))
    return listed


def _local_tokens(options: StartOptions) -> LoadedTokens:
    assert options.local_token is not None
    entry = TokenEntry(token_digest(options.local_token), Principal(options.local_actor))
    return LoadedTokens(TokenSet.of([entry]), "generated")


def _authenticator(
    options: StartOptions, settings: ServerSettings, loaded: LoadedTokens, running: ServerState | None
) -> Authenticator | None:
    """Return what finds the callers of requests; None without tokens and issuers. Known keys of issuers are kept."""
    check_resource(settings.auth.resource)
    issuers = read_issuers(settings.auth.oidc) if options.local_token is None else ()
    known = running.authenticator.json_web_tokens if running is not None and running.authenticator else None
    issued = JsonWebTokens(issuers, known) if issuers else None
    return None if loaded.tokens is None and issued is None else Authenticator(loaded.tokens, issued)


def _check_graphs(graphs: Mapping[str, ServedGraph], settings: ServerSettings) -> None:
    """Refuse to serve without a readable graph, or with a quarantined one if all are required."""
    failed = [graph for graph in graphs.values() if graph.failure is not None]
    if not failed or (len(failed) < len(graphs) and not settings.require_all_graphs):
        return
    first = failed[0]
    assert first.failure is not None
    others = f" ({len(failed)} of {len(graphs)} graphs cannot be opened)" if len(graphs) > 1 else ""
    raise StorageError(
        f"graph '{first.graph_id}' cannot be opened: {first.failure.message}{others}", code=first.failure.code
    )


def _check_tests_file(config: Config) -> None:
    """Refuse a configured tests file that does not exist: the policy would be in force without its tests."""
    named = config.get("policy.tests")
    if named is not None and not config.resolve(named).is_file():
        raise InputError(
            f"'policy.tests' names '{config.resolve(named)}', and there is no such file",
            code="no_such_file",
            hint="correct 'policy.tests', or remove it: the default is policy.tests.yaml beside the policy",
        )


def _open_audit(settings: ServerSettings, environ: Mapping[str, str]) -> AuditLog | None:
    audit = settings.audit
    if audit.dir is None:
        return None
    copies = FileCopies(audit.bucket, environ) if audit.bucket is not None else None
    reads: Literal["none", "all"] = "all" if audit.reads == "all" else "none"
    return AuditLog(audit.dir, required=audit.required, reads=reads, copies=copies)


def _config_digest(settings: ServerSettings, listed: GraphList) -> str:
    values = {setting.key: str(settings.get(setting.key)) for setting in SERVER_SETTINGS}
    graphs = [
        [entry.graph_id, entry.uri, str(entry.policy_file), entry.read_only, entry.approximate]
        for entry in listed.entries
    ]
    return hashlib.sha256(json.dumps([values, graphs], sort_keys=True).encode()).hexdigest()
