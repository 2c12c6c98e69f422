"""Records of the demonstration, generated from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from omnigraph.demo.vocabulary import (
    FIRST_NAMES,
    LAST_NAMES,
    PLACES,
    PROJECT_WORDS,
    REMARKS,
    ROLES,
    STATUSES,
    TEAMS,
    TOPICS,
    WHEN,
)

SEED = 1911
NOTES = 3_000
DAYS, DAYS_OF_OLD = 850, 700
"""Number of days from 2024-01-01 on in which notes were written; fewer for some projects."""
FORGOTTEN = "island"
Record = dict[str, Any]


def make_records(*, notes: int = NOTES, seed: int = SEED) -> Iterator[Record]:
    """Yield nodes, then the edges between them. People, teams, topics and projects do not depend on `notes`."""
    random = Random(seed)  # noqa: S311
    people = [f"{first}-{last}".lower() for first in FIRST_NAMES for last in LAST_NAMES]
    projects = [f"{thing} {kind}" for thing in PROJECT_WORDS[0] for kind in PROJECT_WORDS[1]]
    codes = [title.lower().replace(" ", "-") for title in projects]
    yield from (_node("Team", name=name, mission=mission) for name, mission in TEAMS.items())
    yield from (_node("Topic", name=name) for name in TOPICS)
    for handle in people:
        name = " ".join(part.capitalize() for part in handle.split("-"))
        joined = date(2012, 1, 1) + timedelta(days=random.randrange(5000))
        yield _node("Person", handle=handle, name=name, role=random.choice(ROLES), joined=joined.isoformat())
    for code, title in zip(codes, projects, strict=True):
        started = date(2018, 1, 1) + timedelta(days=random.randrange(2900))
        budget = float(random.randrange(5, 400) * 500) if random.random() < 0.8 else None
        status = random.choice(STATUSES)
        yield _node("Project", code=code, title=title, status=status, started=started.isoformat(), budget=budget)
    for handle in people:
        yield _edge("MemberOf", handle, random.choice(list(TEAMS)))
        for other in random.sample(people, random.choice((0, 1, 1, 2))):
            if other != handle:
                yield _edge("Mentors", handle, other)
        for code in random.sample(codes, random.choice((1, 1, 2, 3))):
            since = date(2020, 1, 1) + timedelta(days=random.randrange(2200))
            yield _edge("WorksOn", handle, code, since=since.isoformat(), share=random.choice((0.1, 0.25, 0.5, 1.0)))
    yield from _notes(random, notes, people, codes)


def _notes(random: Random, count: int, people: list[str], codes: list[str]) -> Iterator[Record]:
    names = list(TOPICS)
    for number in range(count):
        topic, other = random.sample(names, 2)
        first, second = TOPICS[topic], TOPICS[other]
        subject, event = random.choice(first.subjects), random.choice(first.events)
        sentences = [f"{subject} {event}; {random.choice(first.measures)}."]
        mentioned = [topic]
        if random.random() < 0.5:
            sentences.append(
                f"{random.choice(WHEN)} {_lower(random.choice(second.subjects))} {random.choice(second.events)}."
            )
            mentioned.append(other)
        n, m, place = random.randrange(2, 9), random.randrange(10, 90), random.choice(PLACES)
        sentences.append(random.choice(REMARKS).format(n=n, m=m, place=place))
        slug, code = f"note-{number:04}", random.choice(codes)
        days = DAYS if not code.startswith(FORGOTTEN) else DAYS_OF_OLD
        written = datetime(2024, 1, 1) + timedelta(minutes=random.randrange(60 * 24 * days))
        yield _node(
            "Note", slug=slug, title=f"{topic.capitalize()}: {_lower(subject)}", text=" ".join(sentences),
            written=written.isoformat() + "Z",
        )  # fmt: skip
        yield _edge("Wrote", random.choice(people), slug)
        yield _edge("About", slug, code)
        yield from (_edge("Mentions", slug, name) for name in mentioned)
        if number and random.random() < 0.6:
            yield _edge("Cites", slug, f"note-{random.randrange(number):04}")


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _node(type_name: str, **data: Any) -> Record:
    return {"type": type_name, "data": data}


def _edge(type_name: str, source: str, target: str, **data: Any) -> Record:
    record: Record = {"edge": type_name, "from": source, "to": target}
    return {**record, "data": data} if data else record
