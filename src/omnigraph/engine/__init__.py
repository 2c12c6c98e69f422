"""Where plans meet data.

`filters` turn conditions into SQL for tables and into masks over Arrow columns, with one meaning;
`pending` is what a write has done so far, laid over the committed tables; `mutate` runs the statements of
a change; `records` reads records into columns; `constraints` holds every integrity rule, checks columns, and
serves every write.
"""
