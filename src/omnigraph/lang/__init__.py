"""Common base of both languages: lexer, cursor, source positions, diagnostics.

`tokens` splits text into tokens, `cursor` iterates over them, `spans` holds source positions, `diagnostics` makes
errors with underlined source text, `error_recovery` parses a file and continues after errors, and `comment_printer`
prints formatted text with its comments. The package contains no keyword of either language.
"""
