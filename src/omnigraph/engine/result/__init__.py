"""Results and the graph inside them."""
