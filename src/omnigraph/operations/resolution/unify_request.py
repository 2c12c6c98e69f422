"""`unify` as a mutation: the text and the parameters of the statement for some pairs and rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from omnigraph.errors import InputError
from omnigraph.operations.requests import QueryText
from omnigraph.query.plan.ir import EDGE_RULES, UNIFY_RULES
from omnigraph.suggestions import did_you_mean, listing

UnifyRule = str | Mapping[str, Any]
"""`"ours"`, `"theirs"`, `"newest"`, `"longest"`, `"union"`, or `{"value": …}`."""
Pair = tuple[str | int, str | int]
"""The id of the node to keep, and of the node to drop."""

_TYPE = re.compile(r"[A-Z]\w*\Z", re.ASCII)
_PROPERTY = re.compile(r"[a-z_]\w*\Z", re.ASCII)


def unify_query(
    type_name: str,
    keep: str | int | None,
    drop: str | int | Sequence[str | int] | None,
    pairs: Iterable[Pair] | None,
    rules: Mapping[str, UnifyRule] | None,
    edges: Mapping[str, str] | None,
) -> QueryText:
    """Return the mutation that unifies nodes: `keep` with `drop`, or each of some pairs."""
    chosen = _pairs(keep, drop, pairs)
    params: dict[str, Any] = {"drop": [drop for _, drop in chosen], "keep": [keep for keep, _ in chosen]}
    text = f"unify {_name(type_name, _TYPE, 'node type')} $drop into $keep"
    given: list[str] = []
    for name, rule in (rules or {}).items():
        _name(name, _PROPERTY, "property")
        if isinstance(rule, Mapping):
            if set(rule) != {"value"}:
                raise InputError(f"the rule of '{name}' has other members than 'value'", hint='write {"value": …}')
            if rule["value"] is None:
                given.append(f"{name}: null")
                continue
            params[f"value_{name}"] = rule["value"]
            given.append(f"{name}: $value_{name}")
        else:
            given.append(f"{name}: {_rule(rule, UNIFY_RULES)}")
    if given:
        text += f" {{ {', '.join(given)} }}"
    if edges:
        named = [f"{_name(name, _TYPE, 'edge type')}: {_rule(rule, EDGE_RULES)}" for name, rule in edges.items()]
        text += f" edges {{ {', '.join(named)} }}"
    return QueryText.of(text, None, params)


def _pairs(
    keep: str | int | None, drop: str | int | Sequence[str | int] | None, pairs: Iterable[Pair] | None
) -> list[tuple[str, str]]:
    if pairs is not None:
        if keep is not None or drop is not None:
            raise InputError("'pairs' excludes 'keep' and 'drop'")
        found = [tuple(pair) for pair in pairs]
        if any(len(pair) != 2 for pair in found):
            raise InputError("a pair is the id of the node to keep and the id of the node to drop")
        return [(_id(pair[0]), _id(pair[1])) for pair in found]
    if keep is None or drop is None:
        raise InputError(
            "'keep' and 'drop' name the nodes to unify", hint="or give several pairs: pairs=[(keep, drop)]"
        )
    drops = [drop] if isinstance(drop, str | int) else list(drop)
    return [(_id(keep), _id(one)) for one in drops]


def _id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InputError(f"an id is a str or an int, not {type(value).__name__}")
    return str(value)


def _name(name: Any, pattern: re.Pattern[str], what: str) -> str:
    if not isinstance(name, str) or not pattern.match(name):
        raise InputError(f"'{str(name)[:80]}' is not the name of a {what}")
    return name


def _rule(rule: Any, known: Sequence[str]) -> str:
    if not isinstance(rule, str) or rule not in known:
        text = str(rule)[:80]
        raise InputError(
            f"there is no rule '{text}'", hint=did_you_mean(text, known) or f"the rules are {listing(known)}"
        )
    return rule
