"""Take a hop once that a pattern contains twice.

    expand $p -Knows-> $q | check $p -Knows-> $q       expand $p -Knows-> $q

A hop without an edge variable states that two nodes are connected, whatever the number of edges.
"""

from __future__ import annotations

from dataclasses import replace

from omnigraph.engine.optimizer.pattern import Pattern


def drop_repeated_hops(pattern: Pattern) -> Pattern:
    """Return the pattern with every hop once."""
    hops = tuple(dict.fromkeys(pattern.hops))  # hops with an edge variable differ in its name
    return pattern if len(hops) == len(pattern.hops) else replace(pattern, hops=hops)
