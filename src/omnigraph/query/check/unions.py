"""Variables of several node types, and hops over several edge types.

A union type is written `A|B`, with its members in alphabetical order, and can stand for a type in a plan.
`Catalog.node` determines the properties that the members share. This module determines what can be read from a union
(T34), and where edges of any type lead (T35).
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.fast_dataclass import dataclass
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.spans import Name
from omnigraph.query.check.errors import type_fault
from omnigraph.query.syntax import ast
from omnigraph.schema.catalog import Catalog, EdgeType, UnionType, union_name
from omnigraph.suggestions import did_you_mean, known_types, listing


def bound_type(catalog: Catalog, names: Iterable[Name]) -> str:
    """Return the type that a binding names: node types, or interfaces as their implementations; T1 otherwise."""
    found: set[str] = set()
    for name in names:
        if name.text in catalog.nodes:
            found.add(name.text)
        elif name.text in catalog.interfaces:
            # An interface without implementations has no nodes and adds nothing to a union.
            found.update(catalog.implementers[name.text] or (name.text,))
        else:
            raise _unknown_type(catalog, name)
    return union_name(found & catalog.nodes.keys() or found)


def _unknown_type(catalog: Catalog, name: Name) -> Fault:
    if name.text in catalog.edges:
        word = catalog.edges[name.text].word
        hint = f"'{name}' is an edge; it is followed between two variables: '$a {word} $b'"
    else:
        known = [*catalog.nodes, *catalog.interfaces]
        hint = did_you_mean(name.text, known) or known_types("node type", catalog.nodes)
    return type_fault("T1", f"there is no node type '{name}'", name.span, hint)


def not_shared(catalog: Catalog, union: UnionType, property_: Name) -> Fault:
    """T34: a property that the members of a union do not share; the message names a member that lacks it."""
    name = property_.text
    hint = did_you_mean(name, union.properties)
    if hint is None:
        hint = f"they share {listing(union.properties)}" if union.properties else "they share no property"
    if not union.members:
        return type_fault("T34", f"interface '{union.name}' has no property '{name}'", property_.span, hint)
    lacking = [member for member in union.members if name not in catalog.nodes[member].properties]
    if lacking:
        return type_fault("T34", f"node type '{lacking[0]}' has no property '{name}'", property_.span, hint)
    first, *others = (catalog.nodes[member] for member in union.members)
    for other in others:
        a, b = first.properties[name], other.properties[name]
        if (a.type.scalar, a.type.is_list, a.type.dim) != (b.type.scalar, b.type.is_list, b.type.dim):
            message = f"'{first.name}.{name}' is {a.type}, but '{other.name}.{name}' is {b.type}"
            return type_fault("T34", message, property_.span, hint)
    message = f"the vectors of '{name}' are made by different models, so they cannot be compared"
    return type_fault("T34", message, property_.span, hint)


# -- edges -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Route:
    """The edge types that a hop follows, and its direction; `ends` are the types of its ends if they are not bound."""

    edges: tuple[EdgeType, ...]
    left_is_source: bool
    ends: tuple[str, str] | None = None

    @property
    def left(self) -> str:
        """The type of the left end if it is not bound."""
        return self.ends[0] if self.ends else union_name(left for left, _ in self._sides())

    @property
    def right(self) -> str:
        """The type of the right end if it is not bound."""
        return self.ends[1] if self.ends else union_name(right for _, right in self._sides())

    def leads_between(self, left: str, right: str, *, undirected: bool) -> bool:
        """True if all edges lead exactly between these two types."""
        return self._sides() == {(left, right)} and (left == right or not undirected)

    def continues(self, *, undirected: bool) -> bool:
        """True if one of the edges can follow another."""
        return undirected or not {edge.from_type for edge in self.edges}.isdisjoint(edge.to_type for edge in self.edges)

    def _sides(self) -> set[tuple[str, str]]:
        ends = {(edge.from_type, edge.to_type) for edge in self.edges}
        return ends if self.left_is_source else {(to, from_) for from_, to in ends}


def any_edge(catalog: Catalog, hop: ast.HopClause, left: str | None, right: str | None, least: int, most: int) -> Route:
    """Return the edge types that fit the ends; an end without a type has all types that the edges lead to."""
    if hop.edge_var is not None and hop.edge_var.text != ast.ANONYMOUS:
        message = f"'${hop.edge_var}' would be an edge of any type"
        raise type_fault("T35", message, hop.edge_var.span, "name the edge type, or drop the edge variable")
    ways = {(edge.from_type, edge.to_type) for edge in catalog.edges.values()}
    if hop.undirected:
        ways |= {(to, from_) for from_, to in ways}
    if hop.left.text == hop.right.text != ast.ANONYMOUS:
        ways = {(from_, to) for from_, to in ways if from_ == to}
    back = {(to, from_) for from_, to in ways}
    ends = frozenset(catalog.members(right)) if right is not None else frozenset(catalog.nodes)
    starts = _reached(back, ends, least, most)
    if left is not None:
        starts &= frozenset(catalog.members(left))
    ends &= _reached(ways, starts, least, most)
    if not starts:
        raise _leads_nowhere(catalog, hop, left, right)
    if most > 1:
        followed = tuple(catalog.edges.values())
    else:
        pairs = {(a, b) for a, b in ways if a in starts and b in ends}
        pairs |= {(b, a) for a, b in pairs} if hop.undirected else set()
        followed = tuple(edge for edge in catalog.edges.values() if (edge.from_type, edge.to_type) in pairs)
    return Route(followed, True, (left or union_name(starts), right or union_name(ends)))


def _reached(ways: set[tuple[str, str]], starts: frozenset[str], least: int, most: int) -> frozenset[str]:
    """Return the types at which walks of `least` to `most` steps can end."""
    after = [starts]
    again = 0
    while len(after) <= most:
        step = frozenset(to for from_, to in ways if from_ in after[-1])
        if step in after:
            again = after.index(step)
            break
        after.append(step)
    # The sets of types repeat periodically from the first set that occurs twice.
    period = len(after) - again
    lengths = range(least, min(most, least + len(after)) + 1)
    found = (after[k] if k < len(after) else after[again + (k - again) % period] for k in lengths)
    return frozenset[str]().union(*found)


def _leads_nowhere(catalog: Catalog, hop: ast.HopClause, left: str | None, right: str | None) -> Fault:
    if hop.left.text == hop.right.text:
        message = f"no edge can lead from '${hop.left}' to itself"
    else:
        ends = [f"'${end}'" + (f" ({type_})" if type_ else "") for end, type_ in ((hop.left, left), (hop.right, right))]
        joined = f"between {' and '.join(ends)}" if hop.undirected else f"from {' to '.join(ends)}"
        message = f"no edge leads {joined}"
    shown = [f"{edge.name}: {edge.from_type} -> {edge.to_type}" for edge in catalog.edges.values()]
    return type_fault("T5", message, hop.edge.span, f"the edges are {listing(shown)}" if shown else None)
