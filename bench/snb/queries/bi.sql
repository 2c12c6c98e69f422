-- name: bi1
SELECT year(creationDate)::BIGINT AS year, NOT is_post AS isComment,
       CASE WHEN length < 40 THEN 0 WHEN length < 80 THEN 1 WHEN length < 160 THEN 2 ELSE 3 END AS category,
       count(*), avg(length), sum(length)::BIGINT,
       count(*) / (SELECT count(*) FROM message WHERE creationDate < $datetime)
FROM message WHERE creationDate < $datetime GROUP BY ALL ORDER BY year DESC, isComment, category;

-- name: bi2
WITH used AS (SELECT tag.name, m.creationDate < $date + to_days(100) AS early
              FROM tagclass c JOIN tag ON tag.class = c.number
                   LEFT JOIN (SELECT t.tag, m.creationDate FROM message_tag t JOIN message m ON m.number = t.message
                              WHERE m.creationDate >= $date AND m.creationDate < $date + to_days(200)) m
                   ON m.tag = tag.number
              WHERE c.name = $tagClass)
SELECT name, count(*) FILTER (WHERE early) AS w1, count(*) FILTER (WHERE NOT early) AS w2, abs(w1 - w2) AS diff
FROM used GROUP BY name ORDER BY diff DESC, name LIMIT 100;

-- name: bi3
SELECT f.number, f.title, f.creationDate, p.number, count(DISTINCT m.number) AS messages
FROM place h JOIN place c ON c.part_of = h.number JOIN person p ON p.city = c.number
     JOIN forum f ON f.moderator = p.number JOIN message m ON m.forum = f.number
     JOIN message_tag t ON t.message = m.number JOIN tag ON tag.number = t.tag
     JOIN tagclass k ON k.number = tag.class
WHERE h.name = $country AND h.kind = 'country' AND k.name = $tagClass
GROUP BY f.number, f.title, f.creationDate, p.number ORDER BY messages DESC, f.number LIMIT 20;

-- name: bi4
WITH popular AS (SELECT f.number, c.part_of, count(*) AS members
                 FROM forum f JOIN member m ON m.forum = f.number JOIN person p ON p.number = m.person
                      JOIN place c ON c.number = p.city
                 WHERE f.creationDate > $date GROUP BY ALL),
     top AS (SELECT number FROM popular GROUP BY number ORDER BY max(members) DESC, number LIMIT 100),
     written AS (SELECT creator, count(*) AS n FROM message WHERE forum IN (SELECT number FROM top) GROUP BY creator)
SELECT p.number, p.firstName, p.lastName, p.creationDate, coalesce(w.n, 0) AS messages
FROM person p LEFT JOIN written w ON w.creator = p.number
WHERE p.number IN (SELECT person FROM member WHERE forum IN (SELECT number FROM top))
ORDER BY messages DESC, p.number LIMIT 100;

-- name: bi5
WITH written AS (SELECT m.number, m.creator FROM tag t JOIN message_tag x ON x.tag = t.number
                 JOIN message m ON m.number = x.message WHERE t.name = $tag),
     counted AS (SELECT creator, (SELECT count(*) FROM message c WHERE c.reply_of = w.number) AS replies,
                        (SELECT count(*) FROM likes l WHERE l.message = w.number) AS likes FROM written w)
SELECT creator, sum(replies)::BIGINT AS replies, sum(likes)::BIGINT AS likes, count(*) AS messages,
       (count(*) + 2 * sum(replies) + 10 * sum(likes))::BIGINT AS score
FROM counted GROUP BY creator ORDER BY score DESC, creator LIMIT 100;

-- name: bi6
WITH written AS (SELECT m.number, m.creator FROM tag t JOIN message_tag x ON x.tag = t.number
                 JOIN message m ON m.number = x.message WHERE t.name = $tag),
     liker AS (SELECT DISTINCT w.creator, l.person FROM written w LEFT JOIN likes l ON l.message = w.number),
     popular AS (SELECT m.creator AS person, count(*) AS likes FROM message m JOIN likes l ON l.message = m.number
                 WHERE m.creator IN (SELECT person FROM liker) GROUP BY m.creator)
SELECT liker.creator, coalesce(sum(popular.likes), 0)::BIGINT AS authority
FROM liker LEFT JOIN popular ON popular.person = liker.person
GROUP BY liker.creator ORDER BY authority DESC, liker.creator LIMIT 100;

-- name: bi7
WITH t AS (SELECT number FROM tag WHERE name = $tag),
     tagged AS (SELECT message FROM message_tag WHERE tag = (FROM t))
SELECT o.name, count(DISTINCT c.number) AS replies
FROM tagged JOIN message c ON c.reply_of = tagged.message JOIN message_tag x ON x.message = c.number
     JOIN tag o ON o.number = x.tag
WHERE c.number NOT IN (FROM tagged)
GROUP BY o.name ORDER BY replies DESC, o.name LIMIT 100;

-- name: bi8
WITH t AS (SELECT number FROM tag WHERE name = $tag),
     point AS (SELECT person, 100 AS points FROM interest WHERE tag = (FROM t)
               UNION ALL
               SELECT m.creator, count(*) FROM message_tag x JOIN message m ON m.number = x.message
               WHERE x.tag = (FROM t) AND m.creationDate > $startDate AND m.creationDate < $endDate GROUP BY m.creator),
     scored AS (SELECT person, sum(points)::BIGINT AS score FROM point GROUP BY person)
SELECT s.person, s.score, coalesce(sum(f.score), 0)::BIGINT AS friends
FROM scored s LEFT JOIN knows k ON k.a = s.person LEFT JOIN scored f ON f.person = k.b
GROUP BY s.person, s.score ORDER BY s.score + friends DESC, s.person LIMIT 100;

-- name: bi9
SELECT p.number, p.firstName, p.lastName, count(DISTINCT r.number) AS threads, count(*) AS messages
FROM message r JOIN message m ON m.root = r.number JOIN person p ON p.number = r.creator
WHERE r.is_post AND r.creationDate >= $startDate AND r.creationDate <= $endDate
  AND m.creationDate >= $startDate AND m.creationDate <= $endDate
GROUP BY p.number, p.firstName, p.lastName ORDER BY messages DESC, p.number LIMIT 100;

-- name: bi10
WITH RECURSIVE
    reached(number, distance) USING KEY (number) AS (
        SELECT $person::BIGINT, 0
        UNION
        SELECT k.b, min(r.distance) + 1 FROM reached r JOIN knows k ON k.a = r.number
        WHERE r.distance < 4 AND k.b NOT IN (SELECT number FROM recurring.reached) GROUP BY k.b),
    expert AS (SELECT p.number FROM reached r JOIN person p USING (number) JOIN place c ON c.number = p.city
               JOIN place h ON h.number = c.part_of WHERE r.distance IN (3, 4) AND h.name = $country),
    chosen AS (SELECT DISTINCT m.number, m.creator FROM expert e JOIN message m ON m.creator = e.number
               JOIN message_tag t ON t.message = m.number JOIN tag ON tag.number = t.tag
               JOIN tagclass k ON k.number = tag.class WHERE k.name = $tagClass)
SELECT c.creator, tag.name, count(*) AS messages
FROM chosen c JOIN message_tag t ON t.message = c.number JOIN tag ON tag.number = t.tag
GROUP BY c.creator, tag.name ORDER BY messages DESC, tag.name, c.creator LIMIT 100;

-- name: bi11
WITH local AS (SELECT p.number FROM person p JOIN place c ON c.number = p.city JOIN place h ON h.number = c.part_of
               WHERE h.name = $country AND h.kind = 'country'),
     near AS (SELECT a, b FROM knows WHERE a IN (FROM local) AND b IN (FROM local)
              AND creationDate >= $startDate AND creationDate <= $endDate)
SELECT count(*) FROM near x JOIN near y ON y.a = x.b JOIN near z ON z.a = y.b AND z.b = x.a
WHERE x.a < x.b AND y.a < y.b;

-- name: bi12
WITH counted AS (SELECT p.number, count(m.number) AS messages
                 FROM person p LEFT JOIN message m
                      ON m.creator = p.number AND m.content IS NOT NULL AND m.length < $lengthThreshold
                         AND m.creationDate > $startDate AND list_contains($languages::VARCHAR[], m.language)
                 GROUP BY p.number)
SELECT messages, count(*) AS persons FROM counted GROUP BY messages ORDER BY persons DESC, messages DESC;

-- name: bi13
WITH zombie AS (SELECT p.number
                FROM place h JOIN place c ON c.part_of = h.number JOIN person p ON p.city = c.number
                     LEFT JOIN message m ON m.creator = p.number AND m.creationDate < $endDate
                WHERE h.name = $country AND h.kind = 'country' AND p.creationDate < $endDate
                GROUP BY p.number, p.creationDate
                HAVING count(m.number) / (12 * (year($endDate) - year(p.creationDate))
                                          + month($endDate) - month(p.creationDate) + 1) < 1),
     liked AS (SELECT m.creator, l.person, l.person IN (SELECT number FROM zombie) AS by_zombie
               FROM message m JOIN likes l ON l.message = m.number JOIN person p ON p.number = l.person
               WHERE p.creationDate < $endDate)
SELECT z.number, count(l.person) FILTER (WHERE l.by_zombie) AS zombie_likes, count(l.person) AS likes,
       CASE WHEN likes = 0 THEN 0.0::DOUBLE ELSE zombie_likes / likes END AS score
FROM zombie z LEFT JOIN liked l ON l.creator = z.number GROUP BY z.number ORDER BY score DESC, z.number LIMIT 100;

-- name: bi14
WITH pair AS (SELECT c.number AS city, c.name, a.number AS a, b.number AS b
              FROM place x JOIN place c ON c.part_of = x.number JOIN person a ON a.city = c.number
                   JOIN knows k ON k.a = a.number JOIN person b ON b.number = k.b
                   JOIN place d ON d.number = b.city JOIN place y ON y.number = d.part_of
              WHERE x.name = $country1 AND x.kind = 'country' AND y.name = $country2 AND y.kind = 'country'),
     reply AS (SELECT DISTINCT r.creator AS a, m.creator AS b FROM message r JOIN message m ON m.number = r.reply_of),
     liking AS (SELECT DISTINCT l.person AS a, m.creator AS b FROM likes l JOIN message m ON m.number = l.message),
     scored AS (SELECT p.*, (4 * (EXISTS (FROM reply r WHERE r.a = p.a AND r.b = p.b))::INT
                             + (EXISTS (FROM reply r WHERE r.a = p.b AND r.b = p.a))::INT
                             + 10 * (EXISTS (FROM liking l WHERE l.a = p.a AND l.b = p.b))::INT
                             + (EXISTS (FROM liking l WHERE l.a = p.b AND l.b = p.a))::INT)::DOUBLE AS score
                FROM pair p)
SELECT a, b, name, score FROM scored
QUALIFY row_number() OVER (PARTITION BY city ORDER BY score DESC, a, b) = 1 ORDER BY score DESC, a, b LIMIT 100;

-- name: bi16
WITH a AS (SELECT m.creator AS person, count(*) AS messages FROM tag t JOIN message_tag x ON x.tag = t.number
           JOIN message m ON m.number = x.message WHERE t.name = $tagA AND m.creationDate >= $dateA
           AND m.creationDate < $dateA + to_days(1) GROUP BY m.creator),
     b AS (SELECT m.creator AS person, count(*) AS messages FROM tag t JOIN message_tag x ON x.tag = t.number
           JOIN message m ON m.number = x.message WHERE t.name = $tagB AND m.creationDate >= $dateB
           AND m.creationDate < $dateB + to_days(1) GROUP BY m.creator)
SELECT a.person, a.messages, b.messages, true
FROM a JOIN b USING (person)
WHERE (SELECT count(*) FROM knows k WHERE k.a = a.person AND k.b IN (SELECT person FROM a)) <= $most
  AND (SELECT count(*) FROM knows k WHERE k.a = a.person AND k.b IN (SELECT person FROM b)) <= $most
ORDER BY a.messages + b.messages DESC, a.person LIMIT 20;

-- name: bi17
WITH tagged AS (SELECT m.* FROM tag t JOIN message_tag x ON x.tag = t.number JOIN message m ON m.number = x.message
                WHERE t.name = $tag),
     talk AS (SELECT m.number, m.forum, m.creationDate, m.creator AS p2, c.creator AS p3
              FROM tagged m JOIN tagged c ON c.reply_of = m.number WHERE m.creator <> c.creator)
SELECT m.creator AS person, count(DISTINCT talk.number) AS messages
FROM tagged m JOIN talk ON talk.creationDate > m.creationDate + to_hours($hours) AND talk.forum <> m.forum
     JOIN member x ON x.forum = m.forum AND x.person = talk.p2
     JOIN member y ON y.forum = m.forum AND y.person = talk.p3
WHERE m.creator <> talk.p2 AND m.creator <> talk.p3
  AND NOT EXISTS (SELECT 1 FROM member z WHERE z.forum = talk.forum AND z.person = m.creator)
GROUP BY m.creator ORDER BY messages DESC, person LIMIT 10;

-- name: bi18
WITH fan AS (SELECT i.person FROM tag t JOIN interest i ON i.tag = t.number WHERE t.name = $tag)
SELECT x.a AS person1, y.b AS person2, count(*) AS mutual
FROM knows x JOIN knows y ON y.a = x.b
WHERE x.a IN (FROM fan) AND y.b IN (FROM fan) AND x.a <> y.b
  AND NOT EXISTS (SELECT 1 FROM knows k WHERE k.a = x.a AND k.b = y.b)
GROUP BY ALL ORDER BY mutual DESC, person1, person2 LIMIT 20;

-- name: bi19
WITH RECURSIVE
    cost(source, number, weight) USING KEY (source, number) AS (
        SELECT number, number, 0::BIGINT FROM person WHERE city = $city1
        UNION
        SELECT c.source, k.b, min(c.weight + k.interaction)
        FROM cost c JOIN knows k ON k.a = c.number AND k.interaction IS NOT NULL
             LEFT JOIN recurring.cost old ON old.source = c.source AND old.number = k.b
        WHERE old.weight IS NULL OR c.weight + k.interaction < old.weight
        GROUP BY c.source, k.b),
    pair AS (SELECT c.source, c.number, c.weight FROM cost c JOIN person p ON p.number = c.number
             WHERE p.city = $city2 AND c.source <> c.number)
SELECT source, number, weight::DOUBLE FROM pair WHERE weight = (SELECT min(weight) FROM pair)
ORDER BY source, number;

-- name: bi20
WITH RECURSIVE
    worker AS (SELECT w.person FROM organisation o JOIN work w ON w.organisation = o.number
               WHERE o.name = $company AND o.kind = 'company'),
    cost(number, weight) USING KEY (number) AS (
        SELECT $person::BIGINT, 0::BIGINT
        UNION
        SELECT k.b, min(c.weight + k.studied)
        FROM cost c JOIN knows k ON k.a = c.number AND k.studied IS NOT NULL
             LEFT JOIN recurring.cost old ON old.number = k.b
        WHERE old.weight IS NULL OR c.weight + k.studied < old.weight
        GROUP BY k.b),
    found AS (SELECT c.number, c.weight FROM cost c WHERE c.number IN (FROM worker)
              AND $person::BIGINT NOT IN (FROM worker) AND c.number <> $person::BIGINT)
SELECT number, weight::DOUBLE FROM found WHERE weight = (SELECT min(weight) FROM found)
ORDER BY weight, number LIMIT 20;
