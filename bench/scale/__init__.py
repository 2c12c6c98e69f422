"""Data larger than memory: documents, large texts and edges, measured in new processes beside peers.

`corpus` generates the documents; `documents`, `peers`, `large_texts` and `edges` measure, each in a process of its own;
`processes` counts memory and times.
"""
