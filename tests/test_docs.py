"""Check the schemas, queries, plans and messages in the documents against the program.

The info string of a fenced block states what the block is:

    ```pg                        a schema that compiles; `name=x` lets later blocks of the page refer to it
    ```pg error=S11              a schema that fails with this code, and with no other
    ```pg from=x plan=CODE       a change of schema x: `supported`, `refused`, or a step with this code;
                                 `rows=yes` each drop loses a row
    ```gq schema=x               queries that compile with schema x of the same page
    ```gq schema=x error=T7      queries of which at least one fails, all failures with this code
    ```gq schema=x lint=L201     queries for which lint reports this code
    ```text plan=NAME            the plan of the query NAME defined above on the page
    ```text message              the message of the failing block above
    ```text steps                the steps of the schema change above
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import pytest

from omnigraph import errors
from omnigraph.errors import CompileError, OmniGraphError, SchemaChangeError
from omnigraph.lang.spans import Source
from omnigraph.query.check.typecheck import check_query
from omnigraph.query.compile import compile_query
from omnigraph.query.functions import FUNCTIONS
from omnigraph.query.lint import lint
from omnigraph.query.plan.explain import explain
from omnigraph.query.plan.lower import lower
from omnigraph.query.syntax.format import format_queries
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.schema.catalog import RESERVED_COLUMNS, Catalog
from omnigraph.schema.check import compile_schema
from omnigraph.schema.format import format_schema
from omnigraph.schema.migrate import SchemaPlan, plan_between, refuse_losses
from omnigraph.schema.migration_steps import DropProperty, DropType
from omnigraph.types import SCALARS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted((ROOT / "skills").rglob("*.md")), *sorted(DOCS.rglob("*.md"))]
LINKED = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]
ALLOWED = {"pg": {"name", "error", "from", "plan", "rows", "file"}, "gq": {"schema", "error", "lint", "file"}}

CODE = re.compile(r"\b(?:[ST]\d{1,2}|D2|Q\d{3}|L\d{3}|OG-[A-Z]{2}-\d{3})\b")
CODE_IN_SOURCE = re.compile(rf'"({CODE.pattern})"')


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    options: MappingProxyType[str, str]
    text: str
    above: Block | None = field(repr=False)
    """The preceding block of the page in one of the known languages."""

    @property
    def fails(self) -> bool:
        return "error" in self.options

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def blocks_of(path: Path) -> tuple[Block, ...]:
    found: list[Block] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    opened: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if opened is None:
            opened = number
            continue
        language, *words = lines[opened][3:].split() or [""]
        options = MappingProxyType({word.partition("=")[0]: word.partition("=")[2] for word in words})
        if language in ALLOWED or (language == "text" and options):
            text = "\n".join(lines[opened + 1 : number]) + "\n"
            found.append(Block(path.name, opened + 1, language, options, text, found[-1] if found else None))
        opened = None
    assert opened is None, f"{path.name}:{opened} opens a fence that is never closed"
    return tuple(found)


BLOCKS = [block for path in PAGES for block in blocks_of(path)]


def blocks(language: str, *wanted: str) -> list[Block]:
    return [b for b in BLOCKS if b.language == language and all(option in b.options for option in wanted)]


@cache
def schema_of(page: str, name: str) -> Catalog:
    named = [b for b in BLOCKS if b.page == page and b.language == "pg" and b.options.get("name") == name]
    assert len(named) == 1, f"{page} has {len(named)} schemas called '{name}'"
    return compile_schema(named[0].text)


def catalog_for(block: Block) -> Catalog:
    assert "schema" in block.options, f"{block} does not say its schema"
    return schema_of(block.page, block.options["schema"])


def failures(block: Block) -> list[CompileError]:
    """Messages of compiling the block; each query of a `gq` block is compiled separately."""
    found: list[CompileError] = []
    try:
        if block.language == "pg":
            compile_schema(block.text, "schema.pg")
            return []
        tree = parse_queries(block.text, "queries.gq")
    except CompileError as error:
        return [error]
    source = Source(block.text, "queries.gq")
    for query in tree.queries:
        try:
            explain(lower(check_query(catalog_for(block), query, source)))
        except CompileError as error:
            found.append(error)
    return found


def planned(block: Block) -> SchemaPlan:
    before = schema_of(block.page, block.options["from"])
    plan = plan_between(before, compile_schema(block.text))
    if block.options.get("rows") != "yes":
        return plan
    drops = {step: "1 row" for step in plan.steps if isinstance(step, DropType | DropProperty)}
    return replace(plan, steps=tuple(refuse_losses(plan.steps, drops)))


# -- blocks ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_options_are_known(block: Block):
    known = ALLOWED.get(block.language, {"plan", "message", "steps"})
    assert set(block.options) <= known
    if block.language == "gq":
        assert "schema" in block.options or block.options.get("error") == "parse_error"


@pytest.mark.parametrize("block", [*blocks("pg"), *blocks("gq")], ids=str)
def test_block_compiles_or_fails_as_declared(block: Block):
    found = failures(block)
    if not block.fails:
        assert not found, "\n\n".join(str(error) for error in found)
        return
    codes = {diagnostic.code for error in found for diagnostic in error.diagnostics}
    assert codes == {block.options["error"]}


@pytest.mark.parametrize("block", [*blocks("pg"), *blocks("gq")], ids=str)
def test_block_is_in_canonical_layout(block: Block):
    if block.options.get("error") in ("parse_error", "S2", "S3", "S4", "S5", "S7", "S14", "S15", "S19"):
        return  # some of these do not parse
    formatted = (format_schema if block.language == "pg" else format_queries)(block.text)
    assert formatted == block.text


@pytest.mark.parametrize("block", blocks("pg", "from"), ids=str)
def test_schema_change_is_planned_as_declared(block: Block):
    wanted = block.options["plan"]
    if wanted == "schema_change":
        with pytest.raises(SchemaChangeError):
            planned(block)
        return
    plan = planned(block)
    if wanted in ("supported", "refused"):
        assert plan.supported == (wanted == "supported")
        assert plan.steps or wanted == "supported"
    else:
        assert wanted in {getattr(step, "code", None) for step in plan.steps}


@pytest.mark.parametrize("block", blocks("gq", "lint"), ids=str)
def test_lint_reports_the_declared_code(block: Block):
    report = lint(catalog_for(block), block.text, query_path="queries.gq", schema_source={"kind": "file"})
    assert {finding.code for finding in report.findings} == {block.options["lint"]}


@pytest.mark.parametrize("block", blocks("text", "plan"), ids=str)
def test_plan_equals_explain_output(block: Block):
    name = block.options["plan"]
    above = block.above
    while above is not None and not (above.language == "gq" and re.search(rf"\bquery {name}\(", above.text)):
        above = above.above
    assert above is not None, f"no query '{name}' stands above {block}"
    assert explain(compile_query(catalog_for(above), above.text, name)) == block.text


@pytest.mark.parametrize("block", blocks("text", "message"), ids=str)
def test_message_equals_compiler_output(block: Block):
    assert block.above is not None
    assert block.above.fails
    said = "\n\n".join(str(error) for error in failures(block.above))
    assert said + "\n" == block.text


@pytest.mark.parametrize("block", blocks("text", "steps"), ids=str)
def test_steps_equal_planner_output(block: Block):
    assert block.above is not None
    assert "".join(f"- {step.describe()}\n" for step in planned(block.above).steps) == block.text


# -- completeness ------------------------------------------------------------------------------------


def codes_in_source() -> set[str]:
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    return {code for text in texts for code in CODE_IN_SOURCE.findall(text)}


def sections(path: Path) -> dict[str, str]:
    """Third-level heading → the text of its section."""
    text = path.read_text(encoding="utf-8")
    starts = [*re.finditer(r"(?m)^### (.+)$", text)]
    ends = [*(match.start() for match in starts[1:]), len(text)]
    return {match[1]: text[match.end() : end] for match, end in zip(starts, ends, strict=True)}


def test_codes_and_entries_correspond():
    headings = {title.split()[0] for title in sections(DOCS / "errors.md")}
    assert {heading for heading in headings if CODE.fullmatch(heading)} == codes_in_source()


@pytest.mark.parametrize("code", sorted(codes_in_source()))
def test_every_entry_shows_the_error_and_its_remedy(code: str):
    (entry,) = [text for title, text in sections(DOCS / "errors.md").items() if title.split()[0] == code]
    assert re.search(rf"(?m)^```(pg|gq) .*\b(error|plan|lint)={code}\b", entry)
    assert "**Fix.**" in entry


def test_every_mentioned_code_exists():
    for path in PAGES:
        named = set(CODE.findall(path.read_text(encoding="utf-8")))
        assert named <= codes_in_source(), path.name


def every_error(root: type[OmniGraphError] = OmniGraphError) -> Iterator[type[OmniGraphError]]:
    yield root
    for child in root.__subclasses__():
        yield from every_error(child)


def test_every_error_class_code_is_listed():
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    for class_ in every_error():
        if class_.__module__ == errors.__name__ and class_ is not OmniGraphError:
            assert f"`{class_.default_code}`" in text, class_.__name__


def test_every_specific_code_is_listed():
    text = (DOCS / "errors.md").read_text(encoding="utf-8")
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    finer = {code for source in sources for code in re.findall(r'\bcode="([a-z_]+)"', source)}
    assert {code for code in finer if f"`{code}`" not in text} == set()


def test_references_are_complete():
    schema = (DOCS / "schema-language.md").read_text(encoding="utf-8")
    query = (DOCS / "query-language.md").read_text(encoding="utf-8")
    for word in (*SCALARS, *RESERVED_COLUMNS, "@key", "@unique", "@index", "@range", "@check", "@card", "@embed"):
        assert f"`{word}" in schema, word
    for function in FUNCTIONS:
        assert f"`{function}(" in query, function


# -- links -------------------------------------------------------------------------------------------


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"(?m)^#+ (.+)$", path.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_resolve(path: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        page = (path.parent / file).resolve() if file else path
        assert page.exists(), target
        if anchor:
            assert anchor in anchors(page), target


def test_glossary_is_sorted_without_repetitions():
    rows = re.findall(r"(?m)^\| \*\*(.+?)\*\*(?: ◆)? \| (.+) \|$", (DOCS / "glossary.md").read_text(encoding="utf-8"))
    words = [word.lower() for word, _ in rows]
    assert len(words) > 40
    for before, after in pairwise(words):
        assert before < after


def test_decision_records_are_indexed_and_complete():
    folder = DOCS / "adr"
    index = (folder / "README.md").read_text(encoding="utf-8")
    records = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    assert len({int(path.name[:4]) for path in records}) == len(records)
    for path in records:
        text = path.read_text(encoding="utf-8")
        title = re.match(
            r"# (\d+)\. (.+)\n\nStatus: (proposed|accepted(?:, amended by \d{4})?|superseded by \d{4})\n", text
        )
        assert title is not None, path.name
        assert f"[{path.name[:4]} {title[2]}]({path.name}) | {title[3]} |" in index
        assert re.findall(r"(?m)^## (.+)$", text) == ["Context", "Decision", "Consequences"]
