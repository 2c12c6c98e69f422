"""Files in the layout of LDBC's generator as a network of this workload.

The layout is `composite-merged-fk`: CSV files with `|`, one folder per type below `static` and `dynamic`, foreign keys
in the rows of the nodes. Columns are renamed, and edges are taken out of the rows. The threads and the weights of
`Knows`, which our schema derives, are computed.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

from bench.snb.generate import Data

SOURCES = {
    "static": ("Organisation", "Place", "Tag", "TagClass"),
    "dynamic": (
        *("Comment", "Comment_hasTag_Tag", "Forum", "Forum_hasMember_Person", "Forum_hasTag_Tag", "Person"),
        *("Person_hasInterest_Tag", "Person_knows_Person", "Person_likes_Comment", "Person_likes_Post"),
        *("Person_studyAt_University", "Person_workAt_Company", "Post", "Post_hasTag_Tag"),
    ),
}
_DATE = "creationDate::TIMESTAMP::TIMESTAMP_MS AS creationDate"
_MESSAGE = f"id AS number, {_DATE}, locationIP, browserUsed, content"
NODES = {
    "Place": "SELECT id AS number, name, lower(type) AS kind FROM Place",
    "TagClass": "SELECT id AS number, name FROM TagClass",
    "Tag": "SELECT id AS number, name FROM Tag",
    "Organisation": "SELECT id AS number, name, lower(type) AS kind FROM Organisation",
    "Person": f"SELECT id AS number, firstName, lastName, gender, birthday::DATE AS birthday, {_DATE}, locationIP, "
    "browserUsed, string_split(language, ';') AS speaks, string_split(email, ';') AS email FROM Person",
    "Forum": f"SELECT id AS number, title, {_DATE} FROM Forum",
    "Post": f"SELECT {_MESSAGE}, imageFile, language, length::INT AS length FROM Post",
    "Comment": f"SELECT {_MESSAGE}, NULL::VARCHAR AS imageFile, p.language, length::INT AS length "
    "FROM Comment JOIN thread ON thread.comment = Comment.id JOIN (SELECT id AS post, language FROM Post) p "
    "ON p.post = thread.root",
}
EDGES = {
    "IsPartOf": "id, PartOfPlaceId FROM Place WHERE PartOfPlaceId IS NOT NULL",
    "IsSubclassOf": "id, SubclassOfTagClassId FROM TagClass WHERE SubclassOfTagClassId IS NOT NULL",
    "HasType": "id, TypeTagClassId FROM Tag",
    "OrganisationIsLocatedIn": "id, LocationPlaceId FROM Organisation",
    "PersonIsLocatedIn": "id, LocationCityId FROM Person",
    "HasInterest": "PersonId, TagId FROM Person_hasInterest_Tag",
    "StudyAt": "PersonId, UniversityId, classYear::INT AS classYear FROM Person_studyAt_University",
    "WorkAt": "PersonId, CompanyId, workFrom::INT AS workFrom FROM Person_workAt_Company",
    "HasModerator": "id, ModeratorPersonId FROM Forum",
    "HasMember": "ForumId, PersonId, creationDate::TIMESTAMP::TIMESTAMP_MS AS joinDate FROM Forum_hasMember_Person",
    "ForumHasTag": "ForumId, TagId FROM Forum_hasTag_Tag",
    "ContainerOf": "ContainerForumId, id FROM Post",
    "PostHasCreator": "id, CreatorPersonId FROM Post",
    "CommentHasCreator": "id, CreatorPersonId FROM Comment",
    "PostIsLocatedIn": "id, LocationCountryId FROM Post",
    "CommentIsLocatedIn": "id, LocationCountryId FROM Comment",
    "PostHasTag": "PostId, TagId FROM Post_hasTag_Tag",
    "CommentHasTag": "CommentId, TagId FROM Comment_hasTag_Tag",
    "ReplyOfPost": "id, ParentPostId FROM Comment WHERE ParentPostId IS NOT NULL",
    "ReplyOfComment": "id, ParentCommentId FROM Comment WHERE ParentCommentId IS NOT NULL",
    "LikesPost": f"PersonId, PostId, {_DATE} FROM Person_likes_Post",
    "LikesComment": f"PersonId, CommentId, {_DATE} FROM Person_likes_Comment",
    "RootPost": "comment, root FROM thread",
    "ContainsComment": "p.ContainerForumId, comment FROM thread JOIN Post p ON p.id = root",
    "Knows": f"a, b, {_DATE}, interaction, studied FROM knows",
}
THREADS = """
CREATE TABLE thread AS WITH RECURSIVE found AS (
    SELECT id AS comment, ParentPostId AS root FROM Comment WHERE ParentPostId IS NOT NULL
    UNION ALL SELECT c.id, f.root FROM found f JOIN Comment c ON c.ParentCommentId = f.comment)
SELECT * FROM found
"""
WEIGHTS = """
CREATE TABLE knows AS
WITH message AS (SELECT id, CreatorPersonId AS creator FROM Post UNION ALL SELECT id, CreatorPersonId FROM Comment),
     reply AS (SELECT c.CreatorPersonId AS x, m.creator AS y FROM Comment c
               JOIN message m ON m.id = coalesce(c.ParentPostId, c.ParentCommentId)),
     replies AS (SELECT least(x, y) AS a, greatest(x, y) AS b, count(*) AS n FROM reply WHERE x <> y GROUP BY ALL),
     studies AS (SELECT x.PersonId AS a, y.PersonId AS b, min(abs(x.classYear - y.classYear)) + 1 AS years
                 FROM Person_studyAt_University x JOIN Person_studyAt_University y USING (UniversityId) GROUP BY ALL),
     pair AS (SELECT least(Person1Id, Person2Id) AS a, greatest(Person1Id, Person2Id) AS b,
                     min(creationDate) AS creationDate FROM Person_knows_Person GROUP BY ALL)
SELECT pair.*, CASE WHEN n > 0 THEN greatest(round(40 - sqrt(n)), 1)::BIGINT END AS interaction, years AS studied
FROM pair LEFT JOIN replies USING (a, b) LEFT JOIN studies USING (a, b)
"""


def convert(source: Path, data: Data) -> Data:
    """Write the files of a network that has the rows of a folder with `static` and `dynamic`."""
    data.folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as db:
        for folder, names in SOURCES.items():
            for name in names:
                files = source / folder / name / "*.csv"
                # A text with an offset becomes a time in UTC; a time with a zone would become a local one.
                types = ", types = {'creationDate': 'VARCHAR'}" if folder == "dynamic" else ""
                db.execute(f"CREATE VIEW {name} AS FROM read_csv('{files}', delim = '|', header = true{types})")
        db.execute(THREADS)
        db.execute(WEIGHTS)
        for name, select in NODES.items():
            db.execute(f"COPY ({select}) TO '{data.path(name)}' (FORMAT parquet)")
        for name, select in EDGES.items():
            columns, _, rest = select.partition(" FROM ")
            ends, _, more = columns.partition(", ")
            other, _, properties = more.partition(", ")
            shown = ", ".join(filter(None, (f'{ends} AS "from"', f'{other} AS "to"', properties)))
            db.execute(f"COPY (SELECT {shown} FROM {rest}) TO '{data.path(name)}' (FORMAT parquet)")
    (data.folder / "done").touch()
    return data
