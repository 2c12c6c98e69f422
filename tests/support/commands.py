"""Schema, queries and records of the tests of the command line, and helpers to read its output."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

SCHEMA = """node Person {
    name: String @key
    age: I32?
}

edge Knows: Person -> Person
"""


QUERIES = """query adults($least: I32) {
    match {
        $p: Person
        $p.age >= $least
    }
    return { $p.name, $p.age }
    order { $p.name }
}

query one($name: String) {
    match { $p: Person { name: $name } }
    return { $p.age }
}

query birthday($name: String, $age: I32) {
    update Person set { age: $age } where name = $name
}
"""


RECORDS = [
    {"type": "Person", "data": {"name": "Ana", "age": 41}},
    {"type": "Person", "data": {"name": "Bo", "age": 17}},
    {"type": "Person", "data": {"name": "29", "age": None}},
    {"edge": "Knows", "from": "Ana", "to": "Bo"},
]


def jsonl(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


Cli = Callable[..., tuple[int, str, str]]


def document(answer: tuple[int, str, str], code: int = 0) -> Any:
    assert answer[0] == code, answer[2]
    return json.loads(answer[1])


def set_age(cli: Cli, name: str, age: int, branch: str) -> None:
    assert cli("change", "-q", "q.gq", "-n", "birthday", "-p", f"name={name}", "-p", f"age={age}", "-b", branch)[0] == 0
