"""The vectorised executor: binding tables, grouping, ordering, aggregates, cancellation."""
