"""Adds vectors to lines of JSON by the specification of an offline embedding.

Lines are streamed in order, and lines that are not embedded are copied unchanged. The caller chooses the files and
distributes them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.jsonl_rows import EntityRow, Selector, is_selected, parse_row, row_text
from omnigraph.embedding.specification import Specification
from omnigraph.embedding.vectors import Vectors
from omnigraph.errors import EmbeddingError, InputError, ModelMismatch, OmniGraphError

RequestedMode = Literal["fill", "reembed_all", "clean"]
Mode = Literal["fill_missing", "reembed_selected", "reembed_all", "clean"]

_TEXTS_PER_FLUSH = 1_024
_LINES_PER_FLUSH = 16_384


@dataclass(frozen=True, slots=True)
class EmbedReport:
    """Counts of an offline embedding. `rows` excludes blank lines and comments; `model` is empty after cleaning."""

    input: str
    output: str
    rows: int
    selected_rows: int
    embedded_rows: int
    cleaned_rows: int
    mode: Mode
    dimension: int
    model: str

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)

    def describe(self) -> str:
        """Return a one-line summary."""
        return (
            f"embed {self.mode} width={self.dimension}: {self.embedded_rows} embedded, {self.cleaned_rows} cleaned, "
            f"{self.selected_rows} selected; {self.input} -> {self.output}"
        )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Row that is written once its text is embedded."""

    number: int
    row: EntityRow
    target: str
    text: str


def check_model(specification: Specification, client: EmbeddingClient | None) -> None:
    """Refuse a client with another model than the one in the specification."""
    if client is not None and specification.model not in (None, client.model):
        raise ModelMismatch(f"'{specification.name}'", recorded=specification.model or "", resolved=client.model)


def line_error(source: str, line: int, error: OmniGraphError) -> OmniGraphError:
    """Return an error with the number of its line."""
    kind = EmbeddingError if isinstance(error, EmbeddingError) else InputError
    return kind(f"line {line} of '{source}': {error.message}", code=error.code, hint=error.hint)


class WrongLine(Exception):
    """Error in a line; lines are counted from the first line read."""

    def __init__(self, line: int, error: OmniGraphError) -> None:
        super().__init__(error.message)
        self.line = line
        self.error = error


@dataclass
class EmbeddingCounts:
    """Counts of lines processed so far."""

    rows: int = 0
    selected: int = 0
    embedded: int = 0
    cleaned: int = 0

    def __add__(self, other: EmbeddingCounts) -> EmbeddingCounts:
        return EmbeddingCounts(
            self.rows + other.rows,
            self.selected + other.selected,
            self.embedded + other.embedded,
            self.cleaned + other.cleaned,
        )

    def report(
        self, source: str, output: str, mode: Mode, specification: Specification, client: EmbeddingClient | None
    ) -> EmbedReport:
        """Return the summary for the user."""
        return EmbedReport(
            input=source,
            output=output,
            rows=self.rows,
            selected_rows=self.selected,
            embedded_rows=self.embedded,
            cleaned_rows=self.cleaned,
            mode=mode,
            dimension=specification.dimension,
            model="" if client is None else client.model,
        )


class Rewriting:
    """One pass over lines, with its counts; errors are raised as `WrongLine`."""

    def __init__(
        self,
        specification: Specification,
        client: EmbeddingClient | None,
        mode: RequestedMode,
        types: Collection[str],
        selectors: Sequence[Selector],
    ) -> None:
        self._specification = specification
        self._client = client
        self._types = types
        self._selectors = selectors
        self.mode: Mode = "reembed_selected" if selectors else "fill_missing"
        if mode != "fill":
            self.mode = mode
        self.counts = EmbeddingCounts()

    def run(self, lines: Iterable[bytes], *, at_start: bool = True) -> Iterator[str]:
        """Yield the output lines in order; a byte order mark is recognised only at the start of a text."""
        held: list[str | _Waiting] = []
        waiting = 0
        for number, line in self._numbered(lines, at_start):
            if not line.strip():
                continue
            made = line if line.lstrip().startswith("//") else self._rewrite(number, line)
            held.append(made)
            waiting += isinstance(made, _Waiting)
            if waiting >= _TEXTS_PER_FLUSH or len(held) >= _LINES_PER_FLUSH:
                yield from self._flush(held)
                held, waiting = [], 0
        yield from self._flush(held)

    def _numbered(self, lines: Iterable[bytes], at_start: bool) -> Iterator[tuple[int, str]]:
        number = 0
        try:
            for number, line in enumerate(lines, 1):
                yield number, line.decode("utf-8-sig" if number == 1 and at_start else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 text: byte {error.start} is wrong"
            raise WrongLine(number, InputError(reason, code="not_utf8")) from None

    def _rewrite(self, number: int, line: str) -> str | _Waiting:
        self.counts.rows += 1
        try:
            return self._act(number, line)
        except InputError as error:
            raise WrongLine(number, error) from None
        except RecursionError:
            raise WrongLine(number, InputError("lists or objects are nested too deeply")) from None

    def _act(self, number: int, line: str) -> str | _Waiting:
        row = parse_row(line)
        if row is None or not is_selected(row, self._types, self._selectors):
            return line
        self.counts.selected += 1
        spec = self._specification.types.get(row.type)
        if spec is None:
            return line
        if self.mode == "clean":
            if spec.target not in row.data:
                return line
            del row.data[spec.target]
            self.counts.cleaned += 1
            return row.line()
        if self.mode == "fill_missing" and row.data.get(spec.target) not in (None, []):
            return line
        return _Waiting(number, row, spec.target, row_text(row, spec))

    def _flush(self, held: Sequence[str | _Waiting]) -> Iterator[str]:
        waiting = [made for made in held if isinstance(made, _Waiting)]
        vectors = iter(self._vectors(waiting))
        for made in held:
            if isinstance(made, _Waiting):
                made.row.data[made.target] = _json_numbers(next(vectors))
                self.counts.embedded += 1
                yield made.row.line()
            else:
                yield made

    def _vectors(self, waiting: Sequence[_Waiting]) -> Sequence[Vectors] | Vectors:
        if not waiting:
            return []
        assert self._client is not None, "only cleaning goes without a client, and it embeds nothing"
        for one in waiting:
            if any("\ud800" <= letter <= "\udfff" for letter in one.text):
                raise WrongLine(
                    one.number, InputError("the text contains an unpaired surrogate and is not valid Unicode")
                )
        try:
            return self._client.embed([one.text for one in waiting], self._specification.dimension, "document")
        except EmbeddingError as error:
            raise WrongLine(waiting[error.text_index or 0].number, error) from error


def _json_numbers(vector: Vectors) -> list[float]:
    """Return the numbers with the fewest digits that read back as this vector."""
    short = [float(str(component)) for component in vector]
    # Most readers parse as 64-bit and then round; the result is nearly always the same.
    if np.array_equal(np.array(short).astype(np.float32), vector):
        return short
    return [float(component) for component in vector]
