"""A schema and queries that use every construct of their language at least once, and compile."""

from __future__ import annotations

SCHEMA = """\
// Every construct of the schema language.
interface Named { name: String @index @description("what it is called") }
interface Stamped {
    at: DateTime? @index  // when
}
interface Also { name: String @index @description("what it is called") }

node Person @description("someone") @instruction("be kind") @colour("red", dark=true) implements Named, Stamped {
    email: String @key
    age: I32?
    height: F32?
    wage: F64? @rename_from(pay)
    bio: String? @internal
    vec: Vector(3)? @embed("bio", model="m1") @index
    other: Vector(4)? @embed(bio)
    tags: [String]?
    marks: [I64]
    photo: Blob?
    mood: enum(good, so-so, 2bad)?
    big: U64 @unique
    small: U32?
    far: I64?
    born: Date? @index
    active: Bool
    @unique(name, age)
    @index(age, born)
    @index(tags)
    @range(age, 0..150)
    @range(height, ..2.5)
    @range(wage, -1.5..)
    @check(email, "^[^@\\\\s]+@\\"?.")
    /* the end
       of it */
}

node Team @rename_from("Group") implements Named, Also, Named {
    number: I32
    name: String
    @key(number, name)
}
node Empty {}

edge Knows: Person -> Person @card(0..) @description("acquaintance") {
    since: Date? @index
    weight: F64 @unique
    @unique(src, dst)
    @index(since, dst)
}
edge MemberOf: Person -> Team @card(1..3) { role: enum(lead, member)? note: String? }
edge Team: Team -> Team @card(0..*) @weight(1)
edge Owns: Person -> Team
"""

QUERIES = """\
// Every construct of the query language.
query people($name: String, $tag: String?, $ages: [I32], $v: Vector(3), $big: U64) @description("who") {
    match {
        $p: Person { name: $name, active: true, mood: "so-so", born: date("2020-02-29"), tags: "x", age: 3, }
        $p knows{1,3} $q
        $q <knows> $r
        $p $k:knows $s
        $_ owns $t
        $t: Team {}
        $p.age >= 18
        $p.name starts_with "A\\t\\"\\\\"
        $p.tags contains $tag
        $ages contains $p.age
        $k.weight < 2.5
        $p.wage != $s.wage
        $p.at <= now()
        $p.at > datetime("2020-01-01T10:20:30.123+05:30")
        $p.big = $big
        not {
            $p memberOf $_
            not { $s.age > 3 $s knows $x }
        }
        search($p.bio, "x")
        match_text($p.bio, $name)
        fuzzy($q.bio, "y", 1)
    }
    return {
        $p.name as who, $p, $name
        $k.since, now(), "text", 1.50, [1, 2.5], [], true
        bm25($p.bio, "x") as score
        who as again,
    }
    order { score desc, $p.name asc, again }
    limit 10
}

query ranked($v: Vector(3)) @instruction("use it") @description("ranks") {
    match { $p: Person }
    return { $p.email, nearest($p.vec, $v) as d }
    order { nearest($p.vec, [1, 0.5, 0]), $p.name }
    limit 5
}

query fused() {
    match { $p: Person  $p.active = true }
    return { $p, rrf(nearest($p.vec, "words"), bm25($p.bio, "words"), 30) as score }
    order { score }
    limit 3
}

query counted() {
    match { $t: Team  $p memberOf $t }
    return { $t.name, count($p) as n, sum($p.age) avg($p.wage) min($p.name) max($p.height) }
    order { n desc, $t.name }
}

query staged() {
    match { $p: Person }
    with distinct { $p, $p.age as $age } // the first part
    order { $age }
    limit 3
    with { $p, $age, $p.email as $email }
    match { $q: Person $q.age = $age }
    return { $q, $email }
}

query add($e: String, $at: DateTime?) {
    insert Person { email: $e name: "n", at: $at, marks: [1, 2], big: 7, active: false, vec: [1, 2, 3] }
    insert Knows { from: $e, to: "b", weight: 1 }
    update Person set { bio: "x", at: now(), photo: "base64:AA==" } where email = $e
}

query join($e: String, $n: I64) {
    atomic {
        upsert Person { email: $e } new { name: "n", marks: [], big: 7, active: true } existing { age: 1 } as $p
        insert Team { number: 1, name: lower($e) + "!" } as $t
        insert MemberOf { from: $p to: $t, role: "lead" } as $m
        update Person set { wage: wage * 2 } where wage > $n and not active as $paid
        delete Knows where from = $e or weight is null as $gone
    }
    return { $p, id($t) as team, $m.role, $paid.wage / 2 as was, was, $gone.weight now(), }
}

query drop($e: String) {
    delete Person where email = $e
    delete Knows where from = $e
    delete Knows where weight >= 2.5
}
"""
