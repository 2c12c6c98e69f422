"""Worked examples of the language as text: a query and its exact result.

=== a name, on GRAPH            a case, on one of the example graphs query … { … } --- params {"t": "river"}       if it
has any --- rows                        the rows in order, a JSON object to a line; `--- bag` when they have no order
--- error T26                   or else the code it is refused with --- result 1 0                  for a change: how
many nodes and edges --- returned                    the rows it gives back, if it does --- after
then a query that looks at what it did, and its rows
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "cases" / "language"


@dataclass
class Case:
    file: str
    name: str
    graph: str
    query: str
    params: dict[str, Any] = field(default_factory=dict)
    rows: list[dict[str, Any]] | None = None
    ordered: bool = True
    error: str | None = None
    result: list[int] | None = None
    after: str | None = None
    returned: list[dict[str, Any]] | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.name}"

    def text(self) -> str:
        """The text of the case."""
        parts = [f"=== {self.name}, on {self.graph}\n{self.query.rstrip()}\n"]
        if self.params:
            parts.append(f"--- params {json.dumps(self.params, ensure_ascii=False)}\n")
        if self.error:
            parts.append(f"--- error {self.error}\n")
        if self.result is not None:
            parts.append(f"--- result {self.result[0]} {self.result[1]}\n")
        if self.returned is not None:
            parts += ["--- returned\n", *(json.dumps(row, ensure_ascii=False) + "\n" for row in self.returned)]
        if self.after is not None:
            parts.append(f"--- after\n{self.after.rstrip()}\n")
        if self.rows is not None:
            parts.append("--- rows\n" if self.ordered else "--- bag\n")
            parts += [json.dumps(row, ensure_ascii=False) + "\n" for row in self.rows]
        return "".join(parts)


def read_cases(path: Path) -> tuple[str, list[Case]]:
    """The header and the cases of a file."""
    head, *pieces = re.split(r"(?m)^=== ", path.read_text(encoding="utf-8"))
    return head, [_case(path.stem, piece) for piece in pieces]


def write_cases(path: Path, head: str, cases: list[Case]) -> None:
    path.write_text(head + "\n".join(case.text() for case in cases), encoding="utf-8")


def _case(file: str, piece: str) -> Case:
    title, _, body = piece.partition("\n")
    name, _, graph = title.rpartition(", on ")
    query, *sections = re.split(r"(?m)^--- ", body)
    case = Case(file, name, graph, query.strip() + "\n")
    for section in sections:
        head, _, rest = section.partition("\n")
        word, _, more = head.partition(" ")
        match word:
            case "params":
                case.params = json.loads(more)
            case "error":
                case.error = more
            case "result":
                case.result = [int(number) for number in more.split()]
            case "returned":
                case.returned = [json.loads(line) for line in rest.splitlines() if line.strip()]
            case "after":
                case.after = rest.strip() + "\n"
            case "rows" | "bag":
                case.ordered = word == "rows"
                case.rows = [json.loads(line) for line in rest.splitlines() if line.strip()]
            case _:
                raise AssertionError(f"{file}: {name}: unknown section '{word}'")
    return case
