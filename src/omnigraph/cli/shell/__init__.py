"""The interactive shell: `session` runs what is typed and gives lines back, `completion` proposes words from the live
schema, `statements` knows when a query is whole, `terminal` alone knows prompt_toolkit.
"""
