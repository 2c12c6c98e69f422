"""Problem details."""

from __future__ import annotations

from omnigraph.errors import BranchNotFound
from omnigraph.wire.errors import error_document
from omnigraph.wire.problem_details import problem_details


def test_members_of_the_error_follow_type_title_and_status() -> None:
    error = error_document(BranchNotFound("there is no branch 'x'", hint="list the branches"))
    problem = problem_details(error, 404, documentation="/docs/errors").to_json()
    assert problem == {
        "type": "/docs/errors#branch_not_found",
        "title": "branch not found",
        "status": 404,
        **error.to_json(),
    }
    assert list(problem)[:4] == ["type", "title", "status", "error"]
