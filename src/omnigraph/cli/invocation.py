"""One run of a command: its graph, actor and configuration.

A command declared with `takes_graph` accepts the address of a graph (`addresses`) and the options of every
command (`--config`, `--as`, `--yes`, `--quiet`, also before the command name), and receives them as one `Invocation`.
Configuration and graph are opened on first use.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.models import ArgumentInfo

from omnigraph.cli import completion
from omnigraph.cli.addresses import Address, GivenAddress, find_address
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.io.output import remark
from omnigraph.cli.process_settings import owns_process, want_server
from omnigraph.config import FILE_NAME, Config, find_config, with_env_file
from omnigraph.errors import GraphNotFound, InputError, OmniGraphError
from omnigraph.fast_dataclass import dataclass
from omnigraph.large_modules import importing_large_modules
from omnigraph.machine_memory import MEMORY
from omnigraph.redaction import redact, redact_uri

if TYPE_CHECKING:
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.graph import Graph
    from omnigraph.operations.authorization.access import Access

ACTOR_VARIABLE = "OMNIGRAPH_ACTOR"

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Branch = Annotated[
    str | None,
    typer.Option("--branch", "-b", metavar="NAME", help="The branch.", autocompletion=completion.branches),
]
Message = Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="The commit message.")]


@dataclass(frozen=True)
class GlobalOptions:
    """The options of every command."""

    config: str | None = None
    actor: str | None = None
    yes: bool = False
    quiet: bool = False

    def or_else(self, other: GlobalOptions) -> GlobalOptions:
        """Return these options, with missing ones taken from `other`."""
        return GlobalOptions(
            self.config or other.config, self.actor or other.actor, self.yes or other.yes, self.quiet or other.quiet
        )


Config_ = Annotated[
    str | None,
    typer.Option(
        "--config", metavar="FILE", help=f"The configuration file (default: OMNIGRAPH_CONFIG, then ./{FILE_NAME})."
    ),
]
Actor_ = Annotated[
    str | None,
    typer.Option("--as", metavar="ACTOR", help="The actor of the change (default: OMNIGRAPH_ACTOR, then 'cli.actor')."),
]
Yes_ = Annotated[bool, typer.Option("--yes", help="Confirm a destructive change of a remote graph.")]
Quiet_ = Annotated[bool, typer.Option("--quiet", help="Suppress notes and progress on stderr.")]

_GLOBAL_OPTIONS = {"config": (Config_, None), "as_": (Actor_, None), "yes": (Yes_, False), "quiet": (Quiet_, False)}
_GRAPH: Mapping[str, tuple[tuple[str, ...], str, str, Any]] = {
    "uri_option": (("--uri",), "URI", "The address of the graph.", None),
    "target": (("--target",), "NAME", f"The name of the graph in {FILE_NAME}.", completion.targets),
    "server_name": (
        ("--server",),
        "NAME|URL",
        "A server: its name in the operator file, or its address.",
        completion.servers,
    ),
    "graph_id": (("--graph", "--graph-id"), "ID", "The graph of the server.", None),
    "store": (("--store",), "URI", "The graph in storage: a folder or s3://bucket/prefix.", None),
    "profile_name": (
        ("--profile", "--profile-name"),
        "NAME",
        "The profile of the operator file that names the graph (default: OMNIGRAPH_PROFILE).",
        completion.profiles,
    ),
}
"""Parameter to the spellings, metavar, help and completion of an option that names a graph.

A command that has an option of the first spelling offers the second one only.
"""
GLOBAL_OPTION_NAMES = frozenset({*_GLOBAL_OPTIONS, *_GRAPH})
"""Parameters that the reference explains once, not at every command."""

_URI = Annotated[
    str | None,
    typer.Argument(
        metavar="URI", help="The graph: a folder, s3://bucket/prefix or the address of a server.", show_default=False
    ),
]


@dataclass
class Invocation:
    """One run of a command."""

    command: str
    options: GlobalOptions = field(default_factory=GlobalOptions)
    uri: str | None = field(default=None, repr=False)
    uri_option: str | None = field(default=None, repr=False)
    target: str | None = None
    server_name: str | None = field(default=None, repr=False)
    graph_id: str | None = None
    store: str | None = field(default=None, repr=False)
    profile_name: str | None = None

    def __post_init__(self) -> None:
        self._written: Callable[[], str] | None = None
        """Returns what is known about the writes of an interrupted command; None if it opened nothing for writing."""
        self.contacted: Address | None = None
        """The address that the command opened or asked."""
        self._connections = ExitStack()

    def close(self) -> None:
        """Close the connections to servers."""
        self._connections.close()

    def report_interrupt(self) -> None:
        """Print whether an interrupted command wrote anything."""
        remark("interrupted", self._written() if self._written is not None else _UNCHANGED)

    @cached_property
    def config(self) -> Config:
        """The configuration; its warnings are printed once."""
        config = find_config(self.options.config, os.environ)
        for warning in config.warnings:
            remark("warning", warning)
        return config

    @cached_property
    def environ(self) -> Mapping[str, str]:
        """The environment, and with lower precedence the assignments of `auth.env_file`."""
        return with_env_file(self.config, os.environ)

    @property
    def actor(self) -> str | None:
        """The actor of changes."""
        return self._actor[0]

    @property
    def actor_origin(self) -> str | None:
        """The option, variable or file that gave the actor."""
        return self._actor[1]

    @cached_property
    def _actor(self) -> tuple[str | None, str | None]:
        if self.options.actor:
            return self.options.actor, "--as"
        named = self.environ.get(ACTOR_VARIABLE, "").strip()
        if named:
            return named, ACTOR_VARIABLE
        return self.config.get("cli.actor"), self.config.origin("cli.actor")

    @property
    def given(self) -> GivenAddress:
        """The arguments and options that name a graph."""
        forms = self.target, self.server_name, self.graph_id, self.store, self.profile_name
        return GivenAddress(self.uri, self.uri_option, *forms)

    @property
    def has_address(self) -> bool:
        """True if options or configuration name a graph."""
        return find_address(self.given, self) is not None

    def address(self, fallback: str | None = None, given: GivenAddress | None = None) -> Address:
        """Return the address of the graph; `fallback` is the graph name of an alias, `given` replaces the options."""
        found = find_address(given or self.given, self, fallback)
        if found is None:
            raise InputError(
                f"'omnigraph {self.command}' requires a graph",
                code="no_graph",
                hint=f"give its address (omnigraph {self.command} … ./my.omni, or --uri), its name (--target), a "
                f"server (--server), a profile (--profile), or set 'cli.graph' in {FILE_NAME}",
            )
        if found.is_server and self.options.actor:
            raise UsageFault("--as has no effect on a server, which takes the actor from the token; omit --as")
        return found

    def branch(self, given: str | None, fallback: str | None = None) -> str:
        """Return the branch: the option, that of the alias, or the configured one (`main` by default)."""
        return given or fallback or str(self.config.get("cli.branch"))

    def storage(self, fallback: str | None = None, given: GivenAddress | None = None) -> Address:
        """Return the address of a graph in storage; raises `InputError` for a server."""
        address = self.address(fallback, given)
        if address.is_server:
            raise InputError(
                f"'omnigraph {self.command}' requires direct storage access; '{redact_uri(address.uri)}' is a server",
                code="needs_storage",
                hint="give a folder or s3://bucket/prefix",
            )
        return address

    def server(self) -> Address:
        """Return the address of a server; raises `InputError` for a graph in storage."""
        address = self.address()
        if not address.is_server:
            raise InputError(
                f"'omnigraph {self.command}' requires a server; '{redact_uri(address.uri)}' is in storage",
                code="needs_server",
                hint="give --server NAME or --server URL",
            )
        self.contacted = address
        return address

    def open(
        self,
        address: Address | None = None,
        *,
        branch: str | None = None,
        read_only: bool = False,
        spark: bool = False,
    ) -> Graph:
        """Open the graph; `spark` tells that the command may use Spark, which passes objects of pandas to pyarrow."""
        from omnigraph.versioning.model.manifest_objects import MAIN

        address, branch = address or self.address(), branch or MAIN
        self.contacted = address
        if address.is_server:
            return self._connect(address, branch, read_only=read_only)
        with importing_large_modules(freeze=True, pandas=spark or not owns_process()):
            from omnigraph.graph_open import open as open_graph
            from omnigraph.storage.lance.lance_module import load_lance

            load_lance()
        access = self.access(address)
        first = MAIN if access is not None else branch
        memory = None if self.environ.get(MEMORY, "").strip() else self.config.get("cli.memory")
        graph = open_graph(
            address.uri,
            branch=first,
            actor=self.actor,
            read_only=read_only,
            memory=memory,
            environ=self.environ,
            approximate=self._approximate(address),
        )
        if not read_only:
            self._written = functools.partial(_change_since, graph, graph.newest_version)
        if self.config.get("cli.warm"):
            want_server(address.uri, self.command)
        return graph if access is None else graph.with_access(access).on(branch)

    def _approximate(self, address: Address) -> bool:
        """Return True if the configuration permits approximate vector search in a graph that it names."""
        return address.name is not None and bool(self.config.get(f"graphs.{address.name}.search.approximate"))

    def _connect(self, address: Address, branch: str, *, read_only: bool) -> Graph:
        """Connect to a graph of a server. `RemoteGraph` has the methods of `Graph`; the contract tests compare them."""
        from omnigraph.cli.remote import connect, import_client

        with importing_large_modules(freeze=True):
            import_client()
        remote = connect(address, self, branch)
        self._connections.callback(remote.close)
        if not read_only:
            self._written = functools.partial(_sent_writes, remote)
        return cast("Graph", remote)

    @contextmanager
    def explained_errors(self) -> Iterator[None]:
        """Add hints to the errors of a server."""
        try:
            yield
        except OmniGraphError as error:
            if self.contacted is None or not self.contacted.is_server:
                raise
            from omnigraph.cli.remote import explained

            raise explained(error, self.contacted, self) from error.__cause__

    def access(self, address: Address) -> Access | None:
        """Return the rights of the actor by the policy of a graph; None unless `cli.policy` is `enforce`."""
        if self.config.get("cli.policy") != "enforce":
            return None
        from omnigraph.operations.authorization.access import Access
        from omnigraph.policy.decide import load_policy

        own = self.config.get(f"graphs.{address.name}.policy.file") if address.name is not None else None
        path = own or self.config.get("policy.file")
        if path is None:
            raise InputError(
                "'cli.policy' is 'enforce', but no policy is configured: 'policy.file' is not set",
                code="no_policy",
                hint=f"set 'policy.file' in {FILE_NAME}; 'omnigraph policy init' writes a policy",
            )
        return Access(load_policy(self.config.resolve(str(path))), self.actor)

    def open_for_queries(
        self, address: Address | None = None, *, branch: str | None = None, spark: bool = False
    ) -> Graph:
        """Open the graph for queries; on a writable local disk, their caches are kept for later processes."""
        address = address or self.address()
        if address.is_server:
            return self.open(address, branch=branch, read_only=True)
        path = Path(address.uri.removeprefix("file://"))
        keep = address.is_local and os.access(path, os.W_OK)
        return self.open(address, branch=branch, read_only=not keep, spark=spark)

    def announce(self, address: Address) -> None:
        """Print the address of a remote graph before it is written."""
        if not self.options.quiet and not address.is_local:
            remark("note", f"{self.command} writes to {redact_uri(address.uri)} ({address.kind})")

    def confirm(self, address: Address, *, as_json: bool) -> None:
        """Require confirmation of a destructive change of a remote graph."""
        if address.is_local or self.options.yes:
            return
        if not as_json and sys.stdin.isatty():
            print(
                f"{self.command} deletes data of {redact_uri(address.uri)}. Continue? [yes/no] ",
                end="",
                file=sys.stderr,
                flush=True,
            )
            if sys.stdin.readline().strip().lower() in ("y", "yes"):
                return
        raise InputError(
            f"'omnigraph {self.command}' on '{redact_uri(address.uri)}' was not confirmed; nothing was done",
            code="not_confirmed",
            hint="confirm with --yes",
        )


_UNCHANGED = "nothing was written"


def _change_since(graph: Graph, version: int) -> str:
    """Return whether a graph changed since a version."""
    if graph.newest_version == version:
        return _UNCHANGED
    return "the graph changed meanwhile; 'omnigraph commit list' shows the commits"


def _sent_writes(graph: RemoteGraph) -> str:
    """Return whether a write was sent to a server."""
    from omnigraph.client.remote_graph import has_sent_write

    if not has_sent_write(graph):
        return _UNCHANGED
    return "a write was sent, and the server may have completed it; 'omnigraph commit list' shows the commits"


def takes_graph(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options that name a graph, and the URI as its last argument."""
    return _declare(command, {"uri": (_URI, None)}, _graph_options(command))


def takes_graph_by_option(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options that name a graph; the command reads its arguments itself."""
    return _declare(command, {}, _graph_options(command))


def takes_config(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command only the options of every command."""
    return _declare(command, {}, {})


def takes_actor(command: Callable[..., None]) -> Callable[..., None]:
    """Add to a command the options of every command but `--config`, which the command has with another meaning."""
    return _declare(command, {}, {}, {name: option for name, option in _GLOBAL_OPTIONS.items() if name != "config"})


Declared = Mapping[str, tuple[Any, Any]]
_BRANCH_OPTIONS = {
    "branch merge": "--into",
    "branch create": "--from",
    "log": "--branch",
    "status": "--branch",
    "revert": "--branch",
    "shell": "--branch",
    "export": "--branch",
}
"""Command → its option that names a branch."""


def _graph_options(command: Callable[..., None]) -> Declared:
    """Return the options that name a graph, without the spellings that the command uses itself."""
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    own = {
        spelling
        for parameter in parameters
        for note in getattr(parameter.annotation, "__metadata__", ())
        # In an annotation, typer keeps the first spelling as the default.
        for spelling in (getattr(note, "default", None), *(getattr(note, "param_decls", None) or ()))
    }
    options: dict[str, tuple[Any, Any]] = {}
    for name, (spellings, metavar, help_, complete) in _GRAPH.items():
        free = [spelling for spelling in spellings if spelling not in own]
        option = typer.Option(*free, metavar=metavar, help=help_, autocompletion=complete)
        options[name] = (Annotated[str | None, option], None)
    return options


def _declare(
    command: Callable[..., None], words: Declared, options: Declared, common: Declared = _GLOBAL_OPTIONS
) -> Callable[..., None]:
    first, *own = inspect.signature(command, eval_str=True).parameters.values()
    shared = {**words, **options, **common}
    positional = {
        parameter.name
        for parameter in own
        if any(isinstance(note, ArgumentInfo) for note in getattr(parameter.annotation, "__metadata__", ()))
    }

    @functools.wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        config, as_, yes, quiet = (values.pop(name, None) for name in _GLOBAL_OPTIONS)
        root = context.find_root().obj
        given = GlobalOptions(config, as_, yes, quiet)
        merged = given.or_else(root) if isinstance(root, GlobalOptions) else given
        named = {name: values.pop(name) for name in (*words, *options)}
        path = context.command_path.partition(" ")[2]
        invocation = Invocation(path, merged, **named)
        try:
            with closing(invocation), invocation.explained_errors():
                command(invocation, **values)
        except KeyboardInterrupt:
            invocation.report_interrupt()
            raise
        except GraphNotFound as error:
            typed = [word for name, word in values.items() if name in positional and isinstance(word, str)]
            error.hint = _missing_graph_hint(path, named.get("uri"), typed) or error.hint
            raise

    parameters = [inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    parameters += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
        for name, (annotation, default) in shared.items()
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    assert first.annotation is Invocation, f"the first parameter of {command.__name__} must be an Invocation"
    return run


def _missing_graph_hint(command: str, uri: str | None, arguments: list[str]) -> str | None:
    """Return a hint if the graph is not the last argument, or if a branch was given in its place."""
    swapped = next(filter(is_address, arguments), None)
    if uri is not None and swapped is not None:
        others = " ".join([*(word for word in arguments if word is not swapped), uri])
        return redact(f"the graph comes last: omnigraph {command} {others} {swapped}")
    if command in _BRANCH_OPTIONS and is_plain_word(uri):
        return f"the last argument is the graph; to name a branch, write {_BRANCH_OPTIONS[command]} {uri}"
    return None


def is_plain_word(word: str | None) -> bool:
    """True if a word contains no character of a path or an address."""
    return word is not None and not any(sign in word for sign in (os.sep, "://", "."))


def is_address(word: object) -> bool:
    """True if a word has the form of an address, or is an existing folder."""
    return isinstance(word, str) and ("://" in word or os.sep in word or Path(word).is_dir())


def is_graph(word: str) -> bool:
    """True if a word is a URL or the folder of a graph."""
    from omnigraph.storage.files.layout import MANIFEST

    return "://" in word or (Path(word) / MANIFEST).is_dir()
