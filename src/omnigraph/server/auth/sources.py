"""The sources of bearer tokens: environment, file, command, and AWS Secrets Manager.

| Source | Set by |
|---|---|
| AWS secret | `OMNIGRAPH_SERVER_BEARER_TOKENS_AWS_SECRET`; used alone |
| file | `OMNIGRAPH_SERVER_BEARER_TOKENS_FILE`, else the setting `server.auth.tokens.file` |
| literal | `OMNIGRAPH_SERVER_BEARER_TOKENS_JSON`, if there is no file |
| single token | `OMNIGRAPH_SERVER_BEARER_TOKEN`; its actor is `default` |
| command | the setting `server.auth.tokens.command` |

A blank value counts as not set.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from omnigraph.errors import InputError
from omnigraph.server.auth.aws_secret import read_secret
from omnigraph.server.auth.token_document import TokenDocument, checked_token, parse_tokens
from omnigraph.server.auth.tokens import Principal, TokenEntry, TokenSet, token_digest

PREFIX = "OMNIGRAPH_SERVER_BEARER_TOKEN"
AWS_VARIABLE = f"{PREFIX}S_AWS_SECRET"
FILE_VARIABLE = f"{PREFIX}S_FILE"
LITERAL_VARIABLE = f"{PREFIX}S_JSON"
SINGLE_VARIABLE = PREFIX
SINGLE_ACTOR = "default"
COMMAND_LIMIT_S = 10.0
_VARIABLES = (AWS_VARIABLE, FILE_VARIABLE, LITERAL_VARIABLE, SINGLE_VARIABLE)
_COMMAND = "the command of 'server.auth.tokens.command'"


class TokenOptions(Protocol):
    """The settings `server.auth.tokens`."""

    @property
    def file(self) -> Path | None:
        """The file of tokens."""

    @property
    def command(self) -> str | None:
        """The command that prints tokens."""


@dataclass(frozen=True)
class LoadedTokens:
    """The tokens of a server. `tokens` is None if no source is set; an empty set accepts no request."""

    tokens: TokenSet | None
    source: str
    """Where the tokens come from, for the log: `none`, `env-or-file`, `command` or `aws-secrets-manager`."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class TokenSources:
    """The sources that are set. `load` reads file, command and secret again at each call."""

    aws_secret: str | None = None
    file: Path | None = None
    command: str | None = None
    entries: tuple[TokenEntry, ...] | None = None
    """The tokens of variables; None if there is no such variable."""
    ignored: tuple[str, ...] = ()
    """Variables that are set and have no effect."""
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The variables of AWS: region, credentials and endpoint."""

    @classmethod
    def of(cls, environ: Mapping[str, str], options: TokenOptions) -> TokenSources:
        """Return the sources that an environment and the settings name."""
        given = {name: environ.get(name, "").strip() or None for name in _VARIABLES}
        if given[AWS_VARIABLE] is not None:
            ignored = tuple(name for name in _VARIABLES[1:] if given[name])
            aws = {name: value for name, value in environ.items() if name.startswith("AWS_")}
            return cls(given[AWS_VARIABLE], ignored=ignored, aws=aws)
        named = given[FILE_VARIABLE]
        file = Path(named) if named is not None else options.file
        ignored = (LITERAL_VARIABLE,) if file is not None and given[LITERAL_VARIABLE] else ()
        entries = _entries(given[LITERAL_VARIABLE] if file is None else None, given[SINGLE_VARIABLE])
        return cls(None, file, (options.command or "").strip() or None, entries, ignored)

    @property
    def name(self) -> str:
        """The kind of the sources, for the log."""
        if self.aws_secret is not None:
            return "aws-secrets-manager"
        environment = self.file is not None or self.entries is not None
        names = [*(["env-or-file"] if environment else []), *(["command"] if self.command else [])]
        return "+".join(names) or "none"

    @property
    def is_polled(self) -> bool:
        """True if a source does not show its changes and must be read again every `server.auth.tokens.refresh_s`."""
        return self.aws_secret is not None or self.command is not None

    def load(self) -> LoadedTokens:
        """Read and validate all tokens; a failure raises `InputError` or `MissingPackage`."""
        if self.name == "none":
            return LoadedTokens(None, self.name)
        winner = AWS_VARIABLE if self.aws_secret is not None else f"the file '{self.file}'"
        warnings = [f"{name} has no effect beside {winner}" for name in self.ignored]
        entries = list(self.entries or ())
        for document, origin in self._documents():
            entries += document.entries
            if document.plain_count and self.file is not None and origin == file_origin(self.file):
                tokens = "1 token" if document.plain_count == 1 else f"{document.plain_count} tokens"
                warnings.append(
                    f"{origin} contains {tokens} in plain text; 'omnigraph token create' stores hashes instead"
                )
        if not entries:
            warnings.append(f"no token is accepted: the tokens of {self.name} are empty")
        return LoadedTokens(TokenSet.of(entries), self.name, tuple(warnings))

    def _documents(self) -> Iterator[tuple[TokenDocument, str]]:
        """Read the sources that contain JSON; yields each document with its name for messages."""
        if self.aws_secret is not None:
            origin = f"the AWS secret '{self.aws_secret}'"
            yield parse_tokens(read_secret(self.aws_secret, self.aws), origin), origin
        if self.file is not None:
            origin = file_origin(self.file)
            yield parse_tokens(read_file(self.file), origin), origin
        if self.command is not None:
            yield parse_tokens(run_command(self.command), _COMMAND), _COMMAND


def _entries(literal: str | None, single: str | None) -> tuple[TokenEntry, ...] | None:
    """Return the tokens of the two variables that contain tokens; None if neither is set."""
    if literal is None and single is None:
        return None
    entries = list(parse_tokens(literal, LITERAL_VARIABLE).entries) if literal is not None else []
    if single is not None:
        entries.append(TokenEntry(token_digest(checked_token(single, SINGLE_VARIABLE)), Principal(SINGLE_ACTOR)))
    return tuple(entries)


def read_file(path: Path) -> str:
    """Return the text of a file of tokens."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(
            f"there is no token file '{path}'",
            code="no_such_file",
            hint=f"'omnigraph token create --actor ACTOR {path}' creates it",
        ) from None
    except OSError as error:
        raise InputError(f"the token file '{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"the token file '{path}' is not UTF-8 text: invalid byte at offset {error.start}", code="not_utf8"
        ) from None


def run_command(command: str) -> str:
    """Return what a command prints; it is run without a shell and ends after 10 s."""
    try:
        arguments = shlex.split(command)
    except ValueError as error:
        raise _command_failed(f"cannot be split into arguments: {error}") from None
    try:
        process = subprocess.Popen(  # noqa: S603 (the command is a setting of the operator)
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise _command_failed(f"cannot be started: {error.strerror}") from None
    with process:
        try:
            output, _ = process.communicate(timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            _end(process)
            raise _command_failed(f"did not end within {COMMAND_LIMIT_S:g} s") from None
    if process.returncode != 0:
        raise _command_failed(f"failed with exit code {process.returncode}")
    try:
        return output.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _command_failed(f"prints no UTF-8 text: invalid byte at offset {error.start}") from None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and the processes that it started."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def file_origin(path: Path) -> str:
    """Return the name of a file of tokens for messages."""
    return f"the token file '{path}'"


def _command_failed(reason: str) -> InputError:
    return InputError(
        f"{_COMMAND} {reason}", code="token_source_failed", hint="run the command by itself to see what it prints"
    )
