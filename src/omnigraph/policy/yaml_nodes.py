"""YAML text as nodes with line numbers.

A policy is a security file, so the reader is stricter than YAML: it rejects repeated keys, anchors and aliases, tags,
deep nesting and several documents. The nodes are built from the events of the parser without recursion: hostile
nesting fails at the depth limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from omnigraph.errors import Hint, InputError, PolicyInvalid
from omnigraph.suggestions import did_you_mean

BYTES_MAX = 4 << 20
DEPTH_MAX = 8
_SHOWN_MAX = 20
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_KINDS = {"int": "an integer", "float": "a number", "bool": "a Boolean", "null": "null", "timestamp": "a date"}


@dataclass(frozen=True)
class YamlScalar:
    """A scalar; `kind` describes a value that is not a string."""

    line: int
    text: str
    kind: str = "a string"


@dataclass(frozen=True)
class YamlList:
    """A list."""

    line: int
    items: list[YamlNode] = field(default_factory=list)


@dataclass(frozen=True)
class YamlMap:
    """A map with string keys."""

    line: int
    members: dict[str, YamlNode] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """Key → its line."""


YamlNode = YamlScalar | YamlList | YamlMap


@dataclass(frozen=True)
class PolicyProblem:
    """One problem of a file: its key path, line and message, and the rule that contains it."""

    path: str
    message: str
    line: int | None = None
    rule: str | None = None
    hint: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the problem as a JSON object without empty members."""
        members = {
            "rule": self.rule,
            "path": self.path,
            "message": self.message,
            "line": self.line,
            "hint": self.hint,
        }
        return {name: value for name, value in members.items() if value is not None}

    def describe(self) -> str:
        """Return the problem as one line."""
        where = ", ".join(part for part in (f"line {self.line}" if self.line else "", self.path) if part)
        hint = f" ({self.hint})" if self.hint else ""
        return f"{where}: {self.message}{hint}" if where else f"{self.message}{hint}"


class ProblemLog:
    """Collects the problems of one file."""

    def __init__(self, source: str, kind: str) -> None:
        self.source = source
        self.kind = kind
        self.problems: list[PolicyProblem] = []

    def add(
        self, path: str, message: str, line: int | None = None, *, rule: str | None = None, hint: str | None = None
    ) -> None:
        """Add a problem."""
        self.problems.append(PolicyProblem(path, message, line, rule, hint))

    def raise_any(self) -> None:
        """Raise `PolicyInvalid` if there are problems."""
        if not self.problems:
            return
        ordered = sorted(self.problems, key=lambda problem: problem.line or 0)
        lines = [f"  {problem.describe()}" for problem in ordered[:_SHOWN_MAX]]
        if len(ordered) > _SHOWN_MAX:
            lines.append(f"  and {len(ordered) - _SHOWN_MAX} more")
        count = "1 problem" if len(ordered) == 1 else f"{len(ordered)} problems"
        text = "\n".join([f"'{self.source}' is not a valid {self.kind}: {count}", *lines])
        raise PolicyInvalid(text, ordered, hint="docs/policy.md describes the file")

    # -- typed access ----------------------------------------------------------------------------------

    def expect_map(
        self, node: YamlNode | None, path: str, known: Iterable[str], *, rule: str | None = None
    ) -> Mapping[str, YamlNode]:
        """Return the members of a map; unknown keys and other nodes are problems."""
        if not isinstance(node, YamlMap):
            self.add(path, f"must be a map, not {describe_node(node)}", _line(node), rule=rule)
            return {}
        allowed = tuple(known)
        for key in node.members:
            if key not in allowed:
                hint = did_you_mean(key, allowed) or (f"the keys are {', '.join(allowed)}" if allowed else None)
                self.add(join(path, key), f"unknown key '{key}'", node.lines[key], rule=rule, hint=hint)
        return node.members

    def each_rule(
        self, node: YamlNode | None, known: Iterable[str]
    ) -> Iterator[tuple[str, YamlMap, Mapping[str, YamlNode], str | None]]:
        """Yield the path, the map, the members and the id of each rule; a missing or repeated id is a problem."""
        lines: dict[str, int] = {}
        for index, item in enumerate(self.expect_list(node, "rules") if node is not None else []):
            path = f"rules[{index}]"
            members = self.expect_map(item, path, known)
            if not isinstance(item, YamlMap):
                continue
            id_node = members.get("id")
            rule = self.expect_text(id_node, join(path, "id")) if id_node is not None else None
            if id_node is None:
                self.add(join(path, "id"), "is missing", item.line, hint="give the rule a unique id")
            if rule is not None and rule in lines:
                message = f"rule id '{rule}' is repeated; it is also on line {lines[rule]}"
                self.add(join(path, "id"), message, item.line, rule=rule)
            lines.setdefault(rule or "", item.line)
            yield path, item, members, rule

    def expect_list(self, node: YamlNode | None, path: str, *, rule: str | None = None) -> list[YamlNode]:
        """Return the items of a list; another node is a problem."""
        if isinstance(node, YamlList):
            return node.items
        self.add(path, f"must be a list, not {describe_node(node)}", _line(node), rule=rule)
        return []

    def expect_text(self, node: YamlNode | None, path: str, *, rule: str | None = None) -> str | None:
        """Return a string that is not blank; another node is a problem."""
        if not isinstance(node, YamlScalar) or node.kind != "a string":
            hint = f'write it in quotes: "{node.text}"' if isinstance(node, YamlScalar) and node.text else None
            self.add(path, f"must be a string, not {describe_node(node)}", _line(node), rule=rule, hint=hint)
            return None
        if not node.text.strip():
            self.add(path, "must not be blank", node.line, rule=rule)
            return None
        return node.text

    def expect_root(self, root: YamlNode | None, known: Iterable[str], *, version: int = 1) -> Mapping[str, YamlNode]:
        """Return the members of a document and check its version; raises `PolicyInvalid` if it has no members."""
        self.raise_any()
        document = root if root is not None else YamlMap(1)
        members = self.expect_map(document, "", known)
        if not isinstance(document, YamlMap):
            self.raise_any()
        self._check_version(members, version)
        return members

    def _check_version(self, members: Mapping[str, YamlNode], version: int) -> None:
        node = members.get("version")
        if node is None:
            self.add("version", "is missing; expected 1 or 2", hint="add the line: version: 1")
        elif version_of(members) != version:
            found = f"{node.text} ({node.kind})" if isinstance(node, YamlScalar) else describe_node(node)
            expected = version if version_of(members) is not None else "1 or 2"
            message = f"unsupported version {found}; expected {expected}"
            hint = f"write: version: {version}" if version_of(members) is not None else "write: version: 2"
            self.add("version", message, node.line, hint=hint)


def version_of(members: Mapping[str, YamlNode]) -> int | None:
    """Return the version of a document, 1 or 2; None if it has no such version."""
    node = members.get("version")
    if isinstance(node, YamlScalar) and node.kind == "an integer" and node.text in ("1", "2"):
        return int(node.text)
    return None


def describe_node(node: YamlNode | None) -> str:
    """Return a description of a node for a message."""
    match node:
        case None:
            return "missing"
        case YamlScalar():
            return node.kind
        case YamlList():
            return "a list"
        case YamlMap():
            return "a map"


def plain_value(node: YamlNode) -> Any:
    """Return the value of a node: integers, numbers, Booleans and null by their YAML type, everything else as text."""
    match node:
        case YamlMap():
            return {key: plain_value(value) for key, value in node.members.items()}
        case YamlList():
            return [plain_value(item) for item in node.items]
        case YamlScalar(kind="an integer" | "a number" | "a Boolean" | "null"):
            return yaml.safe_load(node.text)
        case YamlScalar():
            return node.text


def join(path: str, key: str) -> str:
    """Return the path of a member of a map."""
    return f"{path}.{key}" if path else key


def _line(node: YamlNode | None) -> int | None:
    return node.line if node is not None else None


def read_policy_text(path: Path) -> str:
    """Return the text of a policy file or tests file."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"there is no file '{path}'",
            code="no_such_file",
            hint=Hint("docs/policy.md describes the file", cli="'omnigraph policy init' writes a policy and its tests"),
        ) from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{path}' is not UTF-8 text: invalid byte at offset {error.start}",
            code="not_utf8",
            hint="save it as UTF-8",
        ) from None


def parse_yaml(text: str, log: ProblemLog) -> YamlNode | None:
    """Return the root node of a text; None if the text is empty or not well formed."""
    if len(text) > BYTES_MAX:
        log.add("", f"the file has {len(text):,} characters; at most {BYTES_MAX:,} are allowed")
        return None
    try:
        return _NodeBuilder(log).build(yaml.parse(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or " ".join(str(error).split())
        log.add("", f"not YAML: {reason}", mark.line + 1 if mark else None)
    except (_Rejected, ValueError) as error:
        line = error.line if isinstance(error, _Rejected) else None
        log.add("", str(error), line)
    return None


class _Rejected(Exception):
    """The text uses a part of YAML that is not allowed."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


class _NodeBuilder:
    """Builds the nodes of one document from events."""

    def __init__(self, log: ProblemLog) -> None:
        self._log = log
        self._resolver = yaml.resolver.Resolver()
        self._open: list[YamlList | YamlMap] = []
        self._keys: list[str | None] = []
        """Per open node: the key whose value comes next, or None if a key (or a list item) comes next."""
        self._root: YamlNode | None = None

    def build(self, events: Iterable[Any]) -> YamlNode | None:
        for event in events:
            line = event.start_mark.line + 1
            match event:
                case yaml.AliasEvent():
                    raise _Rejected("anchors and aliases are not allowed; write the values out", line)
                case yaml.ScalarEvent():
                    self._reject_anchor(event, line)
                    self._scalar(event, line)
                case yaml.SequenceStartEvent():
                    self._start(event, YamlList(line))
                case yaml.MappingStartEvent():
                    self._start(event, YamlMap(line))
                case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                    self._open.pop()
                    self._keys.pop()
                case yaml.DocumentStartEvent() if self._root is not None:
                    raise _Rejected("the file contains several documents; only one is allowed", line)
                case _:
                    pass
        return self._root

    def _reject_anchor(self, event: Any, line: int) -> None:
        if event.anchor is not None:
            raise _Rejected("anchors and aliases are not allowed; write the values out", line)
        if event.tag is not None:
            raise _Rejected(f"tags are not allowed (got '{event.tag}')", line)

    def _scalar(self, event: Any, line: int) -> None:
        tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit).rpartition(":")[2]
        kind = "a string" if tag == "str" else _KINDS.get(tag, f"a YAML value of type '{tag}'")
        if self._open and isinstance(self._open[-1], YamlMap) and self._keys[-1] is None:
            self._key(event.value, line, self._open[-1])
        else:
            self._place(YamlScalar(line, event.value, kind))

    def _key(self, key: str, line: int, parent: YamlMap) -> None:
        if key in parent.lines:
            self._log.add(key, f"the key '{key}' is repeated; it is also on line {parent.lines[key]}", line)
        else:
            parent.lines[key] = line
        self._keys[-1] = key

    def _start(self, event: Any, node: YamlList | YamlMap) -> None:
        self._reject_anchor(event, node.line)
        if len(self._open) >= DEPTH_MAX:
            raise _Rejected(f"nested more than {DEPTH_MAX} levels deep", node.line)
        if self._open and isinstance(self._open[-1], YamlMap) and self._keys[-1] is None:
            raise _Rejected("a key must be a string", node.line)
        self._place(node)
        self._open.append(node)
        self._keys.append(None)

    def _place(self, node: YamlNode) -> None:
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        if isinstance(parent, YamlList):
            parent.items.append(node)
            return
        key = self._keys[-1]
        assert key is not None
        parent.members.setdefault(key, node)
        self._keys[-1] = None
