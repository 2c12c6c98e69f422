// name: is1
MATCH (p:Person {number: $person})-[:PersonIsLocatedIn]->(c:Place)
RETURN p.firstName, p.lastName, p.birthday, p.locationIP, p.browserUsed, c.number, p.gender, p.creationDate

// name: is2
MATCH (p:Person {number: $person})<-[:HasCreator]-(m:Message)-[:RootPost]->(r:Message)-[:HasCreator]->(a:Person)
RETURN m.number, coalesce(m.content, m.imageFile), m.creationDate, r.number, a.number, a.firstName, a.lastName
ORDER BY m.creationDate DESC, m.number DESC LIMIT 10

// name: is3
MATCH (p:Person {number: $person})-[k:Knows]-(f:Person)
RETURN f.number, f.firstName, f.lastName, k.creationDate ORDER BY k.creationDate DESC, f.number

// name: is4
MATCH (m:Message {number: $message}) RETURN m.creationDate, coalesce(m.content, m.imageFile)

// name: is5
MATCH (m:Message {number: $message})-[:HasCreator]->(p:Person) RETURN p.number, p.firstName, p.lastName

// name: is6
MATCH (m:Message {number: $message})<-[:ContainerOf]-(f:Forum)-[:HasModerator]->(p:Person)
RETURN f.number, f.title, p.number, p.firstName, p.lastName

// name: is7
MATCH (m:Message {number: $message})<-[:ReplyOf]-(c:Message)-[:HasCreator]->(p:Person)
OPTIONAL MATCH (m)-[:HasCreator]->(o:Person)-[k:Knows]-(p)
RETURN c.number, c.content, c.creationDate, p.number, p.firstName, p.lastName, o.number IS NOT NULL
ORDER BY c.creationDate DESC, p.number
