// name: ic1
MATCH (p:Person {number: $person})-[k:Knows* SHORTEST 1..3]-(f:Person)
WHERE f.firstName = $firstName AND f.number <> $person
WITH f, length(k) AS distance ORDER BY distance, f.lastName, f.number LIMIT 20
MATCH (f)-[:PersonIsLocatedIn]->(c:Place)
OPTIONAL MATCH (f)-[s:StudyAt]->(u:Organisation)-[:OrganisationIsLocatedIn]->(l:Place)
WITH f, distance, c, collect(DISTINCT CASE WHEN u.name IS NULL THEN NULL ELSE
     {university: u.name, year: s.classYear, city: l.name} END) AS universities
OPTIONAL MATCH (f)-[w:WorkAt]->(o:Organisation)-[:OrganisationIsLocatedIn]->(h:Place)
WITH f, distance, c, universities, collect(DISTINCT CASE WHEN o.name IS NULL THEN NULL ELSE
     {company: o.name, since: w.workFrom, country: h.name} END) AS companies
RETURN f.number, f.lastName, distance, f.birthday, f.creationDate, f.gender, f.browserUsed, f.locationIP, f.email,
       f.speaks, c.name, universities, companies
ORDER BY distance, f.lastName, f.number

// name: ic2
MATCH (p:Person {number: $person})-[:Knows]-(f:Person)<-[:HasCreator]-(m:Message)
WHERE m.creationDate < $maxDate
RETURN f.number, f.firstName, f.lastName, m.number, coalesce(m.content, m.imageFile), m.creationDate
ORDER BY m.creationDate DESC, m.number LIMIT 20

// name: ic3
MATCH (p:Person {number: $person})-[:Knows*1..2]-(f:Person) WHERE f.number <> $person
WITH DISTINCT f
MATCH (f)-[:PersonIsLocatedIn]->(:Place)-[:IsPartOf]->(h:Place)
WHERE h.name <> $countryX AND h.name <> $countryY
WITH f
MATCH (f)<-[:HasCreator]-(m:Message)-[:MessageIsLocatedIn]->(c:Place)
WHERE m.creationDate >= $startDate AND m.creationDate < $startDate + to_days(CAST($days, "INT32"))
  AND (c.name = $countryX OR c.name = $countryY)
WITH f, sum(CASE WHEN c.name = $countryX THEN 1 ELSE 0 END) AS x, sum(CASE WHEN c.name = $countryY THEN 1 ELSE 0 END) AS y
WHERE x > 0 AND y > 0
RETURN f.number, f.firstName, f.lastName, x, y, x + y AS messages ORDER BY messages DESC, f.number LIMIT 20

// name: ic4
MATCH (p:Person {number: $person})-[:Knows]-(f:Person)<-[:HasCreator]-(m:Message)-[:HasTag]->(t:Tag)
WHERE m.isPost AND m.creationDate < $startDate + to_days(CAST($days, "INT32"))
WITH t, sum(CASE WHEN m.creationDate >= $startDate THEN 1 ELSE 0 END) AS posts,
     sum(CASE WHEN m.creationDate < $startDate THEN 1 ELSE 0 END) AS earlier
WHERE earlier = 0
RETURN t.name, posts ORDER BY posts DESC, t.name LIMIT 10

// name: ic5
MATCH (p:Person {number: $person})-[:Knows*1..2]-(f:Person) WHERE f.number <> $person
WITH DISTINCT f
MATCH (f)<-[h:HasMember]-(g:Forum) WHERE h.joinDate > $minDate
OPTIONAL MATCH (f)<-[:HasCreator]-(m:Message)<-[:ContainerOf]-(g) WHERE m.isPost
RETURN g.title, g.number, count(m.number) AS posts ORDER BY posts DESC, g.number LIMIT 20

// name: ic6
MATCH (p:Person {number: $person})-[:Knows*1..2]-(f:Person) WHERE f.number <> $person
WITH DISTINCT f
MATCH (f)<-[:HasCreator]-(m:Message)-[:HasTag]->(t:Tag {name: $tag}) WHERE m.isPost
MATCH (m)-[:HasTag]->(o:Tag) WHERE o.name <> $tag
RETURN o.name, count(*) AS posts ORDER BY posts DESC, o.name LIMIT 10

// name: ic7
MATCH (p:Person {number: $person})<-[:HasCreator]-(m:Message)<-[l:Likes]-(f:Person)
WITH f, max(l.creationDate) AS liked
MATCH (p:Person {number: $person})<-[:HasCreator]-(m:Message)<-[l:Likes]-(f) WHERE l.creationDate = liked
WITH f, liked, min(m.number) AS number ORDER BY liked DESC, f.number LIMIT 20
MATCH (m:Message) WHERE m.number = number
OPTIONAL MATCH (f)-[k:Knows]-(q:Person {number: $person})
RETURN f.number, f.firstName, f.lastName, liked, m.number, coalesce(m.content, m.imageFile),
       CAST(floor((to_epoch_ms(liked) - to_epoch_ms(m.creationDate)) / 60000.0), "INT64"), q.number IS NULL
ORDER BY liked DESC, f.number

// name: ic8
MATCH (p:Person {number: $person})<-[:HasCreator]-(m:Message)<-[:ReplyOf]-(c:Message)-[:HasCreator]->(a:Person)
RETURN a.number, a.firstName, a.lastName, c.creationDate, c.number, c.content
ORDER BY c.creationDate DESC, c.number LIMIT 20

// name: ic9
MATCH (p:Person {number: $person})-[:Knows*1..2]-(f:Person) WHERE f.number <> $person
WITH DISTINCT f
MATCH (f)<-[:HasCreator]-(m:Message) WHERE m.creationDate < $maxDate
RETURN f.number, f.firstName, f.lastName, m.number, coalesce(m.content, m.imageFile), m.creationDate
ORDER BY m.creationDate DESC, m.number LIMIT 20

// name: ic10
MATCH (p:Person {number: $person})-[k:Knows* SHORTEST 1..2]-(f:Person)
WHERE length(k) = 2 AND f.number <> $person
  AND ((date_part('month', f.birthday) = $month AND date_part('day', f.birthday) >= 21)
       OR (date_part('month', f.birthday) = $month % 12 + 1 AND date_part('day', f.birthday) < 22))
WITH p, f
OPTIONAL MATCH (f)<-[:HasCreator]-(m:Message) WHERE m.isPost
OPTIONAL MATCH (m)-[:HasTag]->(t:Tag)<-[:HasInterest]-(p)
WITH f, m.number AS post, count(t.number) AS shared
WITH f, sum(CASE WHEN post IS NULL THEN 0 WHEN shared > 0 THEN 1 ELSE -1 END) AS score
MATCH (f)-[:PersonIsLocatedIn]->(c:Place)
RETURN f.number, f.firstName, f.lastName, score, f.gender, c.name ORDER BY score DESC, f.number LIMIT 10

// name: ic11
MATCH (p:Person {number: $person})-[:Knows*1..2]-(f:Person) WHERE f.number <> $person
WITH DISTINCT f
MATCH (f)-[w:WorkAt]->(o:Organisation)-[:OrganisationIsLocatedIn]->(c:Place)
WHERE w.workFrom < $year AND c.name = $country
RETURN f.number, f.firstName, f.lastName, o.name, w.workFrom ORDER BY w.workFrom, f.number, o.name DESC LIMIT 10

// name: ic12
MATCH (k:TagClass)-[:IsSubclassOf*0..16]->(:TagClass {name: $tagClass})
WITH collect(k.number) AS classes
MATCH (p:Person {number: $person})-[:Knows]-(f:Person)<-[:HasCreator]-(c:Message)-[:ReplyOf]->(m:Message)-[:HasTag]->(t:Tag)-[:HasType]->(y:TagClass)
WHERE m.isPost AND list_contains(classes, y.number)
RETURN f.number, f.firstName, f.lastName, list_sort(collect(DISTINCT t.name)), count(DISTINCT c.number) AS replies
ORDER BY replies DESC, f.number LIMIT 20

// name: ic13
MATCH (a:Person {number: $person1}), (b:Person {number: $person2})
OPTIONAL MATCH (a)-[k:Knows* SHORTEST 1..30]-(b)
RETURN CASE WHEN $person1 = $person2 THEN 0 ELSE coalesce(length(k), -1) END

// name: ic14
MATCH (a:Person {number: $person1})-[k:Knows* ALL SHORTEST 1..30]-(b:Person {number: $person2})
WHERE $person1 <> $person2
WITH list_concat(list_concat([a.number], properties(nodes(k), 'number')), [b.number]) AS persons
UNWIND range(1, CAST(size(persons) - 1, "INT64")) AS at
UNWIND [[persons[at], persons[at + 1]], [persons[at + 1], persons[at]]] AS pair
MATCH (u:Person) WHERE u.number = pair[1]
OPTIONAL MATCH (u)<-[:HasCreator]-(c:Message)-[:ReplyOf]->(m:Message)-[:HasCreator]->(v:Person) WHERE v.number = pair[2]
RETURN persons, sum(CASE WHEN m.number IS NULL THEN 0.0 WHEN m.isPost THEN 1.0 ELSE 0.5 END) AS weight
ORDER BY weight DESC
