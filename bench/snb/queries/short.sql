-- name: is1
SELECT firstName, lastName, birthday, locationIP, browserUsed, city, gender, creationDate
FROM person WHERE number = $person;

-- name: is2
SELECT m.number, coalesce(m.content, m.imageFile), m.creationDate, r.number, p.number, p.firstName, p.lastName
FROM message m JOIN message r ON r.number = m.root JOIN person p ON p.number = r.creator
WHERE m.creator = $person
ORDER BY m.creationDate DESC, m.number DESC LIMIT 10;

-- name: is3
SELECT p.number, p.firstName, p.lastName, k.creationDate
FROM knows k JOIN person p ON p.number = k.b WHERE k.a = $person
ORDER BY k.creationDate DESC, p.number;

-- name: is4
SELECT creationDate, coalesce(content, imageFile) FROM message WHERE number = $message;

-- name: is5
SELECT p.number, p.firstName, p.lastName
FROM message m JOIN person p ON p.number = m.creator WHERE m.number = $message;

-- name: is6
SELECT f.number, f.title, p.number, p.firstName, p.lastName
FROM message m JOIN forum f ON f.number = m.forum JOIN person p ON p.number = f.moderator
WHERE m.number = $message;

-- name: is7
SELECT c.number, c.content, c.creationDate, p.number, p.firstName, p.lastName,
       EXISTS (SELECT 1 FROM knows k WHERE k.a = m.creator AND k.b = c.creator)
FROM message m JOIN message c ON c.reply_of = m.number JOIN person p ON p.number = c.creator
WHERE m.number = $message
ORDER BY c.creationDate DESC, p.number;
