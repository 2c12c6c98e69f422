"""Base class of inputs, and the types that several inputs share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from omnigraph.errors import InputError

LIST_MAX = 1000
"""Largest `limit` of a list."""
NAME_MAX = 200
"""Longest name of a branch or tag."""
TOKEN_MAX = 4096
"""Longest cursor or page token."""
MESSAGE_MAX = 10_000
URL_MESSAGE_MAX = 1_000
"""Longest message in a query string; the URL has a limit of its own."""


class Request(Struct, kw_only=True):
    """The input of a route. A member that is null is absent."""


Branch = Annotated[
    str,
    Meta(min_length=1, max_length=NAME_MAX, description="The name of a branch; by default `main`.", examples=["main"]),
]
BranchName = Annotated[
    str, Meta(min_length=1, max_length=NAME_MAX, description="The name of a branch.", examples=["draft"])
]
TagName = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The name of a tag.", examples=["v1"])]
Point = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_MAX,
        description="A point of history: a commit id, a branch, a tag, a version or a time."
        " By default the newest commit.",
    ),
]
CommitId = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The id of a commit.")]
Message = Annotated[str, Meta(max_length=MESSAGE_MAX, description="A message that the commit records.")]
UrlMessage = Annotated[str, Meta(max_length=URL_MESSAGE_MAX, description="A message that the commit records.")]
TypeName = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The name of a node or edge type.")]
Name = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Limit = Annotated[int, Meta(ge=1, le=LIST_MAX, description="The largest number of entries of the answer.")]
After = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=TOKEN_MAX,
        description="Continues after an earlier answer: the value of its `next`.",
    ),
]
Kinds = Annotated[list[Literal["node", "edge"]], Meta(description="Only nodes, or only edges. Repeat for both.")]
Types = Annotated[list[TypeName], Meta(description="Only these types. Repeat for several.")]
Ops = Annotated[
    list[Literal["insert", "update", "delete"]], Meta(description="Only these operations. Repeat for several.")
]
Resolve = Annotated[
    Literal["ours", "theirs", "columns"] | dict[str, Any],
    Meta(
        description="Resolutions of conflicts: one for all, or an object that maps a type, a property or the id of a "
        "conflict to a resolution, to new values of properties, or to null, which deletes the row."
    ),
]


def either(first: str, one: str | None, second: str, other: str | None) -> str | None:
    """Return the value of a member that has two names; both with different values are an `InputError`."""
    if one is not None and other is not None and one != other:
        raise InputError(
            f"'{first}' and '{second}' are two names of one member and have different values",
            code="bad_member",
            hint=f"give only '{first}'",
        )
    return one if one is not None else other


def exclude(members: dict[str, object]) -> None:
    """Raise `InputError` if more than one of these members is given."""
    given = [name for name, value in members.items() if value is not None]
    if len(given) > 1:
        raise InputError(
            f"'{given[0]}' and '{given[1]}' exclude each other", code="bad_member", hint="give one of them"
        )
