"""A graph with valid time as lists of facts, and what reads at a commit and an instant return of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from random import Random
from typing import Any

SCHEMA = """
node Person @valid(from: started, to: ended) {
    name: String @key
    city: String
    bio: String?
    started: Date?
    ended: Date?
}
node Firm { name: String @key }
edge WorksAt: Person -> Firm @valid(from: since, to: until) {
    role: String
    since: DateTime?
    until: DateTime?
    @unique(src, dst)
}
edge Knows: Person -> Person
"""
FIRST = date(2020, 1, 1)
DAYS = 12
NAMES, FIRMS = ("ana", "bo", "cy", "di"), ("acme", "initech")
WORDS = ("red apple", "green pear", "red pear tree")
Bound = int | None


def text_of(day: Bound) -> str | None:
    """The date of a day as a parameter."""
    return None if day is None else (FIRST + timedelta(days=day)).isoformat()


def time_of(day: Bound) -> str | None:
    """The first moment of a day as a parameter."""
    return None if day is None else f"{text_of(day)}T00:00:00Z"


@dataclass(frozen=True)
class Period:
    """Days from `start`, inclusive, to `end`, exclusive."""

    start: Bound = None
    end: Bound = None

    @property
    def is_empty(self) -> bool:
        return self.start is not None and self.end is not None and self.start >= self.end

    def meets(self, other: Period) -> bool:
        """Whether both share an instant."""
        return _before(self.start, other.end) and _before(other.start, self.end)

    def holds_at(self, day: int) -> bool:
        return self.meets(Period(day, day + 1)) and _before_or_at(self.start, day) and _before(day, self.end)


def _before(start: Bound, end: Bound) -> bool:
    return start is None or end is None or start < end


def _before_or_at(start: Bound, day: int) -> bool:
    return start is None or start <= day


@dataclass(frozen=True)
class Person:
    name: str
    city: str
    bio: str
    period: Period


@dataclass(frozen=True)
class Job:
    name: str
    firm: str
    role: str
    period: Period


@dataclass(frozen=True)
class Facts:
    """All rows of the graph at a commit."""

    people: tuple[Person, ...] = ()
    jobs: tuple[Job, ...] = ()
    knows: tuple[tuple[str, str], ...] = ()

    def sound(self) -> bool:
        """Whether no period is empty and a key or pair holds once at every instant."""
        people = [(one.name, one.period) for one in self.people]
        jobs = [((one.name, one.firm), one.period) for one in self.jobs]
        return _sound(people) and _sound(jobs)


def _sound(rows: list[tuple[object, Period]]) -> bool:
    if any(period.is_empty for _, period in rows):
        return False
    return not any(
        one[0] == other[0] and one[1].meets(other[1]) for at, one in enumerate(rows) for other in rows[at + 1 :]
    )


@dataclass
class View:
    """What a read sees of facts: rows that share an instant with a window, or all."""

    facts: Facts
    window: Period | None = None
    people: list[Person] = field(init=False)
    jobs: list[Job] = field(init=False)

    def __post_init__(self) -> None:
        def shown(period: Period) -> bool:
            return self.window is None or period.meets(self.window)

        self.people = [one for one in self.facts.people if shown(one.period)]
        self.jobs = [one for one in self.facts.jobs if shown(one.period)]

    def employed(self) -> Iterator[tuple[Person, Job]]:
        """Pairs of a person and a job that share an instant."""
        for person in self.people:
            yield from (
                (person, job) for job in self.jobs if job.name == person.name and job.period.meets(person.period)
            )

    def known(self, person: Person) -> Iterator[Person]:
        """The people that a person knows while both hold."""
        for source, target in set(self.facts.knows):
            if source == person.name:
                yield from (p for p in self.people if p.name == target and p.period.meets(person.period))

    def reached(self, person: Person, most: int) -> dict[Person, int]:
        """The people within some steps, with their distances."""
        found = {person: 0}
        open_ = deque([person])
        while open_:
            at = open_.popleft()
            if found[at] < most:
                for near in self.known(at):
                    if near not in found:
                        found[near] = found[at] + 1
                        open_.append(near)
        del found[person]
        return found


Rows = list[tuple[object, ...]]


def _p(person: Person) -> tuple[str, str, str | None]:
    return person.name, person.city, text_of(person.period.start)


READS: dict[str, tuple[str, Callable[[View], Iterable[tuple[object, ...]]]]] = {
    "scan": (
        "match { $p: Person } return { $p.name, $p.city, $p.started }",
        lambda view: (_p(person) for person in view.people),
    ),
    "key": (
        'match { $p: Person { name: "ana" } } return { $p.name, $p.city, $p.started }',
        lambda view: (_p(person) for person in view.people if person.name == "ana"),
    ),
    "edge": (
        "match { $p: Person $p $j:worksAt $f } return { $p.name, $p.city, $p.started, $j.role, $f.name }",
        lambda view: ((*_p(person), job.role, job.firm) for person, job in view.employed()),
    ),
    "hop": (
        "match { $f: Firm $f worksAt $p } return { $p.name, $p.city, $p.started, $f.name }",
        lambda view: {(*_p(person), job.firm) for person, job in view.employed()},
    ),
    "from a key": (
        'match { $p: Person { name: "bo" } $p knows $q } return { $p.name, $p.city, $p.started, $q.name, $q.city }',
        lambda view: [
            (*_p(one), two.name, two.city) for one in view.people if one.name == "bo" for two in set(view.known(one))
        ],
    ),
    "count": (
        "match { $p: Person $p knows $q } return { count($q) as n }",
        lambda view: [(sum(len(set(view.known(person))) for person in view.people),)],
    ),
    "edges alone": (
        "match { $p: Person $p $j:worksAt $f } return { $j.role }",
        lambda view: ((job.role,) for _, job in view.employed()),
    ),
    "arrival": (
        'match { $f: Firm { name: "acme" } $p: Person { name: "cy" } $p $j:worksAt $f } return { $p.city, $j.role }',
        lambda view: ((p.city, job.role) for p, job in view.employed() if p.name == "cy" and job.firm == "acme"),
    ),
    "group": (
        "match { $p: Person } return { $p.city, count($p) as n }",
        lambda view: {(one.city, sum(other.city == one.city for other in view.people)) for one in view.people},
    ),
    "not": (
        "match { $p: Person not { $p worksAt $_ } } return { $p.name, $p.city, $p.started }",
        lambda view: (_p(p) for p in view.people if p not in {one for one, _ in view.employed()}),
    ),
    "optional": (
        "match { $p: Person optional { $p $j:worksAt $f } } return { $p.name, $p.city, $p.started, $j.role }",
        lambda view: (
            (*_p(p), role)
            for p in view.people
            for role in [job.role for one, job in view.employed() if one is p] or [None]
        ),
    ),
    "bounded": (
        "match { $p: Person $p knows{1,2} $q } return { $p.name, $p.city, $p.started, $q.name, $q.city, $q.started }",
        lambda view: ((*_p(one), *_p(two)) for one in view.people for two in view.reached(one, 2)),
    ),
    "shortest": (
        "match { $p: Person $w: shortest { $p knows{1,3} $q } } "
        "return { $p.name, $p.started, $q.name, $q.started, length($w) as n }",
        lambda view: (
            (one.name, text_of(one.period.start), two.name, text_of(two.period.start), length)
            for one in view.people
            for two, length in view.reached(one, 3).items()
        ),
    ),
    "any edge": (
        "match { $p: Person $p -> $x } return { $p.name, $p.city, $p.started, type($x) as t }",
        lambda view: (
            *((*_p(one), "Person") for one in view.people for _ in set(view.known(one))),
            *((*row, "Firm") for row, _ in {(_p(person), job.firm) for person, job in view.employed()}),
        ),
    ),
    "search": (
        'match { $p: Person search($p.bio, "red") } return { $p.name, $p.city, $p.started }',
        lambda view: (_p(person) for person in view.people if "red" in person.bio.split()),
    ),
    "stage": (
        "match { $p: Person } with { $p.city as $c, count($p) as $n } return { $c, $n }",
        lambda view: {(one.city, sum(other.city == one.city for other in view.people)) for one in view.people},
    ),
}  # fmt: skip
"""Name → the text of a read, and the rows that it returns of a view."""


@dataclass(frozen=True)
class Edit:
    """A mutation, its parameters, and the facts after it; None if it must be refused."""

    text: str
    params: dict[str, object]
    after: Facts | None


def random_edit(facts: Facts, random: Random) -> Edit:
    """Return a random mutation of a graph with some facts."""
    period = Period(random.choice([None, *range(DAYS)]), random.choice([None, *range(1, DAYS + 3)]))
    day = random.randrange(DAYS + 1)
    name, firm = random.choice(NAMES), random.choice(FIRMS)
    word, bio = f"w{random.randrange(1_000)}", random.choice(WORDS)
    kinds = ("person", "person", "job", "job", "knows", "end job", "end", "move", "move", "promote", "delete")
    params: dict[str, object]
    match random.choice(kinds):
        case "person":
            text = "insert Person { name: $n, city: $c, bio: $b, started: $s, ended: $e }"
            params = {"n": name, "c": word, "b": bio, "s": text_of(period.start), "e": text_of(period.end)}
            after = replace(facts, people=(*facts.people, Person(name, word, bio, period)))
            return _judged(text, params, after)
        case "job":
            text = "insert WorksAt { from: $n, to: $f, role: $r, since: $s, until: $e }"
            params = {"n": name, "f": firm, "r": word, "s": time_of(period.start), "e": time_of(period.end)}
            after = replace(facts, jobs=(*facts.jobs, Job(name, firm, word, period)))
            return _judged(text, params, after if any(p.name == name for p in facts.people) else None)
        case "knows":
            other = random.choice([one for one in NAMES if one != name])
            text, params = "insert Knows { from: $n, to: $m }", {"n": name, "m": other}
            exist = {name, other} <= {p.name for p in facts.people}
            return Edit(
                _declared(text, params), params, replace(facts, knows=(*facts.knows, (name, other))) if exist else None
            )
        case "end job":
            jobs = tuple(
                replace(one, period=Period(one.period.start, day))
                if one.name == name and one.period.holds_at(day)
                else one
                for one in facts.jobs
            )
            text, params = "end WorksAt where from = $n at $t", {"n": name, "t": time_of(day)}
            return _judged(text, params, replace(facts, jobs=jobs))
        case "end":
            people = tuple(
                replace(one, period=Period(one.period.start, day))
                if one.name == name and one.period.holds_at(day)
                else one
                for one in facts.people
            )
            text, params = "end Person where name = $n at $t", {"n": name, "t": text_of(day)}
            return _judged(text, params, replace(facts, people=people))
        case "move":
            moved = _begun(facts.people, lambda one: one.name == name, day, city=word)
            text = "update Person set { city: $c } where name = $n valid from $t"
            return _judged(text, {"c": word, "n": name, "t": text_of(day)}, replace(facts, people=moved))
        case "promote":
            promoted = _begun(facts.jobs, lambda one: one.name == name and one.firm == firm, day, role=word)
            text = "update WorksAt set { role: $r } where from = $n and to = $f valid from $t"
            params = {"r": word, "n": name, "f": firm, "t": time_of(day)}
            return _judged(text, params, replace(facts, jobs=promoted))
        case _:
            kept = tuple(one for one in facts.people if not (one.name == name and one.period.start == period.start))
            names = {one.name for one in kept}
            after = Facts(
                kept,
                tuple(one for one in facts.jobs if one.name in names),
                tuple(pair for pair in facts.knows if set(pair) <= names),
            )
            if period.start is None:
                return _judged("delete Person where name = $n and started is null", {"n": name}, after)
            params = {"n": name, "s": text_of(period.start)}
            return _judged("delete Person where name = $n and started = $s", params, after)


def _begun(rows: tuple[Any, ...], chosen: Callable[[Any], bool], day: int, **values: str) -> tuple[Any, ...]:
    """Rows of which those that hold on a day end there and begin again with other values."""
    found: list[Any] = []
    for one in rows:
        if not chosen(one) or not one.period.holds_at(day):
            found.append(one)
        elif one.period.start == day:
            found.append(replace(one, **values))
        else:
            found.append(replace(one, period=Period(one.period.start, day)))
            found.append(replace(one, period=Period(day, one.period.end), **values))
    return tuple(found)


def _judged(text: str, params: dict[str, object], after: Facts | None) -> Edit:
    return Edit(_declared(text, params), params, after if after is not None and after.sound() else None)


def _declared(text: str, params: dict[str, object]) -> str:
    """A mutation with a head: a null has no type of its own."""
    moment = "DateTime" if "WorksAt" in text else "Date"
    types = {name: f"{moment}{'' if name == 't' else '?'}" if name in "set" else "String" for name in params}
    return f"query q({', '.join(f'${name}: {type_}' for name, type_ in types.items())}) {{ {text} }}"
