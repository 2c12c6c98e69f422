"""A session of the command line whose documents the tests compare: with golden files, and with those of a server."""

from __future__ import annotations

import re

from support.commands import SCHEMA, jsonl

PLACEHOLDERS = (
    (re.compile(r"\bog_[A-Za-z0-9_-]{49}"), "<token>"),
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "<id>"),
    (re.compile(r'("(?:created_at|authored_at)": )\d+'), r"\1<time>"),
    (re.compile(r'("(?:cursor|resume_cursor|page|next)": ?)"[^"]+"'), r'\1"<cursor>"'),
    (re.compile(r'("(?:bytes_removed)": )\d+'), r"\1<bytes>"),
    (re.compile(r'("table_path": ")[^"]+'), r"\1<path>"),
    (re.compile(r"\b[0-9a-f]{32,64}\b"), "<hash>"),
    (re.compile(r'("pagerank": )[\d.]+'), r"\1<number>"),
    (re.compile(r'("version": )"[^"]+"'), r'\1"<version>"'),
    (re.compile(r'("internal_schema_version": )\d+'), r"\1<format>"),
)
SESSION = r"""
init --schema s.pg g.omni --json
load -d people.jsonl --mode merge --json --as ana
load -d bad.jsonl --mode merge --rejects rejects.jsonl --json
load -d bad.jsonl --mode merge --json
load -d people.jsonl --mode append --json
read -q q.gq -n adults -p least=1 --json
read -q q.gq -n adults -p least=1 --page 1 --json
read -q q.gq -n adults -p least=1 --page 1 -f jsonl
read -q q.gq -n adults -p least=99 --at main --json
read -e 'query q() { match { $p: Persn } return { $p.name } }' --json
read -q q.gq -n adults -p least=x --json
read -q q.gq -n adults -p least=1 -b nowhere --json
branch create review --json --as ana
branch create review --json
branch list --json
branch show review --json
branch update review --description 'for review' --json
change -q q.gq -n birthday -p name=Bo -p age=18 -b review --json -m 'a year more'
change -q q.gq -n birthday -p name=Nobody -p age=18 --json
change -q q.gq -n birthday -p name=Bo -p age=18 --if-commit 01ARZ3NDEKTSV4RRFFQ69G5FAV --json
change -e 'query add() { insert Person { name: "Cy", age: 5 } return { $x: 1 } }' --json
change -e 'update Person set { age: 4 } where age < 4 as $p return { $p.name, $p.age }' --json
change -e 'query add() { insert Person { name: "Ana" } }' --json
diff main review --json
diff main review --json --limit 1
diff main review --json --stat
branch merge review --preview --json
branch merge review --json --as ana
branch create other --json --from main
change -q q.gq -n birthday -p name=Ana -p age=50 -b other --json
change -q q.gq -n birthday -p name=Ana -p age=60 --json
branch merge other --preview --json
branch merge other --json
branch merge other --json --resolve theirs --delete-branch
revert main --preview --json
revert main --json --as bo
ingest more.jsonl --branch intake --json
diff main intake --json
commit list --json
commit show main --json
commit changes main --json
commit changes intake --json --limit 1
log --all --json
history Person Ana --json
history Person Nobody --json
blame Person Ana --json
search Ana --rank-of Bo --json
neighbors Person Ana --json
unify Person --keep Ana --drop Bo --dry-run --json
tag create one --json -m 'first tag'
tag list --json
tag create one --json
tag delete one --json
changes poll --start beginning --json
changes poll --cursor nonsense --json
changes baseline --out base.jsonl --json
status --json
snapshot --json
snapshot -b intake --json
schema show --json
schema check s.pg --json
schema plan new.pg --json
schema plan worse.pg --json
schema plan --from s.pg --to worse.pg --json
schema apply worse.pg --json
schema apply new.pg --json
lint q.gq --json
lint wrong.gq --schema s.pg --json
analyze pagerank --json
analyze components --top 1 --json
optimize --json
cleanup --keep 1 --json
cleanup --keep 1 --confirm --json
recover --json
verify --json
verify --deep --json
branch delete intake --json --force
version --json
init --schema notes.pg notes.omni --json
load -d notes.jsonl --mode merge --json --uri notes.omni
ingest notes.jsonl --branch more --json --uri notes.omni
embed --in-graph notes.omni --json
init --schema photos.pg photos.omni --json
load -d photos.jsonl --mode merge --json --uri photos.omni
blob stat Photo a data photos.omni --json
blob stat Photo b data photos.omni --json
token create --actor ana --name ci --expires 2999-01-01T00:00:00Z --only-action read tokens.json --json
token create --actor ana --name ci tokens.json --json
token list tokens.json --json
token revoke --actor ana tokens.json --json
token revoke --actor ana tokens.json --json
queries push q.gq g.omni --json -m 'stored queries'
queries push q.gq g.omni --json
queries list g.omni --json
queries show adults g.omni --json
queries show adult g.omni --json
queries validate g.omni --json
queries validate --schema photos.pg g.omni --json
read adults -p least=18 g.omni --json
read birthday g.omni --json
change birthday -p name=Bo -p age=19 g.omni --json
queries delete one birthday g.omni --json
"""
FILES = {
    "bad.jsonl": jsonl(
        {"type": "Person", "data": {"name": "Di", "age": 3}}, {"type": "Person", "data": {"name": "Ed", "age": "old"}}
    ),
    "more.jsonl": jsonl(
        {"type": "Person", "data": {"name": "Fe"}},
        {"edge": "Knows", "from": "Fe", "to": "Ana"},
    ),
    "new.pg": SCHEMA.replace("age: I32?", "age: I32?\n    city: String?"),
    "notes.pg": 'node Note {\n    slug: String @key\n    text: String\n    v: Vector(4)? @embed("text")\n}\n',
    "notes.jsonl": jsonl({"type": "Note", "data": {"slug": "a", "text": "words"}}),
    "photos.pg": "node Photo {\n    name: String @key\n    data: Blob?\n}\n",
    "photos.jsonl": jsonl(
        {"type": "Photo", "data": {"name": "a", "data": "base64:AAEC"}}, {"type": "Photo", "data": {"name": "b"}}
    ),
    "worse.pg": "node Person {\n    name: String @key\n    age: String\n}\n",
    "wrong.gq": "query one() { match { $p: Person } return { $p.nme } }\n"
    "query two() { match { $p: Person } return { $p } }",
}


def normalized(text: str) -> str:
    for pattern, replacement in PLACEHOLDERS:
        text = pattern.sub(replacement, text)
    return text
