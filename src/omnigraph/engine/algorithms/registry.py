"""The list of algorithms: result columns, parameters with their limits, and the function that runs each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from omnigraph.engine.algorithms.centrality import betweenness, closeness
from omnigraph.engine.algorithms.communities import label_propagation, louvain
from omnigraph.engine.algorithms.components import components
from omnigraph.engine.algorithms.cores import core_numbers
from omnigraph.engine.algorithms.degrees import degrees
from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.algorithms.embeddings import walk_embeddings
from omnigraph.engine.algorithms.orders import topological_order
from omnigraph.engine.algorithms.pagerank import pagerank
from omnigraph.engine.algorithms.similarity import SimilarPairs, similar_nodes
from omnigraph.engine.algorithms.trees import spanning_forest
from omnigraph.errors import InputError
from omnigraph.suggestions import did_you_mean

Subject = Literal["nodes", "edges", "pairs"]
Parameters = Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """The values of an algorithm, one array per result column, and figures about the run.

    The values belong to the nodes or the edges, in order of their numbers. Those of pairs begin with the numbers of
    both nodes.
    """

    values: tuple[np.ndarray[Any, Any], ...]
    stats: Mapping[str, int | float] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """A parameter: its type, its default, and the values that it accepts."""

    default: Any
    least: float | None = None
    below: float | None = None
    """Values are smaller than this."""
    choices: tuple[str, ...] = ()
    about: str = ""

    def checked(self, name: str, value: Any) -> Any:
        """Return a value that the parameter accepts; others raise `InputError`."""
        if self.choices:
            if value not in self.choices:
                raise InputError(f"'{name}' cannot be {value!r}", hint=f"use {' or '.join(self.choices)}")
            return value
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise InputError(f"'{name}' must be true or false, not {value!r}")
            return value
        if isinstance(self.default, tuple):
            return tuple(self._number(name, one, whole=False) for one in _items(name, value))
        return self._number(name, value, whole=isinstance(self.default, int))

    def _number(self, name: str, value: Any, *, whole: bool) -> int | float:
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or value != value:
            raise InputError(f"'{name}' must be a {'whole number' if whole else 'number'}, not {value!r}")
        if (self.least is not None and value < self.least) or (self.below is not None and value >= self.below):
            limits = [f"at least {self.least:g}" if self.least is not None else ""]
            limits.append(f"below {self.below:g}" if self.below is not None else "")
            raise InputError(f"'{name}' is {value:g}; it must be {' and '.join(filter(None, limits))}")
        return int(value) if whole else float(value)


def _items(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple) or not value or len(value) > _STEPS_MAX:
        raise InputError(f"'{name}' must be a list of 1 to {_STEPS_MAX} numbers, not {value!r}")
    return list(value)


_STEPS_MAX = 16
_SEED = Parameter(0, least=0, below=2**32, about="Start of the random number generator.")
_SAMPLES = Parameter(256, least=1, about="Number of nodes to start from; all nodes if there are no more.")
_DIRECTED = Parameter(True, about="Follow edges in their direction only.")


@dataclass(frozen=True)
class AlgorithmSpec:
    """One algorithm."""

    columns: tuple[str, ...]
    solve: Callable[..., Any]
    """The algorithm on an edge list, with its parameters by name; `spark.algorithms` has the same on DataFrames."""
    outcome: Callable[[Any], Outcome]
    """The values and figures of what `solve` returns."""
    about: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    takes_weight: bool = False
    subject: Subject = "nodes"
    ascending: bool = False
    """True if the first nodes are those with the smallest values of the last column."""

    def run(self, edges: EdgeList, parameters: Parameters) -> Outcome:
        """Run the algorithm in this process."""
        return self.outcome(self.solve(edges, **parameters))


def _ranks(found: tuple[Any, int]) -> Outcome:
    return Outcome((found[0],), {"rounds": found[1]})


def _components(found: Any) -> Outcome:
    return Outcome((found,), {"components": _groups(found)})


def _degrees(found: tuple[Any, Any]) -> Outcome:
    both = found[0] + found[1]
    return Outcome((*found, both), {"largest_degree": int(both.max(initial=0))})


def _communities(found: tuple[Any, float, int]) -> Outcome:
    groups, reached, levels = found
    return Outcome((groups,), {"communities": _groups(groups), "modularity": reached, "levels": levels})


def _labels(found: tuple[Any, int]) -> Outcome:
    return Outcome((found[0],), {"communities": _groups(found[0]), "rounds": found[1]})


def _sampled(found: tuple[Any, int]) -> Outcome:
    return Outcome((found[0],), {"samples": found[1]})


def _cores(found: Any) -> Outcome:
    return Outcome((found,), {"largest_core": int(found.max(initial=0))})


def _order(found: tuple[Any, Any]) -> Outcome:
    positions, levels = found
    return Outcome((levels, positions), {"levels": _groups(levels)})


def _tree(found: tuple[Any, float]) -> Outcome:
    chosen, weight = found
    return Outcome((chosen,), {"tree_edges": int(np.count_nonzero(chosen)), "weight": weight})


def _pairs(found: SimilarPairs) -> Outcome:
    return Outcome((found.nodes, found.others, found.values), {"pairs": len(found.nodes), "hubs": found.hubs})


def _vectors(found: Any) -> Outcome:
    return Outcome((found.astype(np.float32),))


def _groups(found: Any) -> int:
    return int(found.max()) + 1 if len(found) else 0


ALGORITHMS: Mapping[str, AlgorithmSpec] = {
    "pagerank": AlgorithmSpec(
        ("pagerank",),
        pagerank,
        _ranks,
        "The probability that a random walk is at the node.",
        {
            "damping": Parameter(0.85, least=0, below=1, about="Probability that the walk follows an edge."),
            "tolerance": Parameter(1e-9, least=0, about="Total change at which the rounds end."),
            "rounds_max": Parameter(100, least=1, about="Largest number of rounds."),
        },
        takes_weight=True,
    ),
    "components": AlgorithmSpec(
        ("component",), components, _components, "The weakly connected component; 0 is the largest.", ascending=True
    ),
    "degrees": AlgorithmSpec(
        ("in_degree", "out_degree", "degree"),
        degrees,
        _degrees,
        "The numbers of incoming, outgoing and all edges.",
    ),
    "betweenness": AlgorithmSpec(
        ("betweenness",),
        betweenness,
        _sampled,
        "The share of shortest paths between other nodes that lead through the node.",
        {"samples": _SAMPLES, "seed": _SEED, "directed": _DIRECTED},
    ),
    "closeness": AlgorithmSpec(
        ("closeness",),
        closeness,
        _sampled,
        "The inverse of the mean distance from the nodes that reach the node.",
        {"samples": _SAMPLES, "seed": _SEED, "directed": _DIRECTED},
    ),
    "communities": AlgorithmSpec(
        ("community",),
        louvain,
        _communities,
        "The community by Louvain's method; 0 is the largest.",
        {"resolution": Parameter(1.0, least=0, about="Larger values give smaller communities.")},
        takes_weight=True,
        ascending=True,
    ),
    "label_propagation": AlgorithmSpec(
        ("community",),
        label_propagation,
        _labels,
        "The community by label propagation; 0 is the largest.",
        {"rounds_max": Parameter(50, least=1, about="Largest number of rounds.")},
        takes_weight=True,
        ascending=True,
    ),
    "cores": AlgorithmSpec(
        ("core",),
        core_numbers,
        _cores,
        "The largest k such that the node is in a subgraph whose nodes have k neighbours.",
    ),
    "topological_order": AlgorithmSpec(
        ("level", "position"),
        topological_order,
        _order,
        "The length of the longest path to the node, and a position before those of its targets.",
        ascending=True,
    ),
    "spanning_tree": AlgorithmSpec(
        ("in_tree",),
        spanning_forest,
        _tree,
        "True for the edges of a spanning tree of least weight; one tree per component.",
        takes_weight=True,
        subject="edges",
    ),
    "similarity": AlgorithmSpec(
        ("from", "to", "similarity"),
        similar_nodes,
        _pairs,
        "The most similar nodes by shared neighbours.",
        {
            "measure": Parameter("jaccard", choices=("jaccard", "cosine"), about="Measure of similarity."),
            "limit": Parameter(10, least=1, about="Number of similar nodes per node."),
            "least": Parameter(0.0, least=0, about="Smallest similarity."),
            "degree_max": Parameter(1_000, least=1, about="Neighbours of more nodes than this do not count."),
            "direction": Parameter("out", choices=("out", "in", "both"), about="Direction of the edges to neighbours."),
        },
        subject="pairs",
    ),
    "embeddings": AlgorithmSpec(
        ("embedding",),
        walk_embeddings,
        _vectors,
        "A vector from random walks; near nodes have similar vectors.",
        {
            "dimensions": Parameter(128, least=1, below=4_097, about="Length of the vectors."),
            "steps": Parameter((1.0, 1.0, 1.0), about="Weights of walks of 1, 2, … steps."),
            "seed": _SEED,
        },
        takes_weight=True,
    ),
}


def find_algorithm(name: str) -> AlgorithmSpec:
    """Return an algorithm; an unknown name raises `InputError`."""
    found = ALGORITHMS.get(name)
    if found is None:
        raise InputError(
            f"there is no algorithm '{name}'",
            hint=did_you_mean(name, ALGORITHMS) or f"the algorithms are {', '.join(ALGORITHMS)}",
        )
    return found


def check_parameters(name: str, given: Parameters) -> dict[str, Any]:
    """Return all parameters of an algorithm; unknown ones and values out of range raise `InputError`."""
    known = find_algorithm(name).parameters
    for one in given:
        if one not in known:
            listed = f"its parameters are {', '.join(known)}" if known else "it has no parameters"
            raise InputError(f"'{name}' takes no parameter '{one}'", hint=did_you_mean(one, known) or listed)
    return {one: kind.checked(one, given[one]) if one in given else kind.default for one, kind in known.items()}
