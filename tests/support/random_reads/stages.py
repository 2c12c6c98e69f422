"""Random stages: `with { … }` and what the next part does with its values."""

from __future__ import annotations

import re

from support.random_reads.conditions import COMPARE
from support.random_reads.paths import PathVariable
from support.random_reads.results import Results
from support.random_reads.terms import NUMBERS, Scope

SHARE = 0.2
"""The share of reads with a stage."""


class Stages(Results):
    """Stages."""

    def stage(self, scope: Scope) -> str:
        """A stage behind a match block; `scope` becomes what the next part sees."""
        random = self.random
        names = [name for name, type_ in scope.items() if not isinstance(type_, PathVariable)]
        kept = [name for name in names if random.random() < 0.6]
        values = self.values_of(scope)
        kept = kept or ([] if values else names[:1])
        items = [f"${name}" for name in kept] + [f"{item} as ${name}" for name, (item, _) in values.items()]
        items += [f"${name}" for name in self.carried if random.random() < 0.5]
        random.shuffle(items)
        grouped = any(_is_aggregate(item) for item, _ in values.values())
        head = "with distinct" if not grouped and random.random() < 0.15 else "with"
        distinct = head != "with"
        numbers = {name: scalar for name, (_, scalar) in values.items() if scalar}
        having = ""
        if (grouped or distinct) and numbers and random.random() < 0.4:
            tested = random.choice(list(numbers))
            having = f" having {{ {self.test(tested)} }}"
        sorts = [f"${name}" for name in numbers if random.random() < 0.6]
        if not grouped and not distinct:
            sorts += [key for key in self.properties(scope) if self.sortable(scope, key) and random.random() < 0.1]
        random.shuffle(sorts)
        order = ""
        if sorts:
            order = f" order {{ {', '.join(key + random.choice(('', ' asc', ' desc')) for key in sorts)} }}"
            order += self.cut() if random.random() < 0.5 else ""
        carried = {name: scalar for name, scalar in self.carried.items() if f"${name}" in items}
        self.carried = {**carried, **numbers}
        for name in [name for name in scope if name not in kept]:
            del scope[name]
        return f"{head} {{ {', '.join(items)} }}{having}{order}"

    def values_of(self, scope: Scope) -> dict[str, tuple[str, str]]:
        """Name → expression and scalar type of some values; the type is empty if it is not compared."""
        random = self.random
        found: dict[str, tuple[str, str]] = {}
        grouped = random.random() < 0.6
        for _ in range(random.randint(0, 2)):
            self.named += 1
            name = f"s{self.named}"
            if grouped and random.random() < 0.8:
                call = self.aggregate(scope)
                if _COLLECTS_OBJECTS.match(call):
                    call = "count(1)"
                scalar = "I64" if call.startswith("count") else ""
                found[name] = (call, scalar)
            else:
                plain = [key for key in self.properties(scope) if self.sortable(scope, key)]
                if plain and random.random() < 0.7:
                    key = random.choice(plain)
                    var, prop = key[1:].split(".")
                    scalar = scope[var].properties[prop].type.scalar
                    found[name] = (key, scalar if scalar in NUMBERS else "")
                else:
                    found[name] = (f"({self.number(scope, None)} + 0)", "")
        return found

    def test(self, name: str) -> str:
        """A condition on a number that is carried on."""
        return f"${name} {self.random.choice(COMPARE)} {self.random.choice(('0', '1', '2.5', '3'))}"

    def conditions_on_values(self, scope: Scope) -> list[str]:
        """Conditions of the next match on the values of the stage."""
        random = self.random
        found = []
        for name in self.carried:
            if random.random() < 0.3:
                found.append(self.test(name) if self.carried[name] else f"${name} is not null")
            numbers = [key for scalar in NUMBERS for key in self.properties(scope, scalar)]
            if self.carried[name] and numbers and random.random() < 0.3:
                test = f"{random.choice(numbers)} {random.choice(COMPARE)} ${name}"
                found.append(f"not {{ {test} }}" if random.random() < 0.3 else test)
        return found


_COLLECTS_OBJECTS = re.compile(r"collect\((distinct )?([{\[]|\$\w+\b(?!\.))")
"""Collected nodes, objects and lists cannot be carried on."""


def _is_aggregate(item: str) -> bool:
    return item.partition("(")[0] in ("count", "sum", "avg", "median", "min", "max", "collect")
