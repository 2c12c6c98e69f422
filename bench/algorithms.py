"""Graph algorithms beside networkx and rustworkx: `python -m bench.algorithms [--nodes N] [--edges N]`.

Each library gets its own graph, built before the clock starts. A run beyond the limit is shown as such. A ratio is the
time of the library divided by ours.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import networkx
import numpy as np

from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.algorithms.registry import ALGORITHMS, check_parameters

_SAMPLES = 16


def random_edges(nodes: int, edges: int) -> EdgeList:
    """Return a graph with groups and a few nodes of high degree."""
    random = np.random.default_rng(5)
    sources = random.integers(0, nodes, edges)
    near = (sources // 100) * 100 + random.integers(0, 100, edges)
    far = (nodes * random.power(0.3, edges)).astype(np.int64)
    targets = np.where(random.random(edges) < 0.7, np.minimum(near, nodes - 1), far)
    return EdgeList(nodes, sources, targets)


def acyclic(edges: EdgeList) -> EdgeList:
    """Return the edges that lead to a larger number, and the others reversed."""
    low, high = np.minimum(edges.sources, edges.targets), np.maximum(edges.sources, edges.targets)
    kept = low < high
    return EdgeList(edges.count, low[kept], high[kept])


def _networkx(kind: Any, edges: EdgeList) -> Any:
    graph = kind()
    graph.add_nodes_from(range(edges.count))
    graph.add_edges_from(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    if kind is networkx.Graph:
        graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    return graph


def _few(graph: Any) -> list[int]:
    return list(range(0, graph.number_of_nodes(), max(1, graph.number_of_nodes() // _SAMPLES)))[:_SAMPLES]


PEERS: dict[str, tuple[Any, Callable[[Any], Any]]] = {
    "pagerank": (networkx.DiGraph, lambda g: networkx.pagerank(g, tol=1e-9 / g.number_of_nodes(), max_iter=100)),
    "components": (networkx.Graph, lambda g: list(networkx.connected_components(g))),
    "degrees": (networkx.DiGraph, lambda g: (dict(g.in_degree()), dict(g.out_degree()))),
    "betweenness": (networkx.DiGraph, lambda g: networkx.betweenness_centrality(g, k=_SAMPLES, seed=1)),
    "closeness": (networkx.DiGraph, lambda g: [networkx.closeness_centrality(g, node) for node in _few(g)]),
    "communities": (networkx.Graph, lambda g: networkx.community.louvain_communities(g, seed=1)),
    "label_propagation": (networkx.Graph, lambda g: list(networkx.community.asyn_lpa_communities(g, seed=1))),
    "cores": (networkx.Graph, networkx.core_number),
    "topological_order": (networkx.DiGraph, lambda g: list(networkx.topological_sort(g))),
    "spanning_tree": (networkx.Graph, networkx.minimum_spanning_tree),
}


def _rustworkx(edges: EdgeList, name: str) -> Callable[[], Any] | None:
    import rustworkx  # noqa: PLC0415 (a peer)

    pairs = list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True))
    graph = rustworkx.PyDiGraph()
    graph.add_nodes_from(range(edges.count))
    graph.add_edges_from_no_data(pairs)
    both = graph.to_undirected(multigraph=False)
    calls: dict[str, Callable[[], Any]] = {
        "pagerank": lambda: rustworkx.pagerank(graph, tol=1e-9 / edges.count),
        "components": lambda: rustworkx.connected_components(both),
        "cores": lambda: rustworkx.core_number(both),
        "topological_order": lambda: rustworkx.topological_sort(graph),
        "spanning_tree": lambda: rustworkx.minimum_spanning_tree(both),
    }
    return calls.get(name)


def _measure(name: str, library: str, nodes: int, count: int, answer: Any) -> None:
    edges = random_edges(nodes, count)
    edges = acyclic(edges) if name == "topological_order" else edges
    call: Callable[[], Any] | None
    if library == "networkx":
        kind, run = PEERS[name]
        graph = _networkx(kind, edges)
        call = lambda: run(graph)  # noqa: E731
    elif library == "rustworkx":
        call = _rustworkx(edges, name)
    else:
        given = {"samples": _SAMPLES} if "samples" in ALGORITHMS[name].parameters else {}
        parameters = check_parameters(name, given)
        call = lambda: ALGORITHMS[name].run(edges, parameters)  # noqa: E731
    if call is None:
        answer.put(None)
        return
    answer.put("ready")
    started = time.perf_counter()
    call()
    answer.put(time.perf_counter() - started)


def seconds(name: str, library: str, nodes: int, edges: int, limit: float) -> float | str | None:
    """Return the run time of an algorithm in a new process; None if the library does not have it."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_measure, args=(name, library, nodes, edges, answer))
    process.start()
    try:
        first = answer.get(timeout=300)
        return None if first is None else float(answer.get(timeout=limit))
    except Exception:
        return f"> {limit:.0f}"
    finally:
        process.kill()
        process.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--limit", type=float, default=60, help="seconds per algorithm and library")
    parser.add_argument("--only", default="", help="algorithms, separated by commas")
    asked = parser.parse_args()
    print(f"{asked.nodes:,} nodes, {asked.edges:,} edges; betweenness and closeness from {_SAMPLES} nodes")
    print(f"{'algorithm':20} {'ours s':>9} {'networkx s':>11} {'ratio':>8} {'rustworkx s':>12} {'ratio':>8}")
    for name in asked.only.split(",") if asked.only else ALGORITHMS:
        ours = seconds(name, "omnigraph", asked.nodes, asked.edges, asked.limit)
        line = f"{name:20} {_shown(ours):>9}"
        for library, width in (("networkx", 11), ("rustworkx", 12)):
            known = library == "rustworkx" or name in PEERS
            theirs = seconds(name, library, asked.nodes, asked.edges, asked.limit) if known else None
            ratio = f"{theirs / ours:.2f}" if isinstance(ours, float) and isinstance(theirs, float) else "-"
            line += f" {_shown(theirs):>{width}} {ratio:>8}"
        print(line, flush=True)


def _shown(value: float | str | None) -> str:
    return "-" if value is None else value if isinstance(value, str) else f"{value:.3f}"


if __name__ == "__main__":
    main()
