"""Reading of YAML files of keys and values: validation against a table of keys, flattening to dotted keys.

An unknown key is a warning, so that a typo is noticed; a known key with an invalid value is an error. A server refuses
unknown keys that could concern it: a misspelt key must not turn off a policy or the tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from omnigraph.config_keys import KeyTable
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.redaction import redact
from omnigraph.suggestions import did_you_mean


@dataclass(frozen=True)
class UnknownKey:
    """A key of a file that does not exist."""

    parts: tuple[str, ...]
    line: int | None
    note: str | None
    """A suggestion."""

    def describe(self) -> str:
        """Return the key in words, with the suggestion."""
        return f"unknown key '{'.'.join(self.parts)}'" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class ParsedKeys:
    """The values of a file by dotted key, and its unknown keys."""

    path: Path
    values: Mapping[str, Any]
    unknown: tuple[UnknownKey, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about unknown keys."""
        return tuple(_warning(key, self.path) for key in self.unknown)


def parse_keys(text: str, path: Path, table: KeyTable) -> ParsedKeys:
    """Validate the text of a file against a table of keys."""
    document = _read_yaml(text, path)
    if "targets" in document:
        raise invalid(f"'{path}': the key 'targets' is now called 'graphs'")
    walk = _Walk(path, table)
    values = dict(walk.leaves((), document))
    unknown = _with_lines(walk.unknown, text) if walk.unknown else ()
    _check_entries(document, values, path, table, unknown)
    return ParsedKeys(path, values, unknown)


def check_known(unknown: Sequence[UnknownKey], path: Path | None, besides: frozenset[str]) -> None:
    """Raise `InputError` for the unknown keys of a file, except those in the sections `besides`."""
    found = [key for key in unknown if len(key.parts) == 1 or key.parts[0] not in besides]
    if found:
        listed = [f"line {key.line}: {key.describe()}" if key.line is not None else key.describe() for key in found]
        raise invalid(
            f"'{path}', {'; '.join(listed)}",
            "a server does not start with unknown keys: a misspelt key must not turn off a policy or the tokens",
        )


def _with_lines(unknown: Sequence[UnknownKey], text: str) -> tuple[UnknownKey, ...]:
    """Return unknown keys with their lines in a text."""
    import yaml  # noqa: PLC0415

    root = yaml.compose(text, Loader=yaml.SafeLoader)
    return tuple(replace(key, line=_line_of(key.parts, root)) for key in unknown)


def _line_of(parts: tuple[str, ...], node: Any) -> int | None:
    """Return the line of a key; None if it is not written at its place, as one of a merged map."""
    line = None
    for part in parts:
        members = node.value if isinstance(getattr(node, "value", None), list) else ()
        pairs = [pair for pair in members if isinstance(pair, tuple) and str(pair[0].value) == part]
        if not pairs:
            return None
        line, node = pairs[-1][0].start_mark.line + 1, pairs[-1][1]
    return line


def _warning(key: UnknownKey, path: Path) -> str:
    note = f" ({key.note})" if key.note else ""
    return f"unknown key '{'.'.join(key.parts)}' in {path}{note}"


def _read_yaml(text: str, path: Path) -> Mapping[Any, Any]:
    import yaml  # noqa: PLC0415

    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        raise invalid(f"'{path}'{where} is not YAML: {reason}") from None
    except RecursionError:
        raise invalid(
            f"'{path}' is nested too deeply", "a key has at most three levels, such as graphs.lab.uri"
        ) from None
    except ValueError as error:
        raise invalid(f"'{path}' is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise invalid(f"'{path}' must contain keys and values")
    return document


@dataclass
class _Walk:
    """A walk over a document that checks each value and collects unknown keys."""

    path: Path
    table: KeyTable
    unknown: list[UnknownKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._patterns = {tuple(key.split(".")): check for key, check in self.table.keys.items()}

    def leaves(self, parts: tuple[str, ...], members: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
        """Yield the dotted key and the value of each known key that has a value."""
        for name, value in members.items():
            here = (*parts, str(name))
            key = ".".join(here)
            check = next((check for pattern, check in self._patterns.items() if _fits(here, pattern)), None)
            if check is None and not self._is_section(here):
                self._add_unknown(here)
            elif value is None:
                continue
            elif check is None:
                if not isinstance(value, dict):
                    raise invalid(f"'{self.path}': '{key}' must contain keys and values, not {_shown(value)}")
                yield from self.leaves(here, value)
            else:
                expected = check(value)
                if expected:
                    raise invalid(f"'{self.path}': '{key}' must be {expected}, not {_shown(value)}")
                yield key, value

    def _is_section(self, parts: tuple[str, ...]) -> bool:
        longer = (pattern for pattern in self._patterns if len(pattern) > len(parts))
        return any(_fits(parts, pattern[: len(parts)]) for pattern in longer)

    def _add_unknown(self, parts: tuple[str, ...]) -> None:
        above, name = parts[:-1], parts[-1]
        known = {pattern[len(above)] for pattern in self._patterns if _fits(above, pattern[: len(above)])} - {"*"}
        note = self.table.notes.get(name) or did_you_mean(name, known)
        self.unknown.append(UnknownKey(parts, None, note))


def _check_entries(
    document: Mapping[Any, Any],
    values: Mapping[str, Any],
    path: Path,
    table: KeyTable,
    unknown: Sequence[UnknownKey],
) -> None:
    """Check that each named entry of a section has its required keys, and a name without a dot."""
    for section, required in table.required.items():
        for name in document.get(section) or ():
            if "." in str(name):
                raise invalid(f"'{path}': the name '{name}' under '{section}' contains a dot")
            for members in required:
                _check_present(f"{section}.{name}", members.split("|"), values, path, unknown)


def _check_present(
    entry: str, members: Sequence[str], values: Mapping[str, Any], path: Path, unknown: Sequence[UnknownKey]
) -> None:
    keys = [f"'{entry}.{member}'" for member in members]
    present = [key for key in keys if key.strip("'") in values]
    if not present:
        others = [key.describe() for key in unknown if ".".join(key.parts[:-1]) == entry]
        raise invalid(f"'{path}': {' or '.join(keys)} is missing", f"the entry has the {others[0]}" if others else None)
    if len(present) > 1:
        raise invalid(f"'{path}': {' and '.join(present)} exclude each other")


def _fits(parts: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    return len(parts) == len(pattern) and all(p in ("*", part) for part, p in zip(parts, pattern, strict=True))


def _shown(value: Any) -> str:
    return "a map" if isinstance(value, dict) else "a list" if isinstance(value, list) else redact(repr(value))


def invalid(message: str, hint: str | None = None) -> InputError:
    """Error for an invalid value of a configuration file."""
    return InputError(message, code="bad_config", hint=hint)
