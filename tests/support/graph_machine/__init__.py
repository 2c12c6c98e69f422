"""Random steps on a graph and on its model (`support.graph_model`)."""
