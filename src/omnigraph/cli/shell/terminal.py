"""The terminal of the shell: prompt_toolkit, and nothing it needs not know."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output import ColorDepth, Output

from omnigraph.cli.config import FORMATS
from omnigraph.cli.shell.completion import CLAUSES, Words, complete
from omnigraph.cli.shell.session import COMMANDS, Leave, Session
from omnigraph.cli.shell.statements import inputs, is_whole
from omnigraph.errors import OmniGraphError
from omnigraph.lang.tokens import DECIMAL, DIGITS, LOWER, STRING, UPPER, VAR, lex

_STYLES = {VAR: "ansicyan", UPPER: "ansigreen", STRING: "ansiyellow", DIGITS: "ansimagenta", DECIMAL: "ansimagenta"}


def interact(
    session: Session, *, history: Path | None = None, input: Input | None = None, output: Output | None = None
) -> None:
    """Read and run inputs until the user leaves."""
    prompt = _prompt(session, history, input, output)
    print("':help' lists the commands, Tab completes, Ctrl-D leaves.")
    while True:
        try:
            text = prompt.prompt(session.prompt)
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            for part in inputs(text.splitlines(keepends=True)):
                for line in session.run(part):
                    print(line)
        except Leave:
            return
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)


def _prompt(session: Session, history: Path | None, input: Input | None, output: Output | None) -> PromptSession[str]:
    return PromptSession(
        history=_history(history),
        completer=SchemaCompleter(session),
        complete_while_typing=False,
        lexer=_Highlighter(),
        key_bindings=_keys(),
        multiline=True,
        prompt_continuation=lambda width, _number, _wrapped: "·".rjust(width - 1) + " ",
        color_depth=ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None,
        input=input,
        output=output,
    )


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
    except OSError:
        # A home that cannot be written to is no reason not to work.
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter runs what is whole and breaks the line otherwise; Escape, Enter always runs."""
    keys = KeyBindings()

    @Condition
    def whole() -> bool:
        from prompt_toolkit.application import get_app

        return is_whole(get_app().current_buffer.text)

    @keys.add("enter", filter=whole)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class SchemaCompleter(Completer):
    """Proposes words for where the cursor is."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._words = Words(
            commands=tuple(COMMANDS),
            branches=lambda: session.graph.branches(),
            formats=FORMATS,
            queries=session.queries,
            points=frozenset({"branch", "diff", "at"}),
        )

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """What can stand here; a graph that cannot be read proposes nothing."""
        try:
            partial, found = complete(document.text_before_cursor, self._session.catalog, self._words)
        except OmniGraphError:
            return
        for word in found:
            yield Completion(word, start_position=-len(partial))


class _Highlighter(Lexer):
    """Colours by token, with the program's own lexer."""

    def lex_document(self, document: Document) -> Any:
        """Line number → the line in coloured pieces."""
        lines = [list(_coloured(line)) for line in document.lines]

        def line(number: int) -> StyleAndTextTuples:
            return [*lines[number]] if number < len(lines) else []

        return line


def _coloured(line: str) -> Iterator[tuple[str, str]]:
    place = 0
    for token in lex(line).tokens:
        if token.start > place:
            yield "", line[place : token.start]
        style = "bold" if token.kind == LOWER and token.text in CLAUSES else _STYLES.get(token.kind, "")
        yield style, line[token.start : token.end]
        place = max(place, token.end)
    if place < len(line):
        yield "ansibrightblack" if "//" in line[place:] else "", line[place:]
