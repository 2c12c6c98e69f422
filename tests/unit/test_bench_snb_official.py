"""Files in the layout of LDBC's generator become the network that they were written from."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from bench.snb.generate import Data, make
from bench.snb.official import EDGES, NODES, SOURCES, convert
from bench.snb.side_by_side import network

DATE = "strftime(creationDate, '%Y-%m-%dT%H:%M:%S.%g+00:00') AS creationDate"
FILES = {
    "static/Place": "number AS id, name, '' AS url, upper(kind[1]) || kind[2:] AS type, e.to AS PartOfPlaceId "
    "FROM Place LEFT JOIN IsPartOf e ON e.from = number",
    "static/TagClass": "number AS id, name, '' AS url, e.to AS SubclassOfTagClassId "
    "FROM TagClass LEFT JOIN IsSubclassOf e ON e.from = number",
    "static/Tag": "number AS id, name, '' AS url, e.to AS TypeTagClassId FROM Tag JOIN HasType e ON e.from = number",
    "static/Organisation": "number AS id, upper(kind[1]) || kind[2:] AS type, name, '' AS url, "
    "e.to AS LocationPlaceId FROM Organisation JOIN OrganisationIsLocatedIn e ON e.from = number",
    "dynamic/Person": f"{DATE}, number AS id, firstName, lastName, gender, birthday, locationIP, browserUsed, "
    "e.to AS LocationCityId, array_to_string(speaks, ';') AS language, array_to_string(email, ';') AS email "
    "FROM Person JOIN PersonIsLocatedIn e ON e.from = number",
    "dynamic/Forum": f"{DATE}, number AS id, title, e.to AS ModeratorPersonId "
    "FROM Forum JOIN HasModerator e ON e.from = number",
    "dynamic/Post": f"{DATE}, number AS id, imageFile, locationIP, browserUsed, language, content, length, "
    "c.to AS CreatorPersonId, f.from AS ContainerForumId, l.to AS LocationCountryId FROM Post "
    "JOIN PostHasCreator c ON c.from = number JOIN ContainerOf f ON f.to = number "
    "JOIN PostIsLocatedIn l ON l.from = number",
    "dynamic/Comment": f"{DATE}, number AS id, locationIP, browserUsed, content, length, c.to AS CreatorPersonId, "
    "l.to AS LocationCountryId, p.to AS ParentPostId, o.to AS ParentCommentId FROM Comment "
    "JOIN CommentHasCreator c ON c.from = number JOIN CommentIsLocatedIn l ON l.from = number "
    "LEFT JOIN ReplyOfPost p ON p.from = number LEFT JOIN ReplyOfComment o ON o.from = number",
    "dynamic/Person_knows_Person": f'{DATE}, "from" AS Person1Id, "to" AS Person2Id FROM Knows',
    "dynamic/Person_hasInterest_Tag": '\'\' AS creationDate, "from" AS PersonId, "to" AS TagId FROM HasInterest',
    "dynamic/Person_likes_Post": f'{DATE}, "from" AS PersonId, "to" AS PostId FROM LikesPost',
    "dynamic/Person_likes_Comment": f'{DATE}, "from" AS PersonId, "to" AS CommentId FROM LikesComment',
    "dynamic/Person_studyAt_University": '\'\' AS creationDate, "from" AS PersonId, "to" AS UniversityId, classYear '
    "FROM StudyAt",
    "dynamic/Person_workAt_Company": '\'\' AS creationDate, "from" AS PersonId, "to" AS CompanyId, workFrom '
    "FROM WorkAt",
    "dynamic/Forum_hasMember_Person": f'{DATE.replace("(creationDate", "(joinDate")}, "from" AS ForumId, '
    '"to" AS PersonId FROM HasMember',
    "dynamic/Forum_hasTag_Tag": '\'\' AS creationDate, "from" AS ForumId, "to" AS TagId FROM ForumHasTag',
    "dynamic/Post_hasTag_Tag": '\'\' AS creationDate, "from" AS PostId, "to" AS TagId FROM PostHasTag',
    "dynamic/Comment_hasTag_Tag": '\'\' AS creationDate, "from" AS CommentId, "to" AS TagId FROM CommentHasTag',
}
"""Folder → the columns of its files, in the order of the official ones."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Data:
    return make(0.003, tmp_path_factory.mktemp("snb"))


@pytest.fixture(scope="module")
def official(data, tmp_path_factory) -> Path:
    """The network as official files; posts in two of them."""
    root = tmp_path_factory.mktemp("official")
    with duckdb.connect() as db:
        for name in data.names:
            db.execute(f"CREATE VIEW {name} AS FROM '{data.path(name)}'")
        for name, select in FILES.items():
            (root / name).mkdir(parents=True)
            parts = ("WHERE id % 2 = 0", "WHERE id % 2 = 1") if name == "dynamic/Post" else ("",)
            for number, part in enumerate(parts):
                rows, path = f"SELECT * FROM (SELECT {select}) {part}", root / name / f"part-{number}.csv"
                db.execute(f"COPY ({rows}) TO '{path}' (FORMAT csv, DELIMITER '|', HEADER true)")
    return root


def test_every_row_of_the_official_files_arrives(data, official, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert sorted(FILES) == sorted(f"{folder}/{name}" for folder, names in SOURCES.items() for name in names)
    found = convert(official, Data(tmp_path / "data"))
    assert found.names == data.names == sorted([*NODES, *EDGES])
    for name in data.names:
        expected, converted = data.read(name), found.read(name)
        assert set(converted.column_names) == set(expected.column_names), name
        order = [(column, "ascending") for column in ("number", "from", "to") if column in expected.column_names]
        converted = converted.select(expected.column_names).sort_by(order)
        assert converted.to_pylist() == expected.sort_by(order).to_pylist(), name


def test_a_run_takes_official_files_in_place_of_generated_ones(official, tmp_path):
    found = network(official, tmp_path)
    assert found.read("Person").num_rows == 96
    modified = found.path("Person").stat().st_mtime_ns
    assert network(official, tmp_path).path("Person").stat().st_mtime_ns == modified, "converted once"
