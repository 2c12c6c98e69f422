"""The terminal of the shell: the only module that uses prompt_toolkit."""

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

from omnigraph.cli.shell.completion import CompletionWords, complete
from omnigraph.cli.shell.session import COMMANDS, EndSession, Session
from omnigraph.cli.shell.statements import inputs, is_complete
from omnigraph.config_keys import FORMATS
from omnigraph.errors import OmniGraphError
from omnigraph.lang.tokens import DECIMAL, DIGITS, LOWER, STRING, UPPER, VAR, lex
from omnigraph.query.complete import CLAUSES

_STYLES = {VAR: "ansicyan", UPPER: "ansigreen", STRING: "ansiyellow", DIGITS: "ansimagenta", DECIMAL: "ansimagenta"}


def interact(
    session: Session, *, history: Path | None = None, input: Input | None = None, output: Output | None = None
) -> None:
    """Read and run inputs until the user ends the session."""
    prompt = _prompt(session, history, input, output)
    print("':help' lists the commands, Tab completes, Ctrl-D exits.")
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
        except EndSession:
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
        # The shell works without a writable home folder.
        return InMemoryHistory()
    return FileHistory(str(path))


def _keys() -> KeyBindings:
    """Enter runs a complete input and starts a new line otherwise; Escape, Enter always runs the input."""
    keys = KeyBindings()

    @Condition
    def complete_input() -> bool:
        from prompt_toolkit.application import get_app

        return is_complete(get_app().current_buffer.text)

    @keys.add("enter", filter=complete_input)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    return keys


class SchemaCompleter(Completer):
    """Completes words at the cursor."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._words = CompletionWords(
            commands=tuple(COMMANDS),
            branches=lambda: session.graph.branches(),
            formats=FORMATS,
            queries=session.queries,
            points=frozenset({"branch", "diff", "at"}),
        )

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:  # noqa: ARG002
        """Yield completions; none if the graph cannot be read."""
        try:
            partial, found = complete(document.text_before_cursor, self._session.catalog, self._words)
        except OmniGraphError:
            return
        for word in found:
            yield Completion(word, start_position=-len(partial))


class _Highlighter(Lexer):
    """Syntax highlighting by the lexer of the query language."""

    def lex_document(self, document: Document) -> Any:
        """Return a function from line numbers to styled text."""
        lines = [list(_coloured(line)) for line in document.lines]

        def line(number: int) -> StyleAndTextTuples:
            return [*lines[number]] if number < len(lines) else []

        return line


def _coloured(line: str) -> Iterator[tuple[str, str]]:
    position = 0
    for token in lex(line).tokens:
        if token.start > position:
            yield "", line[position : token.start]
        style = "bold" if token.kind == LOWER and token.text in CLAUSES else _STYLES.get(token.kind, "")
        yield style, line[token.start : token.end]
        position = max(position, token.end)
    if position < len(line):
        yield "ansibrightblack" if "//" in line[position:] else "", line[position:]
