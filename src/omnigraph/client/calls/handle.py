"""`CallHandle`: the branch of a remote graph, and the requests that its calls share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.client.local_only import local_parameter
from omnigraph.client.messages import JSON, Request, json_body, path_of, query_of
from omnigraph.graph_history import read_range
from omnigraph.policy.rules import branch_name
from omnigraph.versioning.model.ids import new_ulid, system_clock
from omnigraph.versioning.model.point_text import point_text
from omnigraph.wire.requests.request import Request as Input

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.versioning.write.repository import At


class CallHandle:
    """The branch of a handle, and the actor of its token."""

    def __init__(self, url: str, branch: str, actor: str | None = None) -> None:
        self.url = url
        self.branch = branch
        self.actor = actor

    def _branch(self, branch: str | None) -> str:
        """Return the branch of a call: the given one, else that of the handle."""
        return branch_name(branch or self.branch)

    def _branch_of(self, *points: At) -> str | None:
        """Return the branch of the handle if one of the points is a version, a time or absent; a text needs none."""
        return None if all(isinstance(point, str) and is_complete(point) for point in points) else self.branch

    def _get(
        self,
        *segments: str | int,
        input: Input | None = None,
        accept: str = JSON,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        **options: Any,
    ) -> Request:
        """Return a request that reads; `input` becomes the query string."""
        parameters = query_of(input) if input is not None else {}
        path = path_of(*segments)
        return Request(
            method="GET", path=path, parameters=parameters, accept=accept, timeout=timeout, cancel=cancel, **options
        )

    def _post(
        self,
        *segments: str | int,
        input: Input,
        accept: str = JSON,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        **options: Any,
    ) -> Request:
        """Return a request whose body is the input as JSON."""
        body = json_body(input)
        path = path_of(*segments)
        return Request(method="POST", path=path, body=body, accept=accept, timeout=timeout, cancel=cancel, **options)

    def _write(
        self,
        *segments: str | int,
        input: Input | None = None,
        method: str = "POST",
        key: str | None = None,
        if_commit: str | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        wait: bool = False,
        **options: Any,
    ) -> Request:
        """Return a request that writes, under a given or a new idempotency key.

        With `wait`, the server answers at the end of work that otherwise continues after its answer.
        """
        in_body = input is not None and method != "DELETE"
        return Request(
            method=method,  # type: ignore[arg-type]
            path=path_of(*segments),
            parameters=query_of(input) if input is not None and not in_body else {},
            body=json_body(input) if input is not None and in_body else None,
            headers={**if_match(if_commit), **({"Prefer": "wait"} if wait else {})},
            key=new_key() if key is None else key,
            timeout=timeout,
            cancel=cancel,
            **options,
        )

    def _check_actor(self, method: str, actor: str | None) -> None:
        """Refuse a call in the name of another actor than that of the token."""
        if actor is not None and actor != self.actor:
            raise local_parameter(method, "actor")


def is_complete(text: str) -> bool:
    """Return True if a text names its points; a range such as `..draft` omits one."""
    found = read_range(text)
    return found is None or bool(found.first and found.last)


def if_match(commit_id: str | None) -> Mapping[str, str]:
    """Return the header that names the commit on which a write depends."""
    return {} if commit_id is None else {"If-Match": f'"{commit_id}"'}


def new_key() -> str:
    """Return a new idempotency key of 26 characters."""
    return new_ulid(system_clock())


def at_text(at: At) -> str | None:
    """Return the text of a point of history in a request; None for the newest commit."""
    return None if at is None else point_text(at)
