-- name: iu1
INSERT INTO person BY NAME SELECT $number AS number, $firstName AS firstName, $lastName AS lastName, $gender AS gender,
    $birthday AS birthday, $creationDate AS creationDate, $locationIP AS locationIP, $browserUsed AS browserUsed,
    $speaks AS speaks, $email AS email, $city AS city;
INSERT INTO interest BY NAME SELECT $number AS person, unnest([$tag1, $tag2]) AS tag;
INSERT INTO study BY NAME SELECT $number AS person, $university AS organisation, $classYear AS classYear;
INSERT INTO work BY NAME SELECT $number AS person, $company AS organisation, $workFrom AS workFrom;

-- name: iu2
INSERT INTO likes BY NAME SELECT $person AS person, $post AS message, $creationDate AS creationDate;

-- name: iu3
INSERT INTO likes BY NAME SELECT $person AS person, $comment AS message, $creationDate AS creationDate;

-- name: iu4
INSERT INTO forum BY NAME SELECT $number AS number, $title AS title, $creationDate AS creationDate,
    $moderator AS moderator;
INSERT INTO forum_tag BY NAME SELECT $number AS forum, $tag AS tag;

-- name: iu5
INSERT INTO member BY NAME SELECT $forum AS forum, $person AS person, $joinDate AS joinDate;

-- name: iu6
INSERT INTO message BY NAME SELECT $number AS number, $creationDate AS creationDate, $locationIP AS locationIP,
    $browserUsed AS browserUsed, $content AS content, $language AS language, $length AS length, true AS is_post,
    $creator AS creator, $country AS place, $forum AS forum, $number AS root;
INSERT INTO message_tag BY NAME SELECT $number AS message, unnest([$tag1, $tag2]) AS tag;

-- name: iu7
INSERT INTO message BY NAME SELECT $number AS number, $creationDate AS creationDate, $locationIP AS locationIP,
    $browserUsed AS browserUsed, $content AS content, $language AS language, $length AS length, false AS is_post,
    $creator AS creator, $country AS place, $forum AS forum, $root AS root, $parent AS reply_of;
INSERT INTO message_tag BY NAME SELECT $number AS message, $tag AS tag;

-- name: iu8
INSERT INTO knows BY NAME SELECT unnest([$a, $b]) AS a, unnest([$b, $a]) AS b, $creationDate AS creationDate;

-- name: del1
INSERT INTO gone WITH RECURSIVE below AS (
    SELECT number FROM message WHERE creator = $person OR forum IN (SELECT number FROM forum WHERE moderator = $person)
    UNION SELECT m.number FROM below JOIN message m ON m.reply_of = below.number)
    SELECT number FROM below;
DELETE FROM likes WHERE person = $person;
DELETE FROM knows WHERE a = $person OR b = $person;
DELETE FROM interest WHERE person = $person;
DELETE FROM study WHERE person = $person;
DELETE FROM work WHERE person = $person;
DELETE FROM member WHERE person = $person OR forum IN (SELECT number FROM forum WHERE moderator = $person);
DELETE FROM forum_tag WHERE forum IN (SELECT number FROM forum WHERE moderator = $person);
DELETE FROM forum WHERE moderator = $person;
DELETE FROM person WHERE number = $person;

-- name: del2
DELETE FROM likes WHERE person = $person AND message = $post;

-- name: del3
DELETE FROM likes WHERE person = $person AND message = $comment;

-- name: del4
INSERT INTO gone SELECT number FROM message WHERE forum = $forum;
DELETE FROM member WHERE forum = $forum;
DELETE FROM forum_tag WHERE forum = $forum;
DELETE FROM forum WHERE number = $forum;

-- name: del5
DELETE FROM member WHERE forum = $forum AND person = $person;

-- name: del6
INSERT INTO gone SELECT number FROM message WHERE root = $post;

-- name: del7
INSERT INTO gone WITH RECURSIVE below AS (
    SELECT $comment::BIGINT AS number
    UNION SELECT m.number FROM below JOIN message m ON m.reply_of = below.number)
    SELECT number FROM below;

-- name: del8
DELETE FROM knows WHERE a = $a AND b = $b OR a = $b AND b = $a;

-- name: sweep
DELETE FROM likes WHERE message IN (FROM gone);
DELETE FROM message_tag WHERE message IN (FROM gone);
DELETE FROM message WHERE number IN (FROM gone);
DELETE FROM gone;
