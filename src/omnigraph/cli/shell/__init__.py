"""The interactive shell.

`session` executes input and returns lines, `completion` completes words from the live schema, `statements` splits text
into inputs, `terminal` is the only module that uses prompt_toolkit.
"""
