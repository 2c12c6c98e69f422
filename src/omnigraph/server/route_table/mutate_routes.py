"""Routes of changes."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import mutate
from omnigraph.wire.queries import ChangeDocument
from omnigraph.wire.requests.queries import ChangeRequest


def _change_routes() -> Iterator[Route]:
    for name, path in (("change", "/change"), ("mutate", "/mutate")):
        for conditional in (False, True):
            yield Route(
                name=f"{name}IfGraphCommit" if conditional else name,
                method="POST",
                path=f"{path}/if-graph-commit" if conditional else path,
                handler=mutate.change,
                tag="mutations",
                summary="Run a mutation query as one commit.",
                input=ChangeRequest,
                answer=ChangeDocument,
                gates=(Gate("change", branch="branch"),),
                lane="writes",
                body="json",
                writes=True,
                conditional=conditional,
                strict=False,
                statuses=(409, 412),
            )


ROUTES: tuple[Route, ...] = (*_change_routes(),)
