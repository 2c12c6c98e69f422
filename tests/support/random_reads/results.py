"""Random return items, orders, groups and limits."""

from __future__ import annotations

from collections.abc import Sequence

from support.random_reads import functions as reads_functions
from support.random_reads import paths as reads_paths
from support.random_reads.conditions import COMPARE
from support.random_reads.matching import Matching
from support.random_reads.nested import computed, gathered, made
from support.random_reads.terms import NUMBERS, Scope, random_function
from support.random_reads.unions import entity_value
from support.random_reads.values import _is_prose

_LIMITS = [0, 1, 2, 2, 3, 3, 5, 5, 10, 100, 100, 100]


class Results(Matching):
    """Return items, orders, groups and limits."""

    def listed(self, scope: Scope) -> str:
        items, aliases = self.aliased(self.items(scope), "xyz")
        sorts = self.sorts(scope, aliases)
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        limit = self.cut() if self.random.random() < 0.4 else ""
        return f"return {{ {', '.join(items)} }} {order}{limit}"

    def cut(self) -> str:
        """Limit and skip, as numbers or parameters."""
        random = self.random
        limit, skip = random.choice(_LIMITS), random.choice((0, 1, 2, 5))
        parts = []
        if random.random() < 0.4:
            parts.append(f"skip {self.param('U32', skip) if random.random() < 0.5 else skip}")
        if random.random() < 0.8 or not parts:
            parts.append(f"limit {self.param('I64', limit) if random.random() < 0.3 else limit}")
        return " " + " ".join(parts)

    def distinct(self, scope: Scope) -> str:
        """A `distinct` result."""
        random = self.random
        keys = list(dict.fromkeys(random.choice(self.properties(scope) or ["1"]) for _ in range(random.randint(1, 3))))
        if self.nodes(scope) and random.random() < 0.3:
            keys.append("$" + random.choice(self.nodes(scope)))
        plain = [k for k in keys if "." in k and self.sortable(scope, k)]
        sorts = [key + random.choice(("", " asc", " desc")) for key in plain if random.random() < 0.5]
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        if random.random() < 0.3:
            keys.insert(0, made(self, scope))
        return f"return distinct {{ {', '.join(keys)} }} {order}{self.cut() if random.random() < 0.3 else ''}"

    def sortable(self, scope: Scope, key: str) -> bool:
        name, prop = key[1:].split(".")
        type_ = scope[name].properties[prop].type
        return not type_.is_list and type_.scalar != "Vector"

    def ranked(self, scope: Scope) -> str | None:
        random = self.random
        ranks = [rank for name in self.nodes(scope) for rank in self.ranks(scope, name)]
        if not ranks:
            return None
        rank = random.choice(ranks)
        items, alias = self.items(scope), None
        if not rank.startswith("nearest") and random.random() < 0.4:
            alias = "score"
            items.insert(random.randint(0, len(items)), f"{rank} as score")
        elif random.random() < 0.5:
            items.append(f"{rank} as score")
        if random.random() < 0.4:
            items.append(random.choice(("why()", "{ w: why(), n: 1 }", f"{{ s: {rank} }}", "[why()]")))
        direction = random.choice(("", "", " asc", " desc")) if not rank.startswith("nearest") else ""
        sorts = [(alias or rank) + direction]
        if random.random() < 0.4:
            sorts += self.sorts(scope, [])
        limit = random.choice(_LIMITS)
        cut = f" limit {limit}" if not rank.startswith("bm25") or random.random() < 0.5 else ""
        if cut and random.random() < 0.2:
            cut = f" skip {random.choice((0, 1, 2))}{cut}"
        return f"return {{ {', '.join(items)} }} order {{ {', '.join(sorts)} }}{cut}"

    def aliased(self, items: list[str], names: str) -> tuple[list[str], list[str]]:
        """Items with aliases, some repeated; and the sortable aliases."""
        given, sortable = [], []
        for item, name in zip(items, names.ljust(len(items), "_"), strict=False):
            if name != "_" and self.random.random() < 0.3:
                given.append(f"{item} as {name}")
                if "." in item or "(" in item:
                    sortable.append(name)
                if self.random.random() < 0.3:
                    given.append(name)
            else:
                given.append(item)
        return given, sortable

    def ranks(self, scope: Scope, name: str) -> list[str]:
        props = scope[name].properties.values()
        arms = [self.nearest(scope, name, p.name) for p in props if p.type.scalar == "Vector"]
        arms += [f"bm25(${name}.{p.name}, {self.words()})" for p in props if _is_prose(p.type, p.name)]
        arms = self.random.sample(arms, min(2, len(arms)))
        if len(arms) == 2 and self.random.random() < 0.7:
            several = [*arms, self.random.choice(arms)] if self.random.random() < 0.3 else arms
            weighed = [arm + self.random.choice(("", "", " * 2", " * 0.5")) for arm in several]
            return [*arms, f"rrf({', '.join(weighed)}{self.random.choice(('', ', 1', ', 7'))})"]
        return arms

    def nearest(self, scope: Scope, name: str, prop: str) -> str:
        dim = scope[name].properties[prop].type.dim
        vector = self.values.vector(self.random, dim)
        if min(vector) < 0 or self.random.random() < 0.5:
            return f"nearest(${name}.{prop}, {self.param(f'Vector({dim})', vector)})"
        return f"nearest(${name}.{prop}, {vector})"

    def items(self, scope: Scope) -> list[str]:
        random = self.random
        items = []
        if self.carried and random.random() < 0.6:
            items.append("$" + random.choice(list(self.carried)))
        of_paths = reads_paths.items(scope)
        if of_paths and random.random() < 0.7:
            items.append(random.choice(of_paths))
        if random_function(random):
            items.append(reads_functions.anything(self, scope))
        for _ in range(random.randint(1, 4)):
            match random.randrange(13):
                case 12 if scope:
                    items.append(entity_value(self, scope))
                case 0 if self.nodes(scope):
                    items.append("$" + random.choice(self.nodes(scope)))
                case 6:
                    items.append(self.number(scope, None))
                case 8:
                    items.append(made(self, scope))
                case 7:
                    items += [test] if (test := self.condition(scope, list(scope))) else []
                case 1:
                    items.append(random.choice(("now()", "1.50", '"x"', "true", "7", "[1, 2]", 'date("2020-02-02")')))
                case 2:
                    items.append(self.param("I64?", random.choice((None, 2**60))))
                case 3:
                    texts = self.properties(scope, "String", nodes=True)
                    items += [self.text_call(random.choice(texts))] if texts else []
                case 4:
                    texts = self.properties(scope, "String", nodes=True)
                    items += [f"bm25({random.choice(texts)}, {self.words()})"] if texts else []
                case 5:
                    vectors = self.properties(scope, "Vector", nodes=True)
                    items += [self.nearest(scope, *random.choice(vectors)[1:].split("."))] if vectors else []
                case _:
                    items += self.some(self.properties(scope))
        return items or ["1"]

    def sorts(self, scope: Scope, aliases: Sequence[str]) -> list[str]:
        random = self.random
        props = [
            f"${name}.{prop.name}"
            for name, type_ in scope.items()
            for prop in type_.properties.values()
            if not prop.type.is_list and prop.type.scalar != "Vector"
        ]
        known = [*props, *aliases, *aliases, *([entity_value(self, scope)] if scope else [])]
        known += reads_paths.numbers(scope)
        known += [f"${name}" for name in self.carried]
        if props and random.random() < 0.2:
            known.append(f"({self.number(scope, None)} + 0)")
        known += [reads_functions.plain(self, scope)] if random_function(random) else []
        chosen = random.sample(known, min(len(known), random.choice((0, 1, 1, 2, 3))))
        return [key + random.choice(("", " asc", " desc")) for key in chosen]

    def grouped(self, scope: Scope) -> str:
        random = self.random
        props = self.properties(scope)
        keys = [random.choice(props) for _ in range(random.choice((0, 1, 1, 2))) if props]
        keys += [entity_value(self, scope)] if scope and random.random() < 0.15 else []
        keys += [f"${name}" for name in self.carried if random.random() < 0.3]
        if random_function(random):
            keys.append(reads_functions.plain(self, scope))
        if random.random() < 0.3:
            keys += self.some(reads_paths.numbers(scope))
        if self.nodes(scope) and random.random() < 0.25:
            keys.append("$" + random.choice(self.nodes(scope)))
        items, aliases, counts = list(dict.fromkeys(keys)), [], []
        for number in range(random.randint(1, 3)):
            call = self.aggregate(scope)
            items.append(f"{call} as n{number}")
            if not call.startswith("collect"):
                aliases.append(f"n{number}")
            if call.startswith("count"):
                counts.append(f"n{number}")
        for number in range(random.choice((0, 0, 1, 2))):
            item, ordered = computed(self, scope)
            items.append(f"{item} as m{number}")
            aliases += [f"m{number}"] if ordered else []
        if random.random() < 0.2:
            items.append(f"{made(self, scope)} as made")
        random.shuffle(items)
        sortable = [key for key in items if key.startswith("$") and "." in key]
        chosen = [key for key in [*sortable, *aliases] if random.random() < 0.4]
        random.shuffle(chosen)
        sorts = [key + random.choice(("", " asc", " desc")) for key in chosen]
        order = f"order {{ {', '.join(sorts)} }}" if sorts else ""
        limit = self.cut() if random.random() < 0.3 else ""
        having = ""
        if random.random() < 0.3:
            tests = [f"{name} {random.choice(COMPARE)} {random.choice(('0', '1', '2.5'))}" for name in counts]
            tests += [f"{name} is {random.choice(('', 'not '))}null" for name in aliases]
            having = f"having {{ {random.choice((' or ', ' ')).join(random.sample(tests, min(2, len(tests))))} }} "
        word = "return distinct" if random.random() < 0.05 else "return"
        return f"{word} {{ {', '.join(items)} }} {having}{order}{limit}"

    def aggregate(self, scope: Scope) -> str:
        """An aggregate, sometimes over the rows that a condition selects."""
        call = self.unfiltered(scope)
        test = self.condition(scope, list(scope)) if self.random.random() < 0.25 else ""
        return f"{call[:-1]} where {test})" if test else call

    def unfiltered(self, scope: Scope) -> str:
        random = self.random
        function = random.choice(("count", "count", "sum", "avg", "median", "min", "max", "collect"))
        distinct = "distinct " if random.random() < 0.25 else ""
        if function == "count":
            whole = ["$" + name for name in self.nodes(scope)]
            if not distinct:
                whole += [item for item in reads_paths.items(scope) if item.startswith("$")]
            plain = [p for p in self.properties(scope) if not distinct or self.sortable(scope, p)]
            return f"count({distinct}{random.choice([*whole, *whole, *plain, '1'])})"
        if function == "collect" and random.random() < 0.5:
            return gathered(self, scope)
        if function == "collect":
            plain = [p for p in self.properties(scope) if self.sortable(scope, p)]
            return f"collect({distinct}{random.choice(plain or ['1'])})"
        numbers = [of for scalar in NUMBERS for of in self.properties(scope, scalar)]
        numbers += reads_paths.numbers(scope)
        numbers += [f"${name}" for name, scalar in self.carried.items() if scalar]
        if random_function(random):
            numbers.append(reads_functions.numeric(self, scope))
        if function in ("min", "max"):
            numbers += [
                of for scalar in ("String", "Bool", "Date", "DateTime", "Uuid") for of in self.properties(scope, scalar)
            ]
        return f"{function}({distinct}{random.choice([*numbers, '2'])})"
