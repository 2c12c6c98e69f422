"""Random match blocks."""

from __future__ import annotations

from omnigraph.schema.catalog import EdgeType, NodeType
from support.random_reads import paths as reads_paths
from support.random_reads.conditions import Conditions
from support.random_reads.terms import Scope
from support.random_reads.unions import any_hop, edge_ends, mixed_hop, several_types, type_of

_BOUNDS = ["", "", "", "", "{1,1}", "{1,2}", "{1,3}", "{2,2}", "{2,3}", "{3,3}", "{1,5}", "{2,4}"]


class Matching(Conditions):
    """Match blocks."""

    def block(self, scope: Scope, moves: int, depth: int) -> list[str]:
        random = self.random
        outer = dict(scope)
        steps = []
        if not scope or random.random() < 0.15:
            chance = random.random()
            first = self.keyed if chance < 0.25 else self.binding if chance < 0.8 else self.fresh_hop
            steps.append(first(scope))
        for _ in range(moves):
            chance = random.random()
            if random.random() < reads_paths.SHARE:
                steps.append(reads_paths.path(self, scope))
            elif chance < 0.6:
                steps.append(self.hop(scope))
            elif chance < 0.75:
                steps.append(self.again(scope))
            elif chance < 0.85 and len(self.nodes(scope)) < 3:
                steps.append(self.binding(scope))
        steps = [step for step in steps if step]
        if random.random() < 0.3:
            random.shuffle(steps)
        own = [name for name in scope if name not in outer]
        for _ in range(random.choice((0, 0, 0, 0, 0, 1, 1, 2))):
            steps.append(self.condition(scope, [*own, *outer] if depth else own))
        if depth and not steps:
            steps.append(self.condition(scope, list(outer)))
        for _ in range(random.choice((0, 0, 0, 1, 2)) if depth == 0 else random.choice((0, 0, 1)) if depth < 3 else 0):
            inner = dict(scope)
            body = " ".join(self.block(inner, random.randint(0, 2), depth + 1))
            last = len(steps)
            if body:
                steps.insert(random.randint(min(max(last - 1, 1), last), last), f"not {{ {body} }}")
        if depth < 2 and scope and random.random() < 0.2:
            steps += self.optional(scope, depth)
        return [step for step in steps if step]

    def optional(self, scope: Scope, depth: int) -> list[str]:
        """An optional block, possibly with a condition on its variables."""
        inner = dict(scope)
        hop = reads_paths.path(self, inner) if self.random.random() < reads_paths.SHARE else self.hop(inner)
        body = " ".join([hop, *self.block(inner, 0, depth + 2)]) if hop else ""
        new = [name for name in inner if name not in scope and f"${name}" in body]
        scope |= {name: inner[name] for name in new}
        steps = [f"optional {{ {body} }}" if body else ""]
        if body and new and self.random.random() < 0.4:
            steps.append(self.condition(scope, new))
        return steps

    def binding(self, scope: Scope) -> str:
        name, spelt = self.new_name(scope), self.random.choice(list(self.catalog.nodes))
        if self.random.random() < (0.1 if self.nodes(scope) else 0.4):  # it may stay unconnected
            spelt = several_types(self)
        scope[name] = type_ = self.catalog.node(type_of(self.catalog, spelt))
        return f"${name}: {spelt}{self.pattern(type_)}"

    def keyed(self, scope: Scope) -> str:
        """A binding with a key."""
        types = [type_ for type_ in self.catalog.nodes.values() if len(type_.key) == 1]
        if not types:
            return self.binding(scope)
        name, type_ = self.new_name(scope), self.random.choice(types)
        scope[name] = type_
        key = type_.key[0]
        return f"${name}: {type_.name} {{ {key}: {self.atom(type_.properties[key].type, key)} }}"

    def again(self, scope: Scope) -> str:
        """A binding of a bound variable."""
        if not self.nodes(scope):
            return ""
        name = self.random.choice(self.nodes(scope))
        type_ = scope[name]
        assert isinstance(type_, NodeType)
        return f"${name}: {type_.name}{self.pattern(type_)}"

    def pattern(self, type_: NodeType) -> str:
        random = self.random
        props = [p for p in type_.properties.values() if p.type.scalar != "Vector"]
        chosen = random.sample(props, min(len(props), random.choice((0, 0, 0, 0, 0, 0, 1, 2))))
        matches = []
        for prop in chosen:
            item = prop.type.item if prop.type.is_list else prop.type
            matches.append(f"{prop.name}: {self.atom(item, prop.name)}")
        return f" {{ {', '.join(matches)} }}" if matches else ""

    def hop(self, scope: Scope) -> str:
        random = self.random
        nodes = self.nodes(scope)
        if not nodes:
            return ""
        near = random.choice(nodes)
        if random.random() < 0.1:
            return mixed_hop(self, scope, near)
        if random.random() < 0.2:
            return any_hop(self, scope, near, random.choice(("_", *nodes, self.new_name(scope), self.new_name(scope))))
        types = self.catalog.members(scope[near].name)
        edges = [edge for edge in self.catalog.edges.values() if {edge.from_type, edge.to_type} & {*types}]
        if not edges:
            return ""
        edge = random.choice(edges)
        far_type = edge.to_type if edge.from_type in types else edge.from_type
        same = [name for name in nodes if far_type in self.catalog.members(scope[name].name)]
        chance = random.random()
        if chance < 0.2:
            far = "_"
        elif chance < 0.4 and same:
            far = random.choice(same)
        else:
            far = self.new_name(scope)
        left, right = (near, far) if random.random() < 0.5 else (far, near)
        ends = edge_ends(self, scope, left, edge, right)
        if far != "_" and far not in scope:
            scope[far] = self.catalog.nodes[ends[0] if far == left else ends[1]]
        return self.walk(scope, left, edge, right)

    def fresh_hop(self, scope: Scope) -> str:
        """A hop without a bound end."""
        edge = self.random.choice(list(self.catalog.edges.values()))
        if self.random.random() < (0.03 if self.nodes(scope) else 0.2):
            return any_hop(self, scope, self.new_name(scope), self.random.choice(("_", self.new_name(scope))))
        left = "_" if self.random.random() < 0.2 else self.new_name(scope)
        if left != "_":
            scope[left] = self.catalog.nodes[edge.from_type]
        right = self.new_name(scope)
        scope[right] = self.catalog.nodes[edge.to_type]
        return self.walk(scope, left, edge, right)

    def walk(self, scope: Scope, left: str, edge: EdgeType, right: str) -> str:
        random = self.random
        word = edge.word if random.random() < 0.8 else edge.word.lower()
        alike = [e for e in self.catalog.edges.values() if (e.from_type, e.to_type) == (edge.from_type, edge.to_type)]
        several = random.random() < 0.25
        if several:
            word = "|".join([word, *(e.word for e in random.sample(alike, random.randint(1, len(alike))))])
        if edge.from_type == edge.to_type and random.random() < 0.3:
            word = f"<{word}>"
        if random.random() < 0.25 and not several:
            name = "_" if random.random() < 0.1 else self.new_name(scope)
            if name != "_":
                scope[name] = edge
            return f"${left} ${name}:{word} ${right}"
        return f"${left} {word}{random.choice(_BOUNDS)} ${right}"
