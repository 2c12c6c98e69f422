"""The router: literals before parameters, undecoded segments, 404 and 405."""

from __future__ import annotations

import pytest

from omnigraph.server.errors import RequestFault
from omnigraph.server.router import Router


@pytest.fixture
def router() -> Router[str]:
    router: Router[str] = Router()
    router.add("GET", "/branches", "list")
    router.add("POST", "/branches/merge", "merge")
    router.add("DELETE", "/branches/{branch}", "delete")
    router.add("GET", "/branches/{branch}", "get")
    router.add("GET", "/graphs/{graph_id}/entities/{type}/{id}", "entity")
    return router


@pytest.mark.parametrize(
    ("method", "path", "target", "parameters"),
    [
        ("GET", "/branches", "list", {}),
        ("POST", "/branches/merge", "merge", {}),
        ("DELETE", "/branches/merge", "delete", {"branch": "merge"}),
        ("GET", "/branches/a%2Fb", "get", {"branch": "a%2Fb"}),
        ("HEAD", "/branches/x", "get", {"branch": "x"}),
        ("GET", "/graphs/kb/entities/Person/ana", "entity", {"graph_id": "kb", "type": "Person", "id": "ana"}),
    ],
)
def test_find_returns_target_and_undecoded_parameters(
    router: Router[str], method: str, path: str, target: str, parameters: dict[str, str]
) -> None:
    assert router.find(method, path) == (target, parameters)


@pytest.mark.parametrize("path", ["/", "", "/branch", "/branches/", "/branches/a/b", "/graphs/kb", "//branches"])
def test_an_unknown_path_is_404(router: Router[str], path: str) -> None:
    with pytest.raises(RequestFault) as caught:
        router.find("GET", path)
    assert (caught.value.status, caught.value.code) == (404, "no_such_path")


def test_a_known_path_with_another_method_is_405_and_lists_the_methods(router: Router[str]) -> None:
    with pytest.raises(RequestFault) as caught:
        router.find("PUT", "/branches/merge")
    assert caught.value.status == 405
    assert caught.value.headers == {"Allow": "DELETE, GET, HEAD, POST"}


def test_a_path_is_defined_once(router: Router[str]) -> None:
    with pytest.raises(AssertionError, match="defined twice"):
        router.add("GET", "/branches/{name}", "again")


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/runs", "POST /branches/merge"),
        ("/runs/01ABC/publish", "POST /branches/merge"),
        ("/graphs/kb/runs/01ABC", "POST /branches/merge"),
        ("/runsx", "GET /docs"),
        ("/x/runs", "GET /docs"),
    ],
)
def test_a_path_of_runs_names_branches(router: Router[str], path: str, hint: str) -> None:
    with pytest.raises(RequestFault) as caught:
        router.find("POST", path)
    assert hint in str(caught.value.hint)
