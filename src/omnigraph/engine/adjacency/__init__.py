"""CSR adjacency: building, incremental maintenance, traversal, algorithms."""
