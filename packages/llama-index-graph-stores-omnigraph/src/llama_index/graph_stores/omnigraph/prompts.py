"""The prompt by which a language model writes a query."""

from llama_index.core.prompts import PromptTemplate

TEXT_TO_QUERY = PromptTemplate(
    """Task: write one read query in the OmniGraph query language.

Schema (node and edge types with their properties):
{schema}

Rules:
- A query is: match { clauses } return { items } order { keys } limit N. `match` and `return` are required.
- $x: Type binds a node of a type; $x: Type { property: "value" } compares a property.
- $a edgeName $b follows an edge from its source to its target. Write the edge type with a lower-case first letter:
  the type WorksAt is worksAt. $a edgeName{1,3} $b follows one to three edges. $a $e:edgeName $b binds the edge.
- Conditions are clauses: $x.year >= 1990, $x.name in ["Ana", "Bo"], $x.text contains "word", and, or, not ( ).
- not { clauses } and optional { clauses } are blocks.
- Items are $x.property, id($x), count($x), sum($x.p), avg($x.p), min($x.p), max($x.p), collect($x.p), each `as name`.
- There is no group by: items without an aggregate are the group.
- Texts are in double quotes. Use only types, edges and properties of the schema.

Example, for the schema
node Person { name: String @key } node Firm { name: String @key } edge WorksAt: Person -> Firm
and the question "How many people work at each firm?":
match { $p: Person $p worksAt $f } return { $f.name as firm, count($p) as people } order { people desc } limit 20

Answer with the query only, without explanation and without quotation marks around it.

Question: {question}
Query:"""
)
