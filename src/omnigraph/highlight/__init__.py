"""Colours of schema and query texts in other tools.

words               classes of words, from the lists that the languages themselves use
pygments_lexers     lexers of Pygments, which Sphinx, MkDocs, Jupyter and rich use
textmate            TextMate grammars, which VS Code and other editors use

Only `pygments_lexers` imports Pygments.
"""
