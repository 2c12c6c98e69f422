"""Random conditions and operands."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.schema.catalog import NodeType
from omnigraph.types import PropertyType
from support.random_reads import functions as reads_functions
from support.random_reads import paths as reads_paths
from support.random_reads.terms import NUMBERS, Scope, Terms, quoted, random_function
from support.random_reads.unions import entity_test
from support.random_reads.values import _is_prose

COMPARE = ["=", "!=", "<", "<=", ">", ">="]


_PATTERNS = ["^a", "b$", "[a-c]+", "(?i)RED|Z", "é", "^$", ".", "^.{2,3}$", "[0-9]{4}"]
"""Regular expressions with equal meaning in RE2 and Python."""


def _comparable(a: PropertyType, b: PropertyType) -> bool:
    return a.scalar == b.scalar != "Vector" or (a.scalar in NUMBERS and b.scalar in NUMBERS)


class Conditions(Terms):
    """Conditions and operands."""

    def condition(self, scope: Scope, names: Sequence[str], depth: int = 0) -> str:
        """A condition, occasionally composed of others."""
        chance = self.random.random()
        of_paths = reads_paths.tests(self.random, {name: scope[name] for name in names})
        if of_paths and chance < 0.5:
            return self.random.choice(of_paths)
        if chance < 0.25 and depth < 3:
            parts = [self.condition(scope, names, depth + 1) for _ in range(self.random.choice((2, 2, 3)))]
            joined = self.random.choice((" and ", " or ")).join(part for part in parts if part)
            return f"({joined})" if joined and depth else joined
        if chance < 0.35 and depth < 3:
            inner = self.condition(scope, names, depth + 1)
            return f"not {inner}" if inner else ""
        if random_function(self.random):
            return reads_functions.test(self, {name: scope[name] for name in names})
        if chance < 0.42 and names:
            return entity_test(self, scope, list(names))
        if chance < 0.55:
            return self.newer_test(scope, names)
        return self.plain_test(scope, names)

    def newer_test(self, scope: Scope, names: Sequence[str]) -> str:
        """A condition other than the six comparisons."""
        random = self.random
        props = [(n, p) for n in names for p in scope[n].properties.values() if p.type.scalar != "Vector"]
        if not props:
            return ""
        name, prop = random.choice(props)
        own, type_ = f"${name}.{prop.name}", prop.type
        if random.random() < 0.25 or type_.is_list:
            return f"{own} is {random.choice(('', 'not '))}null"
        if random.random() < 0.4:
            return f"{own} {random.choice(('in', 'not in'))} {self.listing(type_)}"
        if random.random() < 0.3:
            items = ", ".join(self.operand(scope, type_, prop.name) for _ in range(random.randint(1, 3)))
            return f"{own} {random.choice(('in', 'not in'))} [{items}]"
        if type_.scalar == "Bool" and random.random() < 0.6:
            return own
        if type_.is_text:
            op = random.choice(("ends_with", "icontains", "istarts_with", "iends_with", "matches"))
            if op == "matches":
                return f"{own} matches {quoted(random.choice(_PATTERNS))}"
            return f"{own} {op} {self.atom(type_, prop.name)}"
        if type_.scalar in NUMBERS:
            return f"{self.number(scope, own)} {random.choice(COMPARE)} {self.number(scope, None)}"
        return f"coalesce({own}, {self.atom(type_, prop.name)}) {random.choice(COMPARE)} {self.atom(type_, prop.name)}"

    def number(self, scope: Scope, own: str | None, depth: int = 0) -> str:
        """A number, computed or not."""
        random = self.random
        known = [of for scalar in NUMBERS for of in self.properties(scope, scalar)]
        known += reads_paths.numbers(scope)
        if own is None:
            own = random.choice(known) if known and random.random() < 0.5 else str(random.choice((0, 1, 2, 7, -3, 2.5)))
        if depth > 1 or random.random() < 0.3:
            return own
        if random.random() < reads_functions.SHARE:
            return reads_functions.numeric(self, scope)
        match random.randrange(8):
            case 0:
                return f"-({own})"
            case 1:
                return f"length({random.choice([*self.properties(scope, 'String'), quoted('aé')])})"
            case 2:
                return f"coalesce({own}, {random.choice(('0', '1.5', '-2'))})"
            case _:
                op = random.choice(("+", "-", "*", "/", "+", "-", "*", "%"))
                return f"({own} {op} {self.number(scope, None, depth + 1)})"

    def plain_test(self, scope: Scope, names: Sequence[str]) -> str:
        random = self.random
        props = [(n, p) for n in names for p in scope[n].properties.values() if p.type.scalar != "Vector"]
        if not props:
            return ""
        name, prop = random.choice(props)
        own, type_ = f"${name}.{prop.name}", prop.type
        if type_.is_list:
            return f"{own} contains {self.operand(scope, type_.item, prop.name)}"
        if _is_prose(type_, prop.name) and isinstance(scope[name], NodeType) and random.random() < 0.7:
            return self.text_call(own)
        if random.random() < 0.12:
            return f"{self.listing(type_)} contains {own}"
        if type_.is_text and random.random() < 0.4:
            op = random.choice(("contains", "starts_with"))
        else:
            op = random.choice(COMPARE)
        sides = [own, self.operand(scope, type_, prop.name)]
        if random.random() < 0.25:
            sides.reverse()
        return f"{sides[0]} {op} {sides[1]}"

    def text_call(self, of: str) -> str:
        random = self.random
        match random.randrange(4):
            case 0:
                return f"match_text({of}, {self.words()}{random.choice(('', ', all'))})"
            case 1:
                edits = random.choice(("", "", ", 0", ", 1", ", 3"))
                if random.random() < 0.2:
                    edits = f", {self.param('U32', random.randrange(4))}"
                return f"fuzzy({of}, {self.words()}{edits})"
            case _:
                return f"search({of}, {self.words()}{random.choice(('', ', all'))})"

    def operand(self, scope: Scope, type_: PropertyType, name: str) -> str:
        """An operand comparable with a property of this type."""
        random = self.random
        if random.random() < 0.3:
            others = [
                f"${n}.{p.name}"
                for n, t in scope.items()
                for p in t.properties.values()
                if not p.type.is_list and _comparable(p.type, type_)
            ]
            if others:
                return random.choice(others)
        return self.atom(type_, name)
