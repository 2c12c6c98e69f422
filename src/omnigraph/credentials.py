"""Bearer tokens of the operator: the credentials file and the variables `OMNIGRAPH_TOKEN_<NAME>`.

`~/.omnigraph/credentials` has one section per server of the operator file:

    [reading-room]
    token = og_…

The file has mode 0600 and is replaced atomically; a file that others can read is refused. A token is sent only to its
own server: to the `url` of the section's server and to the addresses below it.
"""

from __future__ import annotations

import configparser
import io
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from omnigraph.errors import Hint, InputError
from omnigraph.file_replacement import replace_file
from omnigraph.http_address import lies_under, normalized_url
from omnigraph.operator_config import SERVER_NAME, home, read_operator, token_variable
from omnigraph.text_files import read_text_file

CREDENTIALS_FILE = "credentials"
_KEY = "token"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_TOKEN = re.compile(r"[\x21-\x7e]+")
_NO_DEFAULTS = "\n"
"""A section name that cannot occur, so that no section provides defaults for the others."""


def credentials_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the credentials file."""
    return home(environ) / CREDENTIALS_FILE


def find_token(url: str, environ: Mapping[str, str]) -> str | None:
    """Return the token of the server that an address belongs to: its variable, else the credentials file, else None.

    The server is the one of the operator file with the longest address that the given one equals or extends.
    """
    name = server_of(url, read_operator(environ).servers)
    if name is None:
        return None
    given = environ.get(token_variable(name), "").strip()
    return given or read_tokens(credentials_path(environ)).get(name)


def server_of(url: str, servers: Mapping[str, str]) -> str | None:
    """Return the name of the server that an address belongs to; `servers` maps names to normalized addresses."""
    address = normalized_url(url)
    matching = [name for name, base in servers.items() if lies_under(address, base)]
    return max(matching, key=lambda name: len(servers[name]), default=None)


def read_tokens(path: Path) -> dict[str, str]:
    """Return the tokens of a credentials file by server name; {} if the file is missing."""
    parser = _read(path)
    found = {name: parser.get(name, _KEY, fallback="").strip() for name in parser.sections()}
    return {name: check_token(token, f"[{name}] of '{path}'") for name, token in found.items() if token}


def store_token(path: Path, name: str, token: str) -> None:
    """Store the token of a server; the file and its folder are created if they are missing."""
    if SERVER_NAME.fullmatch(name) is None:
        raise InputError(
            f"'{name}' is not a server name", code="bad_server_name", hint="use letters, digits, '-' and '_'"
        )
    check_token(token, f"the token of '{name}'")
    with _changing(path) as parser:
        if not parser.has_section(name):
            parser.add_section(name)
        parser.set(name, _KEY, token)


def remove_token(path: Path, name: str) -> bool:
    """Remove the token of a server; return False if there is none."""
    if not path.exists():
        return False
    with _changing(path) as parser:
        return parser.remove_section(name)


def check_token(token: str, what: str) -> str:
    """Return a token; raises `InputError` if it cannot be sent in a header. The message does not contain the token."""
    if _TOKEN.fullmatch(token) is None:
        problem = "is empty" if not token else "contains a blank, a control character or a character outside ASCII"
        raise InputError(f"{what} {problem}", code="bad_token", hint="give the token as one word")
    return token


def _read(path: Path) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(delimiters=("=",), default_section=_NO_DEFAULTS)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    if not path.exists():
        return parser
    _check_private(path)
    try:
        parser.read_string(read_text_file(path))
    except configparser.Error as error:
        line = getattr(error, "lineno", None)
        where = f", line {line}," if line else ""
        # The message of the parser contains the line, which can be a token.
        raise InputError(
            f"'{path}'{where} is not a credentials file",
            code="bad_credentials",
            hint=Hint(
                "it has sections '[SERVER]' with 'token = …'",
                cli="it has sections '[SERVER]' with 'token = …'; 'omnigraph login SERVER' writes one",
            ),
        ) from None
    return parser


def _check_private(path: Path) -> None:
    """Refuse a file that other users can read or change."""
    mode = path.stat().st_mode
    if os.name == "posix" and mode & _OTHERS:
        raise InputError(
            f"'{path}' can be read or changed by other users (mode {stat.S_IMODE(mode):04o})",
            code="insecure_credentials",
            hint=f"run 'chmod 600 {path}'; replace the tokens if others may have read them",
        )


@contextmanager
def _changing(path: Path) -> Iterator[configparser.RawConfigParser]:
    """Read the file and replace it at the end of the block, under a lock of the folder."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = path.resolve()
        with _locked(target.parent):
            parser = _read(target)
            yield parser
            _replace(target, parser)
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            import fcntl  # noqa: PLC0415 (absent on Windows, where changes race)
        except ModuleNotFoundError:
            pass
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, parser: configparser.RawConfigParser) -> None:
    text = io.StringIO()
    parser.write(text)
    replace_file(path, text.getvalue().encode(), mode=0o600)
