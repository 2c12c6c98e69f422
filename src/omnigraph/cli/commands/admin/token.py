"""`omnigraph token`: create, list and revoke the bearer tokens of a server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.durations import read_duration
from omnigraph.cli.io.output import print_json, remark
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph.policy.rules import PolicyKind
    from omnigraph.server.auth.token_file import ListedToken

app = command_group("Create, list and revoke the bearer tokens of a server.")

TokenFile = Annotated[str, typer.Argument(metavar="FILE", help="The file of tokens, JSON.")]


@app.command("create")
@takes_config
def create_command(
    run: Invocation,
    file: TokenFile,
    actor: Annotated[str, typer.Option("--actor", metavar="ACTOR", help="The actor of the token.")],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The name of the token; several of one actor need it.")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="WHEN", help="The end of validity: 30m, 12h, 90d, 4w, or a time (RFC 3339)."),
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="GROUP", help="A group of the actor (repeatable).")
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            "--attribute",
            metavar="NAME=VALUE",
            help="An attribute that a policy declares; VALUE is JSON, or else a text (repeatable).",
        ),
    ] = None,
    only_action: Annotated[
        list[str] | None,
        typer.Option("--only-action", metavar="ACTION", help="Limit the token to an action (repeatable)."),
    ] = None,
    only_graph: Annotated[
        list[str] | None,
        typer.Option("--only-graph", metavar="GRAPH", help="Limit the token to a graph (repeatable)."),
    ] = None,
    only_branch: Annotated[
        list[str] | None,
        typer.Option(
            "--only-branch", metavar="PATTERN", help="Limit the token to branches such as 'mcp/*' (repeatable)."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a token and print it once.

    The file gets the hash of the token and mode 0600, and keeps its other tokens; it is created if it is missing. A
    running server reads the changed file by itself.

    omnigraph token create --actor ana --expires 90d tokens.json
    """
    from omnigraph.operations.authorization.access import Only
    from omnigraph.server.auth.token_file import create_token, rfc3339
    from omnigraph.server.auth.tokens import Principal

    limits = [tuple(values) if values else None for values in (only_action, only_graph, only_branch)]
    only = Only(*limits) if any(limits) else None
    not_after = _end(expires) if expires is not None else None
    principal = Principal(actor.strip(), name, tuple(group or ()), _attributes(attribute or ()), only)
    token = create_token(Path(file), principal, not_after)
    for warning in _unknown_names(run, principal.groups, principal.attributes):
        remark("warning", warning)
    if as_json:
        from omnigraph.wire.tokens import TokenCreatedDocument

        end = rfc3339(not_after) if not_after is not None else None
        print_json(TokenCreatedDocument(file, principal.actor, name, end, token))
        return
    print(token)
    if not run.options.quiet:
        remark("note", f"the token is shown only now; {file} contains its hash")


def _unknown_names(run: Invocation, groups: Iterable[str], attributes: Iterable[str]) -> list[str]:
    """Return the warnings about groups and attributes that none of the configured policies names."""
    from omnigraph.policy.advice import warnings_of_names
    from omnigraph.policy.load import parse_policy, read_policy

    groups, attributes, found = list(groups), list(attributes), []
    if not groups and not attributes:
        return []
    for key, value in run.config.values.items():
        if not key.endswith("policy.file"):
            continue
        kind: PolicyKind = "server" if key == "server.policy.file" else "graph"
        try:
            rules = parse_policy(read_policy(run.config.resolve(value), kind), kind)
        except InputError:
            return []  # The commands for policies report it.
        found.append(warnings_of_names(rules, groups, attributes))
    return (
        [one for one in found[0] if all(one.partition(" (")[0] in str(other) for other in found[1:])] if found else []
    )


def _attributes(given: Iterable[str]) -> dict[str, Any]:
    """Return attributes written NAME=VALUE. A value that is not JSON is a text."""
    found: dict[str, Any] = {}
    for text in given:
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise UsageFault(f"'{text}' is not an attribute; write --attribute NAME=VALUE")
        if name.strip() in found:
            raise UsageFault(f"the attribute '{name.strip()}' is given twice")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


@app.command("list")
def list_command(file: TokenFile, as_json: Json = False) -> None:
    """List the tokens of a file: actor, name, end of validity, groups and limits; never the tokens."""
    from omnigraph.server.auth.token_file import list_tokens

    rows = [_description(listed) for listed in list_tokens(Path(file))]
    if as_json:
        from omnigraph.wire.tokens import TokenListDocument

        print_json(TokenListDocument.of({"path": file, "tokens": rows}))
        return
    if not rows:
        print("no tokens")
        return
    from omnigraph.text_table import record_table

    print(record_table(map(_row, rows)).rstrip("\n"))


@app.command("revoke")
def revoke_command(
    file: TokenFile,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="ACTOR", help="Revoke the tokens of this actor.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", metavar="NAME", help="Revoke the tokens of this name.")] = None,
    as_json: Json = False,
) -> None:
    """Remove tokens from a file by actor, by name, or by both.

    A running server reads the changed file by itself and then refuses the tokens.

    omnigraph token revoke --actor ana --name laptop tokens.json
    """
    from omnigraph.server.auth.token_file import revoke_tokens

    if actor is None and name is None:
        raise UsageFault("nothing says which tokens to revoke", hint="give --actor, --name, or both")
    revoked = revoke_tokens(Path(file), actor=actor, name=name)
    if as_json:
        from omnigraph.wire.tokens import TokensRevokedDocument

        rows = [{"actor": entry.principal.actor, "name": entry.principal.token_name} for entry in revoked]
        print_json(TokensRevokedDocument.of({"path": file, "revoked": rows}))
        return
    for entry in revoked:
        print(f"revoked the token of {entry.label}")


def _description(listed: ListedToken) -> dict[str, Any]:
    from omnigraph.server.auth.token_file import rfc3339
    from omnigraph.server.auth.tokens import only_members

    principal, not_after = listed.entry.principal, listed.entry.not_after
    return {
        "actor": principal.actor,
        "name": principal.token_name,
        "not_after": rfc3339(not_after) if not_after is not None else None,
        "expired": not_after is not None and not_after <= datetime.now(UTC),
        "plain": listed.is_plain,
        "groups": list(principal.groups),
        "only": only_members(principal.only) if principal.only is not None else None,
    }


def _row(description: dict[str, Any]) -> dict[str, str]:
    end = description["not_after"] or "never"
    limits = [f"{key} {', '.join(values)}" for key, values in (description["only"] or {}).items()]
    return {
        "actor": description["actor"],
        "name": description["name"] or "",
        "expires": f"{end} (expired)" if description["expired"] else end,
        "groups": ", ".join(description["groups"]),
        "only": "; ".join(limits),
        "stored": "plain text" if description["plain"] else "hash",
    }


def _end(text: str) -> datetime:
    """Return the end of validity that a duration or a time names, in whole seconds."""
    from omnigraph.wire.durations import has_unit

    text, now = text.strip(), datetime.now(UTC).replace(microsecond=0)
    try:
        end = now + read_duration(text) if has_unit(text) else datetime.fromisoformat(text)
        end = end.replace(microsecond=0)
    except (ValueError, OverflowError):
        raise _bad_end(text) from None
    if end.tzinfo is None:
        raise _bad_end(text)
    if end <= now:
        raise UsageFault(f"--expires '{text}' is not in the future", hint="give a later time")
    return end


def _bad_end(text: str) -> UsageFault:
    return UsageFault(
        f"--expires '{text}' is neither a duration nor a time with its zone",
        hint="write a duration (30m, 12h, 90d, 4w) or a time such as 2027-01-01T00:00:00Z",
    )
