"""Webhooks: events of graphs, signed and sent to other services.

`targets` reads the settings, `events` and `proposal_source` make events, `sending` signs and sends one, `stream`
delivers the events of one graph to one webhook in order, and `dispatcher` runs the streams of a process.
`omnigraph.webhooks` verifies signatures.
"""
