"""The queries of the workload: their texts for each system, and their parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench.snb.generate import SEED, START, Array, Data

FOLDER = Path(__file__).parent
SCHEMA = (FOLDER / "schema.pg").read_text(encoding="utf-8")
GROUPS = ("short", "complex", "bi")
UNORDERED = frozenset({"ic14"})
"""Queries whose definitions leave the order of some rows open."""
Params = dict[str, Any]
FIRST_DAY = datetime(1970, 1, 1) + timedelta(milliseconds=START)


@dataclass(frozen=True)
class Query:
    """One query: its statement in our language, in SQL for DuckDB, and in Cypher for Ladybug, if it has one."""

    name: str
    group: str
    ours: str
    sql: str
    cypher: str | None = None
    ordered: bool = True
    """False if the definition leaves the order of equal rows open."""


def queries() -> list[Query]:
    """All queries, in the order of the files."""
    found = []
    for group in GROUPS:
        ours = (FOLDER / "queries" / f"{group}.gq").read_text(encoding="utf-8")
        sql = sections(group, "sql")
        cypher = sections(group, "cypher")
        texts = split_queries(ours)
        if set(texts) != set(sql):
            raise ValueError(f"{group}: {sorted(set(texts) ^ set(sql))} are not in both files")
        for name, text in texts.items():
            found.append(Query(name, group, text, sql[name], cypher.get(name), name not in UNORDERED))
    return found


def split_queries(source: str) -> dict[str, str]:
    """The queries of a `.gq` file by name."""
    texts = [text for text in re.split(r"^(?=query )", source, flags=re.MULTILINE) if text.startswith("query ")]
    return {text[len("query ") :].partition("(")[0]: text for text in texts}


def sections(group: str, language: str) -> dict[str, str]:
    """The statements of a file by name: each begins with a comment `name: …`."""
    path = FOLDER / "queries" / f"{group}.{language}"
    if not path.exists():
        return {}
    parts = re.split(r"^(?:--|//) name: (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: text.strip().rstrip(";") for name, text in zip(parts[1::2], parts[2::2], strict=True)}


@dataclass
class Parameters:
    """Parameters of every query, drawn from the data with a fixed seed."""

    data: Data
    _columns: dict[tuple[str, str], Array] = field(default_factory=dict)

    def of(self, name: str, count: int) -> list[Params]:
        """`count` sets of parameters of a query."""
        rng = np.random.default_rng([SEED, *name.encode()])
        return [self._draw(name, rng) for _ in range(count)]

    def _draw(self, name: str, rng: np.random.Generator) -> Params:
        draws = PARAMETERS[name]
        return {key: draw(self, rng) for key, draw in draws.items()} if isinstance(draws, dict) else draws(self, rng)

    def one(self, rng: np.random.Generator, type_: str, column: str = "number") -> Any:
        """A random value of a column."""
        values = self.column(type_, column)
        value = values[int(rng.integers(0, len(values)))]
        return value.item() if isinstance(value, np.generic) else value

    def country(self, rng: np.random.Generator) -> str:
        """A country; the larger ones more often."""
        names = self.data.read("Place").filter(_kind("country"))["name"].to_pylist()
        return str(names[int(len(names) * rng.random() ** 2.5)])

    def message(self, rng: np.random.Generator) -> int:
        """A post or a comment."""
        return int(self.one(rng, "Post" if rng.random() < 0.4 else "Comment"))

    def used_tag(self, rng: np.random.Generator) -> str:
        """A tag; those of many posts more often."""
        names = self.data.read("Tag")["name"].to_pylist()
        return str(names[int(self.one(rng, "PostHasTag", "to"))])

    def column(self, type_: str, column: str) -> Array:
        """All values of a column."""
        values = self._columns.get((type_, column))
        if values is None:
            values = self._columns[type_, column] = self.data.column(type_, column).to_numpy(zero_copy_only=False)
        return values

    def posts_by(self, person: int) -> Array:
        """The rows of `PostHasTag` of the posts of a person."""
        own = self.column("PostHasCreator", "from")[self.column("PostHasCreator", "to") == person]
        rows: Array = np.flatnonzero(np.isin(self.column("PostHasTag", "from"), own))
        return rows

    def tag_class(self, rng: np.random.Generator) -> str:
        """A tag class; those of many tags more often."""
        names = self.data.read("TagClass")["name"].to_pylist()
        return str(names[int(self.one(rng, "HasType", "to"))])


def _kind(kind: str) -> Any:
    import pyarrow.compute as pc  # noqa: PLC0415

    return pc.field("kind") == kind


Draw = Callable[[Parameters, np.random.Generator], Any]


def _person(parameters: Parameters, rng: np.random.Generator) -> int:
    return int(parameters.one(rng, "Person"))


def _message(parameters: Parameters, rng: np.random.Generator) -> int:
    return parameters.message(rng)


def _country(parameters: Parameters, rng: np.random.Generator) -> str:
    return parameters.country(rng)


def _tag(parameters: Parameters, rng: np.random.Generator) -> str:
    return parameters.used_tag(rng)


def _tag_class(parameters: Parameters, rng: np.random.Generator) -> str:
    return parameters.tag_class(rng)


def _languages(parameters: Parameters, rng: np.random.Generator) -> list[str]:
    """One to three languages; those of many posts more often."""
    return sorted({str(parameters.one(rng, "Post", "language")) for _ in range(int(rng.integers(1, 4)))})


def _first_name(parameters: Parameters, rng: np.random.Generator) -> str:
    return str(parameters.one(rng, "Person", "firstName"))


def _city(parameters: Parameters, rng: np.random.Generator) -> int:
    return int(parameters.one(rng, "PersonIsLocatedIn", "to"))


def _company(parameters: Parameters, rng: np.random.Generator) -> str:
    names = parameters.data.read("Organisation")["name"].to_pylist()
    return str(names[int(parameters.one(rng, "WorkAt", "to"))])


def _day(low: int, high: int) -> Draw:
    """The start of a day, counted from the first day of the network."""
    return lambda _, rng: FIRST_DAY + timedelta(days=int(rng.integers(low, high)))


def _number(low: int, high: int) -> Draw:
    return lambda _, rng: int(rng.integers(low, high))


def _two_topics(parameters: Parameters, rng: np.random.Generator) -> Params:
    """The tags and days of two posts of one person."""
    rows = parameters.posts_by(int(parameters.one(rng, "PostHasCreator", "to")))
    names = parameters.column("Tag", "name")
    numbers, created = parameters.column("Post", "number"), parameters.column("Post", "creationDate")
    found: Params = {}
    for which, row in zip("AB", rng.choice(rows, 2) if len(rows) else (0, 0), strict=True):
        post = np.flatnonzero(numbers == parameters.column("PostHasTag", "from")[row])[0]
        day = created[post].astype("datetime64[D]").astype(datetime)
        found |= {f"tag{which}": str(names[parameters.column("PostHasTag", "to")[row]])}
        found |= {f"date{which}": datetime(day.year, day.month, day.day)}
    return found | {"most": int(rng.integers(3, 7))}


def _candidate(parameters: Parameters, rng: np.random.Generator) -> Params:
    """A person, and a company of a person who studied with a friend."""
    knows = parameters.data.read("Knows")
    rows = np.flatnonzero(knows["studied"].is_valid().to_numpy())
    row = int(rng.choice(rows))
    ends = [int(knows[side][row].as_py()) for side in ("from", "to")]
    names = parameters.column("Organisation", "name")
    for person, other in (ends, ends[::-1]):
        at = np.flatnonzero(parameters.column("WorkAt", "from") == other)
        if len(at):
            return {"company": str(names[parameters.column("WorkAt", "to")[at[0]]]), "person": person}
    return {"company": _company(parameters, rng), "person": ends[0]}


PARAMETERS: dict[str, dict[str, Draw] | Callable[[Parameters, np.random.Generator], Params]] = {
    **{name: {"person": _person} for name in ("is1", "is2", "is3", "ic7", "ic8")},
    **{name: {"message": _message} for name in ("is4", "is5", "is6", "is7")},
    "ic1": {"person": _person, "firstName": _first_name},
    "ic2": {"person": _person, "maxDate": _day(500, 1095)},
    "ic3": {
        "person": _person, "countryX": _country, "countryY": _country, "startDate": _day(300, 900),
        "days": _number(60, 400),
    },
    "ic4": {"person": _person, "startDate": _day(100, 900), "days": _number(20, 120)},
    "ic5": {"person": _person, "minDate": _day(500, 1000)},
    "ic6": {"person": _person, "tag": _tag},
    "ic9": {"person": _person, "maxDate": _day(500, 1095)},
    "ic10": {"person": _person, "month": _number(1, 13)},
    "ic11": {"person": _person, "country": _country, "year": _number(2003, 2014)},
    "ic12": {"person": _person, "tagClass": _tag_class},
    "ic14": {"person1": _person, "person2": _person},
    "ic13": {"person1": _person, "person2": _person},
    "bi1": {"datetime": _day(600, 1095)},
    "bi2": {"tagClass": _tag_class, "date": _day(100, 900)},
    "bi3": {"tagClass": _tag_class, "country": _country},
    "bi4": {"date": _day(100, 700)},
    **{name: {"tag": _tag} for name in ("bi5", "bi6", "bi7", "bi18")},
    "bi8": {"tag": _tag, "startDate": _day(300, 600), "endDate": _day(900, 1095)},
    "bi9": {"startDate": _day(400, 500), "endDate": _day(560, 600)},
    "bi10": {"person": _person, "country": _country, "tagClass": _tag_class},
    "bi11": {"country": _country, "startDate": _day(0, 300), "endDate": _day(800, 1095)},
    "bi12": {"startDate": _day(300, 900), "lengthThreshold": _number(20, 200), "languages": _languages},
    "bi13": {"country": _country, "endDate": _day(700, 1095)},
    "bi14": {"country1": _country, "country2": _country},
    "bi16": _two_topics,
    "bi17": {"tag": _tag, "hours": _number(8, 17)},
    "bi19": {"city1": _city, "city2": _city},
    "bi20": _candidate,
}  # fmt: skip
