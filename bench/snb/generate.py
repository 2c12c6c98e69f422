"""Generator of the social network: deterministic, with skewed degrees and correlated attributes.

The data resembles that of LDBC SNB in its types and shapes only: names, texts and distributions are our own. Persons of
one place, university or interest know each other more often; messages have the tags, languages and places of their
authors; every date is later than the dates that it depends on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

Array = np.ndarray[Any, Any]
Write = Callable[[str, pa.Table], None]
"""Takes a type and all its rows."""
SEED = 20_100_101
DAY = 86_400_000
START = 14_610 * DAY
"""2010-01-01, in milliseconds since 1970."""
END = START + 3 * 365 * DAY
SCALES = (0.003, 0.1, 1.0, 10.0)

CONTINENTS, COUNTRIES, CITIES_PER_COUNTRY, COMPANIES_PER_COUNTRY = 6, 40, 8, 15
CLASSES, TAGS = 40, 1_200
BROWSERS = np.array(["Firefox", "Chrome", "Internet Explorer", "Safari", "Opera"])
WORDS = 2_000
TEXT_ROWS = 1_000_000
"""Texts that are Python objects at a time."""
LEVELS = (0.52, 0.24, 0.12, 0.07, 0.05)
"""The shares of comments by their depth in a thread."""


@dataclass(frozen=True)
class Size:
    """Approximate row counts of a scale."""

    scale: float

    @property
    def persons(self) -> int:
        """Persons grow more slowly than messages."""
        return max(40, round(10_000 * float(self.scale**0.8)))

    @property
    def posts(self) -> int:
        """Number of posts."""
        return round(1_000_000 * self.scale)

    @property
    def comments(self) -> int:
        """Number of comments."""
        return round(2_000_000 * self.scale)

    @property
    def likes(self) -> int:
        """Number of likes, before duplicates are removed."""
        return round(2_200_000 * self.scale)


@dataclass(frozen=True)
class Data:
    """The files of one network: a Parquet file per node or edge type."""

    folder: Path

    def path(self, name: str) -> Path:
        """The path of a type."""
        return self.folder / f"{name}.parquet"

    def read(self, name: str) -> pa.Table:
        """The rows of a type."""
        return pq.read_table(self.path(name)).combine_chunks()

    def column(self, name: str, column: str) -> pa.ChunkedArray:
        """One column of a type."""
        return pq.read_table(self.path(name), columns=[column])[column]

    @property
    def names(self) -> list[str]:
        """All types."""
        return sorted(path.stem for path in self.folder.glob("*.parquet"))


def make(scale: float, folder: Path) -> Data:
    """The network of a scale, generated if missing."""
    data = Data(folder / f"snb-{scale:g}" / "data")
    if not (data.folder / "done").exists():
        data.folder.mkdir(parents=True, exist_ok=True)
        Generator(Size(scale), lambda name, table: pq.write_table(table, data.path(name))).run()
        (data.folder / "done").touch()
    return data


@dataclass
class Csr:
    """Values grouped by a key: those of key k are `values[starts[k] : starts[k + 1]]`."""

    starts: Array
    values: Array
    order: Array

    @classmethod
    def of(cls, keys: Array, values: Array, count: int) -> Csr:
        """Group values by key; `order` is the position of each in the input."""
        order = np.argsort(keys, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))])
        return cls(starts, values[order], order)

    def draw(self, rng: np.random.Generator, keys: Array) -> Array:
        """The index of one random value for each key, -1 if it has none."""
        sizes = self.starts[keys + 1] - self.starts[keys]
        at = self.starts[keys] + (rng.random(len(keys)) * sizes).astype(np.int64)
        return np.where(sizes > 0, np.minimum(at, len(self.values) - 1), -1)


class Generator:
    """Writes the tables of one network, each when it is complete. Nodes are row indexes here; `number` is their key."""

    def __init__(self, size: Size, write: Write) -> None:
        self.size = size
        self.write = write
        self.rng = np.random.default_rng(SEED)
        self.words = _words(np.random.default_rng(SEED + 1), WORDS)

    def run(self) -> None:
        """Write all tables."""
        self._places()
        self._tags()
        self._organisations()
        self._persons()
        self._knows()
        self._forums()
        self._posts()
        self._comments()
        self._messages()
        self._likes()
        self._weights()

    # -- static data -------------------------------------------------------------------------------

    def _places(self) -> None:
        cities = COUNTRIES * CITIES_PER_COUNTRY
        self.country_weight = _zipf(COUNTRIES, 0.8)
        self.city_country = np.repeat(np.arange(COUNTRIES), CITIES_PER_COUNTRY)
        names = [word.title() for word in _words(np.random.default_rng(SEED + 2), CONTINENTS + COUNTRIES + cities)]
        kinds = ["continent"] * CONTINENTS + ["country"] * COUNTRIES + ["city"] * cities
        self.country_names = names[CONTINENTS : CONTINENTS + COUNTRIES]
        self.city_numbers = np.arange(cities) + CONTINENTS + COUNTRIES
        self.country_numbers = np.arange(COUNTRIES) + CONTINENTS
        self.place_names = names
        self.write("Place", pa.table({"number": np.arange(len(names)), "name": names, "kind": kinds}))
        inner = np.concatenate([self.country_numbers, self.city_numbers])
        outer = np.concatenate([np.arange(COUNTRIES) % CONTINENTS, self.country_numbers[self.city_country]])
        self.write("IsPartOf", _edges(inner, outer))

    def _tags(self) -> None:
        names = _words(np.random.default_rng(SEED + 3), CLASSES + TAGS)
        self.write("TagClass", pa.table({"number": np.arange(CLASSES), "name": [w.title() for w in names[:CLASSES]]}))
        child = np.arange(1, CLASSES)
        self.write("IsSubclassOf", _edges(child, (child - 1) // 3))
        self.tag_class = (CLASSES * self.rng.random(TAGS) ** 1.3).astype(np.int64)
        numbers = np.arange(TAGS)
        self.write("Tag", pa.table({"number": numbers, "name": [f"{w}_{i}" for i, w in enumerate(names[CLASSES:])]}))
        self.write("HasType", _edges(numbers, self.tag_class))

    def _organisations(self) -> None:
        universities = len(self.city_numbers)
        companies = COUNTRIES * COMPANIES_PER_COUNTRY
        self.company_first = universities
        names = [f"University of {self.place_names[number]}" for number in self.city_numbers]
        names += [f"{word.title()} Company {i}" for i, word in enumerate(_words(self.rng, companies))]
        kinds = ["university"] * universities + ["company"] * companies
        self.write("Organisation", pa.table({"number": np.arange(len(names)), "name": names, "kind": kinds}))
        located = np.concatenate([self.city_numbers, np.repeat(self.country_numbers, COMPANIES_PER_COUNTRY)])
        self.write("OrganisationIsLocatedIn", _edges(np.arange(len(names)), located))

    # -- persons -----------------------------------------------------------------------------------

    def _persons(self) -> None:
        rng, count = self.rng, self.size.persons
        self.person_number = np.sort(rng.choice(count * 20, count, replace=False)) + 100
        self.person_created = _ms(START + (END - 60 * DAY - START) * rng.random(count))
        self.country = rng.choice(COUNTRIES, count, p=self.country_weight)
        city = self.country * CITIES_PER_COUNTRY + rng.choice(CITIES_PER_COUNTRY, count, p=_zipf(CITIES_PER_COUNTRY, 1))
        gender = rng.integers(0, 2, count)
        self.first_names = first = _names(rng, self.country * 2 + gender, 2 * COUNTRIES, 14, SEED + 4)
        last = _names(rng, self.country, COUNTRIES, 30, SEED + 5)
        birth = rng.integers(3_652, 7_670, count)
        languages = [["en"] if c % 5 == 0 else ["en", f"l{c % 17}"] for c in range(COUNTRIES)]
        self.language = np.array([items[-1] for items in languages])[self.country]
        emails = [
            [f"{f.lower()}{n}@mail{k}.example" for k in range(1 + n % 3)]
            for f, n in zip(first, self.person_number, strict=True)
        ]
        self.browser = rng.choice(5, count, p=_zipf(5, 0.7))
        self.ip = [
            f"{10 + c}.{n % 251}.{n // 251 % 251}.{n % 13}"
            for c, n in zip(self.country, self.person_number, strict=True)
        ]
        persons = pa.table(
            {
                "number": self.person_number,
                "firstName": first,
                "lastName": last,
                "gender": np.array(["male", "female"])[gender],
                "birthday": pa.array(birth, pa.int32()).cast(pa.date32()),
                "creationDate": _dates(self.person_created),
                "locationIP": self.ip,
                "browserUsed": BROWSERS[self.browser],
                "speaks": [languages[c] for c in self.country],
                "email": emails,
            }
        )
        self.write("Person", persons)
        self.write("PersonIsLocatedIn", _edges(self.person_number, self.city_numbers[city]))
        self._interests()
        self._careers(city, birth)

    def _interests(self) -> None:
        """Each country prefers other tags."""
        rng, count = self.rng, self.size.persons
        many = np.minimum(4 + rng.geometric(0.12, count), 60)
        person = np.repeat(np.arange(count), many)
        tag = (self.country[person] * 29 + TAGS * rng.random(len(person)) ** 2.5).astype(np.int64) % TAGS
        person, tag = _pairs(person, tag)
        self.interests = Csr.of(person, tag, count)
        self.main_interest = self.interests.values[self.interests.starts[:-1]]
        self.write("HasInterest", _edges(self.person_number[person], tag))

    def _careers(self, city: Array, birth: Array) -> None:
        rng, count = self.rng, self.size.persons
        born = 1970 + birth // 365
        studied = np.flatnonzero(rng.random(count) < 0.8)
        away = rng.random(len(studied)) < 0.3
        other = self.country[studied] * CITIES_PER_COUNTRY + rng.integers(0, CITIES_PER_COUNTRY, len(studied))
        self.university = np.full(count, -1)
        self.university[studied] = np.where(away, other, city[studied])
        self.class_year = born + 18 + rng.integers(0, 5, count)
        year = pa.array(self.class_year[studied], pa.int32())
        self.write("StudyAt", _edges(self.person_number[studied], self.university[studied], classYear=year))
        worker = np.repeat(np.arange(count), rng.integers(0, 4, count))
        abroad = rng.random(len(worker)) < 0.15
        where = np.where(abroad, rng.integers(0, COUNTRIES, len(worker)), self.country[worker])
        company = where * COMPANIES_PER_COUNTRY + (COMPANIES_PER_COUNTRY * rng.random(len(worker)) ** 1.5).astype(
            np.int64
        )
        worker, company = _pairs(worker, company + self.company_first)
        since = pa.array(born[worker] + 20 + rng.integers(0, 12, len(worker)), pa.int32())
        self.write("WorkAt", _edges(self.person_number[worker], company, workFrom=since))

    def _knows(self) -> None:
        """Friends are near in one of two orders, by place of study and by interest, or random."""
        rng, count = self.rng, self.size.persons
        mean = 3.5 * np.log10(max(count, 100)) + 4
        degree = np.minimum(1 + rng.lognormal(np.log(mean) - 0.75, 1.2, count), count / 4).astype(np.int64)
        person = np.repeat(np.arange(count), degree)
        by_place = np.lexsort((rng.random(count), self.university, self.country))
        by_interest = np.lexsort((rng.random(count), self.main_interest))
        kind = rng.random(len(person))
        friend = rng.integers(0, count, len(person))
        for order, least, most in ((by_place, 0.0, 0.45), (by_interest, 0.45, 0.9)):
            chosen = (kind >= least) & (kind < most)
            rank = np.empty(count, np.int64)
            rank[order] = np.arange(count)
            step = rng.geometric(min(0.5, 1.5 / mean), int(chosen.sum())) * rng.choice([-1, 1], int(chosen.sum()))
            friend[chosen] = order[(rank[person[chosen]] + step) % count]
        apart = person != friend
        low, high = np.minimum(person, friend)[apart], np.maximum(person, friend)[apart]
        self.knows = _pairs(low, high)
        low, high = self.knows
        base = np.maximum(self.person_created[low], self.person_created[high])
        self.knows_created = self._later(base, 120 * DAY)
        both = np.concatenate([low, high]), np.concatenate([high, low])
        self.friends = Csr.of(*both, count)
        self.friend_since = np.concatenate([self.knows_created, self.knows_created])[self.friends.order]

    # -- forums ------------------------------------------------------------------------------------

    def _forums(self) -> None:
        """Each person has a wall, some have albums, and some moderate groups."""
        rng, count = self.rng, self.size.persons
        albums = np.repeat(np.arange(count), np.minimum(rng.geometric(0.4, count) - 1, 8))
        groups = rng.integers(0, count, count // 2 + 5)
        self.moderator = np.concatenate([np.arange(count), albums, groups])
        self.forum_kind = np.repeat([0, 1, 2], [count, len(albums), len(groups)])
        total = len(self.moderator)
        self.forum_number = np.sort(rng.choice(total * 10, total, replace=False)) + 1_000
        self.forum_created = self._later(self.person_created[self.moderator], 200 * DAY)
        self.forum_tag = self.interests.values[self.interests.draw(rng, self.moderator)]
        names = self.first_names
        titles = [
            (f"Wall of {names[m]}", f"Album {i % 9} of {names[m]}", f"Group for {self.words[t]} {i}")[k]
            for i, (m, k, t) in enumerate(zip(self.moderator, self.forum_kind, self.forum_tag, strict=True))
        ]
        created = _dates(self.forum_created)
        self.write("Forum", pa.table({"number": self.forum_number, "title": titles, "creationDate": created}))
        self.write("HasModerator", _edges(self.forum_number, self.person_number[self.moderator]))
        more = np.flatnonzero(rng.random(total) < 0.5)
        tag = np.concatenate([self.forum_tag, (self.forum_tag[more] + rng.integers(1, 12, len(more))) % TAGS])
        self.write("ForumHasTag", _edges(self.forum_number[np.concatenate([np.arange(total), more])], tag))
        self._members()

    def _members(self) -> None:
        rng, count, total = self.rng, self.size.persons, len(self.moderator)
        degree = np.diff(self.friends.starts)[self.moderator]
        forum = np.repeat(np.arange(total), degree)
        at = self.friends.starts[self.moderator[forum]] + _within(degree)
        kept = rng.random(len(forum)) < np.array([0.7, 0.35, 0.5])[self.forum_kind[forum]]
        forum, person = forum[kept], self.friends.values[at[kept]]
        group = np.flatnonzero(self.forum_kind == 2)
        many = np.minimum(5 * rng.pareto(1.4, len(group)) + 5, count / 3).astype(np.int64)
        more = np.repeat(group, many)
        order = np.lexsort((self.country, self.main_interest))
        rank = np.empty(count, np.int64)
        rank[order] = np.arange(count)
        step = (rng.standard_normal(len(more)) * np.repeat(many, many)).astype(np.int64)
        other = order[(rank[self.moderator[more]] + step) % count]
        forum, person = _pairs(np.concatenate([forum, more]), np.concatenate([person, other]))
        apart = person != self.moderator[forum]
        forum, person = forum[apart], person[apart]
        joined = self._later(np.maximum(self.forum_created[forum], self.person_created[person]), 90 * DAY)
        self.members = Csr.of(forum, person, total)
        self.joined = joined[self.members.order]
        self.write("HasMember", _edges(self.forum_number[forum], self.person_number[person], joinDate=_dates(joined)))

    # -- messages ----------------------------------------------------------------------------------

    def _posts(self) -> None:
        """Walls and albums belong to their moderators; members write in groups."""
        rng, count = self.rng, self.size.posts
        weight = (1 + np.diff(self.members.starts)) ** 0.7 * rng.pareto(2.0, len(self.moderator))
        self.post_forum = rng.choice(len(self.moderator), count, p=weight / weight.sum())
        drawn = self.members.draw(rng, self.post_forum)
        by_member = (self.forum_kind[self.post_forum] == 2) & (drawn >= 0)
        self.post_author = np.where(by_member, self.members.values[drawn], self.moderator[self.post_forum])
        since = np.where(by_member, self.joined[drawn], self.forum_created[self.post_forum])
        self.post_created = _ms(since + (END - DAY - since) * rng.random(count) ** 1.4)
        self.photo = self.forum_kind[self.post_forum] == 1
        many = np.where(self.photo, 0, rng.choice(5, count, p=[0.2, 0.35, 0.25, 0.12, 0.08]))
        post = np.repeat(np.arange(count), many)
        own = self.interests.values[self.interests.draw(rng, self.post_author[post])]
        near = (self.forum_tag[self.post_forum[post]] + rng.geometric(0.4, len(post)) - 1) % TAGS
        self.post_tags = _pairs(post, np.where(rng.random(len(post)) < 0.5, own, near))

    def _comments(self) -> None:
        """Threads grow level by level; members of the forum answer popular messages, friends more often."""
        rng, posts = self.rng, self.size.posts
        parent, author, created, root = [], [], [], []
        last = np.arange(posts)
        last_author, last_created, last_root = self.post_author, self.post_created, last
        first = 0
        for level, share in enumerate(LEVELS):
            count = round(self.size.comments * share)
            weight = rng.pareto(1.6, len(last))
            chosen = rng.choice(len(last), count, p=weight / weight.sum())
            of_root = last_root[chosen]
            writer, since = self._answerer(last_author[chosen], self.post_forum[of_root])
            base = np.maximum(last_created[chosen], since)
            when = self._later(base, 4 * DAY)
            parent.append(last[chosen] if level == 0 else first + chosen)
            if level:
                first += len(last)
            last, last_author, last_created, last_root = np.arange(count), writer, when, of_root
            author.append(writer)
            created.append(when)
            root.append(of_root)
        self.first_level = len(author[0])
        self.parent, self.comment_author = np.concatenate(parent), np.concatenate(author)
        self.comment_created, self.root = np.concatenate(created), np.concatenate(root)
        self._comment_tags()

    def _answerer(self, author: Array, forum: Array) -> tuple[Array, Array]:
        """The author of an answer, and since when this person could write it."""
        member, friend = self.members.draw(self.rng, forum), self.friends.draw(self.rng, author)
        writer = np.where(member >= 0, self.members.values[member], self.moderator[forum])
        since = np.where(member >= 0, self.joined[member], self.forum_created[forum])
        near = (friend >= 0) & (self.rng.random(len(author)) < 0.5)
        return np.where(near, self.friends.values[friend], writer), np.where(near, self.friend_since[friend], since)

    def _comment_tags(self) -> None:
        rng, count = self.rng, len(self.root)
        tags = Csr.of(*self.post_tags, self.size.posts)
        comment = np.repeat(np.arange(count), rng.choice(4, count, p=[0.5, 0.3, 0.15, 0.05]))
        drawn = tags.draw(rng, self.root[comment])
        own = self.interests.values[self.interests.draw(rng, self.comment_author[comment])]
        of_post = (drawn >= 0) & (rng.random(len(comment)) < 0.6)
        self.comment_tags = _pairs(comment, np.where(of_post, tags.values[drawn], own))

    def _messages(self) -> None:
        """The tables of posts and comments. Numbers follow the creation dates, over posts and comments."""
        posts, comments = self.size.posts, len(self.root)
        created = np.concatenate([self.post_created, self.comment_created])
        number = np.empty(posts + comments, np.int64)
        number[np.argsort(created, kind="stable")] = np.arange(posts + comments) * 3 + 5
        self.post_number, self.comment_number = number[:posts], number[posts:]
        language = self.language[self.post_author]
        of_posts = (self.post_number, self.post_author, self.post_created, language)
        self.write("Post", self._message_table(*of_posts, photo=self.photo, low=20))
        of_comments = (self.comment_number, self.comment_author, self.comment_created, language[self.root])
        self.write("Comment", self._message_table(*of_comments, photo=np.zeros(comments, bool), low=2))
        person, forum = self.person_number, self.forum_number
        self.write("PostHasCreator", _edges(self.post_number, person[self.post_author]))
        self.write("CommentHasCreator", _edges(self.comment_number, person[self.comment_author]))
        self.write("ContainerOf", _edges(forum[self.post_forum], self.post_number))
        self.write("ContainsComment", _edges(forum[self.post_forum[self.root]], self.comment_number))
        self.write("RootPost", _edges(self.comment_number, self.post_number[self.root]))
        first = self.first_level
        self.write("ReplyOfPost", _edges(self.comment_number[:first], self.post_number[self.parent[:first]]))
        self.write("ReplyOfComment", _edges(self.comment_number[first:], self.comment_number[self.parent[first:]]))
        for name, (message, tag), numbers in (
            ("PostHasTag", self.post_tags, self.post_number),
            ("CommentHasTag", self.comment_tags, self.comment_number),
        ):
            self.write(name, _edges(numbers[message], tag))
        for name, author, numbers in (
            ("PostIsLocatedIn", self.post_author, self.post_number),
            ("CommentIsLocatedIn", self.comment_author, self.comment_number),
        ):
            travels = self.rng.random(len(author)) < 0.15
            abroad = self.rng.choice(COUNTRIES, len(author), p=self.country_weight)
            self.write(name, _edges(numbers, self.country_numbers[np.where(travels, abroad, self.country[author])]))

    def _message_table(
        self, number: Array, author: Array, created: Array, language: Array, *, photo: Array, low: int
    ) -> pa.Table:
        rng, count = self.rng, len(number)
        text = _texts(rng, self.words, count, low)
        none = pa.scalar(None, pa.utf8())
        text = pc.if_else(pa.array(photo), none, text)
        images = pc.if_else(pa.array(photo), _photos(number), none)
        browser = np.where(rng.random(count) < 0.9, self.browser[author], rng.integers(0, 5, count))
        return pa.table(
            {
                "number": number,
                "creationDate": _dates(created),
                "locationIP": pa.array(self.ip).take(pa.array(author)),
                "browserUsed": pa.array(BROWSERS).take(pa.array(browser)),
                "content": text,
                "imageFile": images,
                "language": language,
                "length": pc.fill_null(pc.utf8_length(text), 0),
            }
        )

    def _likes(self) -> None:
        """Members of the forum and friends of the author like popular messages."""
        rng, posts = self.rng, self.size.posts
        weight = rng.pareto(1.5, posts + len(self.root))
        message = rng.choice(len(weight), self.size.likes, p=weight / weight.sum())
        root = np.where(message < posts, message, self.root[np.maximum(message - posts, 0)])
        author = np.concatenate([self.post_author, self.comment_author])[message]
        created = np.concatenate([self.post_created, self.comment_created])[message]
        person, since = self._answerer(author, self.post_forum[root])
        person, message, at = _first_pairs(person, message)
        when = self._later(np.maximum(created[at], since[at]), 6 * DAY)
        on_post = message < posts
        for name, chosen, numbers, shift in (
            ("LikesPost", on_post, self.post_number, 0),
            ("LikesComment", ~on_post, self.comment_number, posts),
        ):
            ends = self.person_number[person[chosen]], numbers[message[chosen] - shift]
            self.write(name, _edges(*ends, creationDate=_dates(when[chosen])))

    def _weights(self) -> None:
        """The derived weights of `Knows`, and its table."""
        low, high = self.knows
        count = self.size.persons
        answered = np.concatenate(
            [self.post_author[self.parent[: self.first_level]], self.comment_author[self.parent[self.first_level :]]]
        )
        one, other = np.minimum(self.comment_author, answered), np.maximum(self.comment_author, answered)
        pairs, replies = np.unique(one * count + other, return_counts=True)
        at = np.minimum(np.searchsorted(pairs, low * count + high), len(pairs) - 1)
        met = pairs[at] == low * count + high
        weight = np.maximum(np.floor(40 - np.sqrt(replies[at]) + 0.5), 1).astype(np.int64)
        shared = (self.university[low] >= 0) & (self.university[low] == self.university[high])
        years = np.abs(self.class_year[low] - self.class_year[high]) + 1
        weights = {"interaction": pa.array(weight, mask=~met), "studied": pa.array(years, mask=~shared)}
        ends = self.person_number[low], self.person_number[high]
        self.write("Knows", _edges(*ends, creationDate=_dates(self.knows_created), **weights))

    def _later(self, base: Array, mean: int) -> Array:
        """Dates after `base`, by about `mean` milliseconds, before the end."""
        wait = self.rng.exponential(mean, len(base))
        return _ms(base + 1 + np.minimum(wait, (END - base) * (0.2 + 0.7 * self.rng.random(len(base)))))


# -- building blocks ---------------------------------------------------------------------------------


def _edges(source: Array, target: Array, **properties: Any) -> pa.Table:
    return pa.table({"from": source, "to": target, **properties})


def _ms(values: Array) -> Array:
    whole: Array = values.astype(np.int64)
    return whole


def _dates(values: Array) -> pa.Array:
    return pa.array(values).cast(pa.timestamp("ms"))


def _zipf(count: int, power: float) -> Array:
    weight: Array = 1 / np.arange(1, count + 1) ** power
    shares: Array = weight / weight.sum()
    return shares


def _within(sizes: Array) -> Array:
    """0, 1, … for each group of the given sizes."""
    ends = np.cumsum(sizes)
    within: Array = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    return within


def _pairs(left: Array, right: Array) -> tuple[Array, Array]:
    """The distinct pairs, sorted."""
    packed = np.unique((left.astype(np.int64) << 32) | right)
    return packed >> 32, packed & 0xFFFFFFFF


def _first_pairs(left: Array, right: Array) -> tuple[Array, Array, Array]:
    """The distinct pairs, sorted, and the position of one occurrence of each."""
    packed, at = np.unique((left.astype(np.int64) << 32) | right, return_index=True)
    return packed >> 32, packed & 0xFFFFFFFF, at


def _words(rng: np.random.Generator, count: int) -> list[str]:
    """Distinct words of syllables."""
    consonants, vowels = "bdfgklmnprstvz", "aeiou"
    found: dict[str, None] = {}
    while len(found) < count:
        syllables = rng.integers(0, len(consonants) * len(vowels), rng.integers(2, 5))
        found["".join(consonants[s // len(vowels)] + vowels[s % len(vowels)] for s in syllables)] = None
    return list(found)


def _names(rng: np.random.Generator, group: Array, groups: int, each: int, seed: int) -> list[str]:
    """A name for each row from the pool of its group; few names are frequent."""
    pool = np.array([word.title() for word in _words(np.random.default_rng(seed), groups * each)])
    drawn = (each * rng.random(len(group)) ** 2).astype(np.int64)
    return [str(name) for name in pool[group * each + drawn]]


def _texts(rng: np.random.Generator, words: list[str], count: int, low: int) -> pa.ChunkedArray:
    """Texts cut from one long text: `low` characters and more, some of them long."""
    long = " ".join(words[i] for i in (WORDS * rng.random(20_000) ** 1.5).astype(np.int64))
    size = np.minimum(low + rng.lognormal(4.0, 0.9, count), 1_500).astype(np.int64)
    start = rng.integers(0, len(long) - 1_600, count)
    parts = [slice(first, first + TEXT_ROWS) for first in range(0, count, TEXT_ROWS)]
    return pa.chunked_array(
        [pa.array([long[a : a + n] for a, n in zip(start[part], size[part], strict=True)]) for part in parts], pa.utf8()
    )


def _photos(number: Array) -> pa.Array:
    """The name of a picture for each number."""
    return pc.binary_join_element_wise("photo", pc.cast(pa.array(number), pa.utf8()), ".jpg", "")
