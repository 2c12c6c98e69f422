-- name: ic1
WITH RECURSIVE
    d1 AS (SELECT DISTINCT b AS number FROM knows WHERE a = $person),
    d2 AS (SELECT DISTINCT b AS number FROM knows WHERE a IN (FROM d1) AND b <> $person AND b NOT IN (FROM d1)),
    d3 AS (SELECT DISTINCT b AS number FROM knows WHERE a IN (FROM d2) AND b <> $person
           AND b NOT IN (FROM d1) AND b NOT IN (FROM d2)),
    reached AS (SELECT number, 1 AS distance FROM d1 UNION ALL SELECT number, 2 FROM d2
                UNION ALL SELECT number, 3 FROM d3),
    found AS (SELECT p.*, distance FROM reached JOIN person p USING (number) WHERE firstName = $firstName
              ORDER BY distance, lastName, number LIMIT 20)
SELECT f.number, f.lastName, f.distance, f.birthday, f.creationDate, f.gender, f.browserUsed, f.locationIP, f.email,
       f.speaks, c.name,
       coalesce((SELECT list(DISTINCT {university: o.name, year: s.classYear, city: l.name})
                 FROM study s JOIN organisation o ON o.number = s.organisation JOIN place l ON l.number = o.place
                 WHERE s.person = f.number), []),
       coalesce((SELECT list(DISTINCT {company: o.name, since: w.workFrom, country: l.name})
                 FROM work w JOIN organisation o ON o.number = w.organisation JOIN place l ON l.number = o.place
                 WHERE w.person = f.number), [])
FROM found f JOIN place c ON c.number = f.city
ORDER BY f.distance, f.lastName, f.number;

-- name: ic2
SELECT p.number, p.firstName, p.lastName, m.number, coalesce(m.content, m.imageFile), m.creationDate
FROM knows k JOIN person p ON p.number = k.b JOIN message m ON m.creator = p.number
WHERE k.a = $person AND m.creationDate < $maxDate
ORDER BY m.creationDate DESC, m.number LIMIT 20;

-- name: ic3
WITH near AS (SELECT b AS number FROM knows WHERE a = $person
              UNION SELECT y.b FROM knows x JOIN knows y ON y.a = x.b WHERE x.a = $person),
     x AS (SELECT number FROM place WHERE name = $countryX AND kind = 'country'),
     y AS (SELECT number FROM place WHERE name = $countryY AND kind = 'country'),
     counts AS (
         SELECT p.number, p.firstName, p.lastName,
                count(*) FILTER (WHERE m.place = (FROM x)) AS xCount, count(*) FILTER (WHERE m.place = (FROM y)) AS yCount
         FROM near JOIN person p USING (number) JOIN place c ON c.number = p.city JOIN message m ON m.creator = p.number
         WHERE p.number <> $person AND c.part_of NOT IN ((FROM x), (FROM y)) AND m.place IN ((FROM x), (FROM y))
           AND m.creationDate >= $startDate AND m.creationDate < $startDate + to_days($days::INT)
         GROUP BY ALL)
SELECT number, firstName, lastName, xCount, yCount, xCount + yCount AS messages
FROM counts WHERE xCount > 0 AND yCount > 0 ORDER BY messages DESC, number LIMIT 20;

-- name: ic4
WITH post AS (SELECT m.number, m.creationDate FROM knows k JOIN message m ON m.creator = k.b
              WHERE k.a = $person AND m.is_post AND m.creationDate < $startDate + to_days($days::INT)),
     tagged AS (SELECT t.tag, post.number, post.creationDate >= $startDate AS inside
                FROM post JOIN message_tag t ON t.message = post.number)
SELECT tag.name, count(*) AS posts
FROM tagged JOIN tag ON tag.number = tagged.tag
GROUP BY tag.number, tag.name HAVING bool_and(inside)
ORDER BY posts DESC, tag.name LIMIT 10;

-- name: ic5
WITH near AS (SELECT b AS number FROM knows WHERE a = $person
              UNION SELECT y.b FROM knows x JOIN knows y ON y.a = x.b WHERE x.a = $person),
     joined AS (SELECT h.forum, h.person FROM near JOIN member h ON h.person = near.number
                WHERE near.number <> $person AND h.joinDate > $minDate),
     posts AS (SELECT j.forum, count(m.number) AS posts
               FROM joined j LEFT JOIN message m ON m.forum = j.forum AND m.creator = j.person AND m.is_post
               GROUP BY j.forum)
SELECT f.title, f.number, posts.posts FROM posts JOIN forum f ON f.number = posts.forum
ORDER BY posts.posts DESC, f.number LIMIT 20;

-- name: ic6
WITH near AS (SELECT b AS number FROM knows WHERE a = $person
              UNION SELECT y.b FROM knows x JOIN knows y ON y.a = x.b WHERE x.a = $person)
SELECT o.name, count(*) AS posts
FROM near JOIN message m ON m.creator = near.number AND m.is_post
     JOIN message_tag t ON t.message = m.number JOIN tag g ON g.number = t.tag AND g.name = $tag
     JOIN message_tag u ON u.message = m.number JOIN tag o ON o.number = u.tag AND o.name <> $tag
WHERE near.number <> $person
GROUP BY o.number, o.name ORDER BY posts DESC, o.name LIMIT 10;

-- name: ic7
WITH liked AS (
    SELECT l.person, l.creationDate, m.number, coalesce(m.content, m.imageFile) AS content,
           m.creationDate AS written,
           row_number() OVER (PARTITION BY l.person ORDER BY l.creationDate DESC, m.number) AS place
    FROM message m JOIN likes l ON l.message = m.number WHERE m.creator = $person)
SELECT p.number, p.firstName, p.lastName, l.creationDate, l.number, l.content,
       (epoch_ms(l.creationDate) - epoch_ms(l.written)) // 60000,
       NOT EXISTS (SELECT 1 FROM knows k WHERE k.a = $person AND k.b = p.number)
FROM liked l JOIN person p ON p.number = l.person WHERE l.place = 1
ORDER BY l.creationDate DESC, p.number LIMIT 20;

-- name: ic8
SELECT p.number, p.firstName, p.lastName, c.creationDate, c.number, c.content
FROM message m JOIN message c ON c.reply_of = m.number JOIN person p ON p.number = c.creator
WHERE m.creator = $person ORDER BY c.creationDate DESC, c.number LIMIT 20;

-- name: ic9
WITH near AS (SELECT b AS number FROM knows WHERE a = $person
              UNION SELECT y.b FROM knows x JOIN knows y ON y.a = x.b WHERE x.a = $person)
SELECT p.number, p.firstName, p.lastName, m.number, coalesce(m.content, m.imageFile), m.creationDate
FROM near JOIN person p USING (number) JOIN message m ON m.creator = p.number
WHERE p.number <> $person AND m.creationDate < $maxDate
ORDER BY m.creationDate DESC, m.number LIMIT 20;

-- name: ic10
WITH friend AS (SELECT b AS number FROM knows WHERE a = $person),
     foaf AS (SELECT DISTINCT y.b AS number FROM friend x JOIN knows y ON y.a = x.number
              WHERE y.b <> $person AND y.b NOT IN (FROM friend)),
     chosen AS (SELECT p.* FROM foaf JOIN person p USING (number)
                WHERE (month(birthday) = $month AND day(birthday) >= 21)
                   OR (month(birthday) = $month % 12 + 1 AND day(birthday) < 22)),
     scored AS (SELECT c.number, sum(CASE WHEN m.number IS NULL THEN 0 WHEN EXISTS (
                    SELECT 1 FROM message_tag t JOIN interest i ON i.tag = t.tag
                    WHERE t.message = m.number AND i.person = $person) THEN 1 ELSE -1 END)::BIGINT AS score
                FROM chosen c LEFT JOIN message m ON m.creator = c.number AND m.is_post GROUP BY c.number)
SELECT c.number, c.firstName, c.lastName, s.score, c.gender, l.name
FROM scored s JOIN chosen c USING (number) JOIN place l ON l.number = c.city
ORDER BY s.score DESC, c.number LIMIT 10;

-- name: ic11
WITH near AS (SELECT b AS number FROM knows WHERE a = $person
              UNION SELECT y.b FROM knows x JOIN knows y ON y.a = x.b WHERE x.a = $person)
SELECT p.number, p.firstName, p.lastName, o.name, w.workFrom
FROM near JOIN person p USING (number) JOIN work w ON w.person = p.number
     JOIN organisation o ON o.number = w.organisation JOIN place c ON c.number = o.place
WHERE p.number <> $person AND c.name = $country AND w.workFrom < $year
ORDER BY w.workFrom, p.number, o.name DESC LIMIT 10;

-- name: ic12
WITH RECURSIVE class AS (SELECT number FROM tagclass WHERE name = $tagClass
                         UNION SELECT c.number FROM class JOIN tagclass c ON c.subclass_of = class.number)
SELECT p.number, p.firstName, p.lastName, list_sort(list(DISTINCT tag.name)), count(DISTINCT c.number) AS replies
FROM knows k JOIN person p ON p.number = k.b JOIN message c ON c.creator = p.number AND NOT c.is_post
     JOIN message m ON m.number = c.reply_of AND m.is_post
     JOIN message_tag t ON t.message = m.number JOIN tag ON tag.number = t.tag AND tag.class IN (FROM class)
WHERE k.a = $person
GROUP BY p.number, p.firstName, p.lastName ORDER BY replies DESC, p.number LIMIT 20;

-- name: ic13
WITH RECURSIVE
    reached(number, distance) USING KEY (number) AS (
        SELECT $person1::BIGINT, 0
        UNION
        SELECT k.b, min(r.distance) + 1 FROM reached r JOIN knows k ON k.a = r.number
        WHERE k.b NOT IN (SELECT number FROM recurring.reached)
          AND NOT EXISTS (FROM recurring.reached WHERE number = $person2::BIGINT)
        GROUP BY k.b)
SELECT coalesce((SELECT distance FROM reached WHERE number = $person2::BIGINT), -1) AS length
FROM person a, person b WHERE a.number = $person1 AND b.number = $person2;


-- name: ic14
WITH RECURSIVE
    reached(number, distance) USING KEY (number) AS (
        SELECT $person1::BIGINT, 0
        UNION
        SELECT k.b, min(r.distance) + 1 FROM reached r JOIN knows k ON k.a = r.number
        WHERE k.b NOT IN (SELECT number FROM recurring.reached)
          AND NOT EXISTS (FROM recurring.reached WHERE number = $person2::BIGINT)
        GROUP BY k.b),
    path(number, distance, nodes) AS (
        SELECT number, distance, [number] FROM reached WHERE number = $person2::BIGINT
        UNION ALL
        SELECT r.number, r.distance, list_prepend(r.number, p.nodes)
        FROM path p JOIN knows k ON k.b = p.number JOIN reached r ON r.number = k.a AND r.distance = p.distance - 1),
    whole AS (SELECT nodes FROM path WHERE distance = 0 AND len(nodes) > 1),
    step AS (SELECT nodes, unnest(nodes[:-2]) AS a, unnest(nodes[2:]) AS b FROM whole),
    pair AS (SELECT DISTINCT a, b FROM step),
    weight AS (SELECT pair.a, pair.b, sum(CASE WHEN m.is_post THEN 1.0::DOUBLE ELSE 0.5::DOUBLE END) AS weight
               FROM pair JOIN message c ON c.creator IN (pair.a, pair.b) JOIN message m ON m.number = c.reply_of
               WHERE m.creator IN (pair.a, pair.b) AND m.creator <> c.creator GROUP BY ALL)
SELECT nodes, coalesce(sum(w.weight), 0.0)::DOUBLE AS weight
FROM step LEFT JOIN weight w ON w.a = step.a AND w.b = step.b
GROUP BY nodes ORDER BY weight DESC;
