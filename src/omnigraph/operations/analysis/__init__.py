"""Graph algorithms: `request` describes a run, `input_graph` reads edges, `write_values` stores the values."""
