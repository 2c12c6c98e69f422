"""CSV text: a streaming tokenizer that distinguishes null from empty text, and the matching writer.

The dialect is RFC 4180 with a choice of delimiter. An empty cell without quotes is null, `""` is the empty text. A
record may span lines; it is returned with the number of its first line. Input is UTF-8, with or without a byte order
mark. Lines end in LF, CRLF or CR. Blank lines are skipped. Other texts of cells without quotes can be null as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from omnigraph.engine import tuning
from omnigraph.errors import InputError, RecordError
from omnigraph.table_format import DELIMITERS

BOM = b"\xef\xbb\xbf"
_QUOTED = re.compile(r'[^"]*(?:""[^"]*)*')
_NEEDS_QUOTES = {delimiter: re.compile(rf'[{re.escape(delimiter)}"\r\n]|^\ufeff') for delimiter in DELIMITERS}

Cells = list[str | None]


def sniff_delimiter(header: str) -> str:
    """Return the delimiter of a header: the comma if there is one outside quotes, else the most frequent delimiter."""
    bare = re.sub(r'"(?:[^"]|"")*"', "", header)
    if "," in bare:
        return ","
    return max(DELIMITERS, key=bare.count) if any(delimiter in bare for delimiter in DELIMITERS) else ","


class CsvReader:
    """Reads the records of a stream; `delimiter` is known once the reader is created."""

    def __init__(
        self,
        stream: IO[bytes],
        source: str,
        delimiter: str | None = None,
        nulls: Sequence[str] = (),
        *,
        has_header: bool = True,
    ) -> None:
        self.source = source
        self._nulls = frozenset(("", *nulls))
        self._lines = _decoded_lines(stream, source)
        self._line = 0
        header = next((line for line in self._next_lines() if line), None) if has_header else None
        self.delimiter = delimiter or sniff_delimiter(header or "")
        self.header = [cell or "" for cell in self._record(header, frozenset(("",)))] if header is not None else None

    def __iter__(self) -> Iterator[tuple[int, Cells]]:
        """Yield each record with the number of its first line."""
        delimiter, nulls = self.delimiter, self._nulls
        for text in self._next_lines():
            first = self._line
            if '"' in text:
                yield first, self._record(text, nulls)
            elif text and len(nulls) == 1:
                yield first, [cell or None for cell in text.split(delimiter)]
            elif text:
                yield first, [None if cell in nulls else cell for cell in text.split(delimiter)]

    def _next_lines(self) -> Iterator[str]:
        for text, _ in self._lines:
            self._line += 1
            yield text.rstrip("\r\n")

    def _record(self, text: str, nulls: frozenset[str]) -> Cells:
        """Return the cells of the record that begins with this line; read further lines while a quote is open."""
        cells: Cells = []
        first, size, at = self._line, len(text), 0
        while True:
            if text.startswith('"', at):
                parts: list[str] = []
                at += 1
                while True:
                    end = _QUOTED.match(text, at).end()  # type: ignore[union-attr]
                    parts.append(text[at:end])
                    if end < len(text):
                        break
                    text, size = self._continued(size, first, parts)
                    at = 0
                at = end + 1
                cells.append("".join(parts).replace('""', '"'))
                if at < len(text) and text[at] != self.delimiter:
                    raise self._error(f"'{_delimiter_text(self.delimiter)}' expected after '\"'", self._line)
            else:
                end = text.find(self.delimiter, at)
                end = len(text) if end < 0 else end
                cell = text[at:end]
                cells.append(None if cell in nulls else cell)
                at = end
            if at >= len(text):
                return cells
            at += 1

    def _continued(self, size: int, first: int, parts: list[str]) -> tuple[str, int]:
        """Return the next line of a record with an open quote; the line break belongs to the cell."""
        following = next(self._lines, None)
        if following is None:
            raise self._error("unexpected end of data", self._line)
        self._line += 1
        line, before = following
        parts.append(before)
        size += len(line)
        if size > tuning.current.record_bytes_max:
            raise record_too_large(self.source, first)
        return line.rstrip("\r\n"), size

    def _error(self, message: str, line: int) -> RecordError:
        return RecordError(f"not valid CSV: {message}", source=self.source, line=line, rule="csv")


def record_too_large(source: str | None, line: int) -> RecordError:
    """Return the error for a record above the size limit."""
    limit = tuning.current.record_bytes_max
    return RecordError(f"the record is larger than the limit of {limit:,} bytes", source=source, line=line, rule="size")


def _decoded_lines(stream: IO[bytes], source: str) -> Iterator[tuple[str, str]]:
    """Yield each line with its line break, and the line break of the previous line."""
    before = ""
    for number, line in enumerate(_byte_lines(stream, source), 1):
        try:
            text = line.decode() if number > 1 else line.removeprefix(BOM).decode()
        except UnicodeDecodeError as error:
            raise not_utf8(source, number, line[error.start]) from None
        yield text, before
        before = text[len(text.rstrip("\r\n")) :]


def not_utf8(source: str, line: int, byte: int) -> InputError:
    """Return the error for text in another encoding."""
    return InputError(
        f"{source}, line {line}: the text is not UTF-8 (byte 0x{byte:02x})",
        code="not_utf8",
        hint="convert the file to UTF-8, for example: iconv -f latin1 -t utf-8",
    )


def _byte_lines(stream: IO[bytes], source: str) -> Iterator[bytes]:
    number = 0
    while line := stream.readline(tuning.current.record_bytes_max + 2):
        body = line.rstrip(b"\r\n")
        if len(body) > tuning.current.record_bytes_max:
            raise record_too_large(source, number + 1)
        if b"\r" not in body:
            number += 1
            yield line
            continue
        for part in re.findall(rb"[^\r]*(?:\r\n?|\n|$)", line):
            if part:
                number += 1
                yield part


def csv_line(cells: Sequence[str | None], delimiter: str = ",") -> str:
    """Format one record without its line break; null is empty, the empty text is `""`."""
    return delimiter.join([_quoted(cell, _NEEDS_QUOTES[delimiter]) for cell in cells])


def csv_lines(rows: Iterable[Sequence[str | None]], delimiter: str = ",") -> Iterator[str]:
    """Format records without their line breaks."""
    return (csv_line(row, delimiter) for row in rows)


def _quoted(cell: str | None, needs_quotes: re.Pattern[str]) -> str:
    if cell is None:
        return ""
    if not cell or needs_quotes.search(cell):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _delimiter_text(delimiter: str) -> str:
    return r"\t" if delimiter == "\t" else delimiter
