"""A schema proposed for tables: sampling, types of columns, keys and references, and the text of the draft."""
