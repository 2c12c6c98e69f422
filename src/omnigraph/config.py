"""The configuration file `omnigraph.yaml`: reading, validation, flattening to dotted keys.

Values are validated against one table of keys. An unknown key is ignored with a warning, so that a typo is noticed; a
server refuses it. A known key with an invalid value is an error. Relative paths are relative to the folder of the file.
Parent folders are not searched.

The operator file, `~/.omnigraph/config.yaml`, has lower precedence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from omnigraph.config_keys import CONFIG_KEYS
from omnigraph.config_parser import UnknownKey, parse_keys
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.operator_config import OPERATOR_FILE, OperatorConfig, read_operator
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.text_files import read_text_file

FILE_NAME = "omnigraph.yaml"
VARIABLE = "OMNIGRAPH_CONFIG"
DEFAULTS: Mapping[str, Any] = {
    "cli.branch": "main",
    "cli.output_format": "table",
    "cli.table_max_column_width": 80,
    "cli.table_cell_layout": "truncate",
}

_OPERATOR = {
    "cli.actor": "operator.actor",
    "cli.output_format": "defaults.output",
    "cli.table_max_column_width": "defaults.table_max_column_width",
    "cli.table_cell_layout": "defaults.table_cell_layout",
}
"""Key of the configuration → corresponding key of the operator file."""
OPERATOR_EQUIVALENTS = frozenset(_OPERATOR.values())
"""Keys of the operator file that a key of the configuration overrides."""


@dataclass(frozen=True)
class Alias:
    """A named query of the configuration."""

    name: str
    changes: bool
    query: str
    query_name: str | None = None
    args: tuple[str, ...] = ()
    graph: str | None = None
    branch: str | None = None
    format: str | None = None

    @property
    def command(self) -> str:
        """The command that runs the alias."""
        return "change" if self.changes else "read"


@dataclass(frozen=True)
class Config:
    """The values of a configuration; empty if there is no file."""

    path: Path | None = None
    base: Path = field(default_factory=Path)
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    warnings: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()
    """The unknown keys of the file, of which the warnings tell."""
    operator: OperatorConfig = field(default_factory=lambda: OperatorConfig(Path(OPERATOR_FILE)))

    def get(self, key: str) -> Any:
        """Return the value of a key, else that of the operator file, else the default, else None."""
        if key in self.values:
            return self.values[key]
        return self._operator_value(key) if self._operator_value(key) is not None else DEFAULTS.get(key)

    def _operator_value(self, key: str) -> Any:
        return self.operator.values.get(_OPERATOR.get(key, ""))

    def origin(self, key: str) -> str | None:
        """Return the file that sets a key, or 'built in'."""
        if key in self.values:
            return str(self.path)
        if self._operator_value(key) is not None:
            return str(self.operator.path)
        return "built in" if key in DEFAULTS else None

    @property
    def graphs(self) -> dict[str, str]:
        """The named graphs and their addresses."""
        return {key.split(".")[1]: value for key, value in self.values.items() if _is(key, "graphs", "uri")}

    @property
    def aliases(self) -> tuple[str, ...]:
        """The names of the aliases."""
        return tuple(key.split(".")[1] for key in self.values if _is(key, "aliases", "command"))

    def get_graph(self, name: str) -> str:
        """Return the address of a named graph; raises `InputError` for an unknown name."""
        graphs = self.graphs
        if name not in graphs:
            where = f"'{self.path}'" if self.path else f"no configuration file ({FILE_NAME}) was found"
            raise InputError(
                f"there is no graph named '{name}'; defined: {listing(graphs) or 'none'} ({where})",
                code="unknown_target",
                hint=did_you_mean(name, graphs) or f"define it under 'graphs:' in {FILE_NAME}, or give the address",
            )
        uri = graphs[name]
        return uri if "://" in uri else str(self.resolve(uri)) if self.base != Path() else uri

    def get_alias(self, name: str) -> Alias:
        """Return an alias by name; raises `InputError` for an unknown name."""
        if name not in self.aliases:
            raise InputError(
                f"there is no alias '{name}'; defined: {listing(self.aliases) or 'none'}",
                code="unknown_alias",
                hint=did_you_mean(name, self.aliases) or f"define it under 'aliases:' in {FILE_NAME}",
            )

        def value(member: str) -> Any:
            return self.values.get(f"aliases.{name}.{member}")

        return Alias(
            name=name,
            changes=value("command") in ("change", "mutate"),
            query=value("query"),
            query_name=value("name"),
            args=tuple(value("args") or ()),
            graph=value("graph"),
            branch=value("branch"),
            format=value("format"),
        )

    def resolve(self, path: str) -> Path:
        """Resolve a path relative to the folder of the file."""
        return self.base / Path(path).expanduser()

    def find_query(self, path: str) -> Path:
        """Find a query file: next to the configuration, in `query.roots`, or in the working directory."""
        if Path(path).is_absolute():
            return Path(path)
        roots = [self.base, *(self.resolve(root) for root in self.get("query.roots") or ()), Path()]
        folders = list(dict.fromkeys(roots))
        for folder in folders:
            if (folder / path).is_file():
                return folder / path
        tried = ", ".join(f"'{folder}'" for folder in folders)
        present = {found.name for folder in folders for found in folder.glob("*.gq")}
        raise InputError(
            f"there is no query file '{path}'; looked in {tried}",
            code="no_such_file",
            hint=did_you_mean(Path(path).name, present),
        )


def find_config(explicit: str | None, environ: Mapping[str, str]) -> Config:
    """Return the configuration in effect: the given file, that of `OMNIGRAPH_CONFIG`, `./omnigraph.yaml`, or none."""
    path, named = config_path(explicit, environ)
    config = read_config(path) if named or path.is_file() else Config()
    operator = read_operator(environ)
    return replace(config, operator=operator, warnings=(*config.warnings, *operator.warnings))


def config_path(explicit: str | None, environ: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the path of the configuration file, and whether it was named; only a named file must exist."""
    named = explicit if explicit is not None else environ.get(VARIABLE, "").strip() or None
    return (Path(named), True) if named is not None else (Path(FILE_NAME), False)


def read_config(path: Path) -> Config:
    """Read and validate a configuration file."""
    if path.is_dir():
        kind, hint = "a folder", f"give {path / FILE_NAME}"
        if (path / "cluster.yaml").is_file():
            kind, hint = "the folder of a cluster", f"only the commands 'cluster' take it; give a file {FILE_NAME}"
        raise InputError(f"'{path}' is {kind}, not a configuration file", code="no_such_file", hint=hint)
    return parse_config(read_text_file(path), path)


def parse_config(text: str, path: Path) -> Config:
    """Validate the text of a configuration file."""
    parsed = parse_keys(text, path, CONFIG_KEYS)
    return Config(path, path.parent, parsed.values, parsed.warnings, parsed.unknown)


def _is(key: str, section: str, member: str) -> bool:
    parts = key.split(".")
    return len(parts) == 3 and parts[0] == section and parts[2] == member


def with_env_file(config: Config, environ: Mapping[str, str]) -> Mapping[str, str]:
    """Return an environment, and with lower precedence the assignments of `auth.env_file`."""
    named = config.get("auth.env_file")
    return {**read_env_file(config.resolve(named)), **environ} if named else environ


def read_env_file(path: Path) -> dict[str, str]:
    """Return the assignments of a dotenv file, without escapes or interpolation; {} if the file is missing."""
    if not path.is_file():
        return {}
    found: dict[str, str] = {}
    for line in read_text_file(path).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        name, value = name.strip(), value.strip()
        if equals and name:
            if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            found[name] = value
    return found
