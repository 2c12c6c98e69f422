"""The network in DuckDB: the oracle of every answer, and a peer of the benchmark.

Posts and comments are one table, with the columns that our edges contain: creator, place, forum, thread and parent.
`knows` has a row for each direction. The rows are sorted by the column that most queries select.
"""

from __future__ import annotations

from typing import Any

from bench.snb.generate import Data

TABLES = {
    "place": "SELECT p.*, e.to AS part_of FROM {Place} p LEFT JOIN {IsPartOf} e ON e.from = p.number",
    "tagclass": "SELECT c.*, e.to AS subclass_of FROM {TagClass} c LEFT JOIN {IsSubclassOf} e ON e.from = c.number",
    "tag": "SELECT t.*, e.to AS class FROM {Tag} t JOIN {HasType} e ON e.from = t.number",
    "organisation": "SELECT o.*, e.to AS place FROM {Organisation} o "
    "JOIN {OrganisationIsLocatedIn} e ON e.from = o.number",
    "person": "SELECT p.*, e.to AS city FROM {Person} p "
    "JOIN {PersonIsLocatedIn} e ON e.from = p.number ORDER BY p.number",
    "knows": "SELECT * FROM (SELECT e.from AS a, e.to AS b, creationDate, interaction, studied FROM {Knows} e "
    "UNION ALL SELECT e.to, e.from, creationDate, interaction, studied FROM {Knows} e) ORDER BY a, b",
    "interest": "SELECT e.from AS person, e.to AS tag FROM {HasInterest} e ORDER BY ALL",
    "study": "SELECT e.from AS person, e.to AS organisation, classYear FROM {StudyAt} e ORDER BY ALL",
    "work": "SELECT e.from AS person, e.to AS organisation, workFrom FROM {WorkAt} e ORDER BY ALL",
    "forum": "SELECT f.*, e.to AS moderator FROM {Forum} f "
    "JOIN {HasModerator} e ON e.from = f.number ORDER BY f.number",
    "forum_tag": "SELECT e.from AS forum, e.to AS tag FROM {ForumHasTag} e ORDER BY ALL",
    "member": "SELECT e.from AS forum, e.to AS person, joinDate FROM {HasMember} e ORDER BY person, forum",
    "message": "SELECT * FROM (SELECT m.*, true AS is_post, c.to AS creator, l.to AS place, f.from AS forum, "
    "m.number AS root, NULL::BIGINT AS reply_of FROM {Post} m JOIN {PostHasCreator} c ON c.from = m.number "
    "JOIN {PostIsLocatedIn} l ON l.from = m.number JOIN {ContainerOf} f ON f.to = m.number UNION ALL "
    "SELECT m.*, false, c.to, l.to, f.from, r.to, coalesce(p.to, o.to) FROM {Comment} m "
    "JOIN {CommentHasCreator} c ON c.from = m.number JOIN {CommentIsLocatedIn} l ON l.from = m.number "
    "JOIN {ContainsComment} f ON f.to = m.number JOIN {RootPost} r ON r.from = m.number "
    "LEFT JOIN {ReplyOfPost} p ON p.from = m.number LEFT JOIN {ReplyOfComment} o ON o.from = m.number) "
    "ORDER BY creator, creationDate",
    "message_tag": "SELECT e.from AS message, e.to AS tag FROM {PostHasTag} e UNION ALL SELECT e.from, e.to "
    "FROM {CommentHasTag} e ORDER BY ALL",
    "likes": "SELECT e.from AS person, e.to AS message, creationDate FROM {LikesPost} e UNION ALL "
    "SELECT e.from, e.to, creationDate FROM {LikesComment} e ORDER BY message, person",
}
INDEXES = ("person", "message", "forum")


def fill(db: Any, data: Data) -> None:
    """Create the tables in an empty database."""
    files = {name: f"'{data.path(name)}'" for name in data.names}
    for name, statement in TABLES.items():
        db.execute(f"CREATE TABLE {name} AS {statement.format(**files)}")
    for name in INDEXES:
        db.execute(f"CREATE UNIQUE INDEX {name}_number ON {name} (number)")
