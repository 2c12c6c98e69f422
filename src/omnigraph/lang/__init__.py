"""The ground both languages stand on: lexer, cursor, source positions, diagnostics.

`tokens` turns text into tokens, `cursor` walks them, `spans` knows where in the text something is,
`diagnostics` turns a place and a sentence into an error with the source underlined, and `layout` writes
formatted text with its comments kept. Nothing here knows a keyword of either language.
"""
