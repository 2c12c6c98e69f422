"""Cost-based choice of a physical plan: the same operators in the cheapest order."""
