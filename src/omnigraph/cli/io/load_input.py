"""Options, input files and execution shared by `omnigraph load` and `omnigraph ingest`."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, is_graph
from omnigraph.cli.io.files import STDIN
from omnigraph.cli.io.output import remark
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.spark_options import check_engine
from omnigraph.errors import BranchNotFound

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.load.load_result import LoadResult
    from omnigraph.spark.session import SessionOptions

MODES = ("overwrite", "append", "merge")
MISSING = ("keep", "null")
EMBED = ("fill", "off")
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".graphml", ".gz")

Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        metavar="[TYPE=]FILE",
        help="A .jsonl, .csv, .tsv, .parquet, .arrow or .graphml file, a folder or glob; '-' reads JSONL from stdin; "
        "may be repeated. TYPE is the type of the rows of a table; by default the file name says it.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]... [URI]", help="The files to load, instead of --data, and the graph.", show_default=False
    ),
]
Rejects = Annotated[
    str | None,
    typer.Option(
        "--rejects",
        metavar="FILE",
        help="Set invalid records aside in this file (.jsonl, .parquet) and load the rest.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="keep|null",
        help="Whether a merge keeps properties that are absent from a record, or sets them to null.",
        autocompletion=completion.one_of(*MISSING),
    ),
]
Embed = Annotated[
    str, typer.Option("--embed", metavar="fill|off", help="Whether the load computes missing embeddings.")
]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help=r"The column separator of CSV files: ',' ';' '|' or '\t'."),
]
Null = Annotated[
    list[str] | None,
    typer.Option("--null", metavar="TEXT", help="A text of CSV cells that is null, such as NA; may be repeated."),
]
DateFormat = Annotated[
    str | None,
    typer.Option(
        "--date-format", metavar="FORMAT", help="The form of dates in CSV files, such as %d.%m.%Y; by default ISO 8601."
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="[TYPE:]COLUMN=PROPERTY",
        help="The property of a column of a table, or from, to, id; 'COLUMN=' leaves it out; may be repeated.",
    ),
]
SkipNullEnds = Annotated[
    bool, typer.Option("--skip-null-ends", help="Leave out rows of edge tables without one of their ends.")
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="neo4j|graphml",
        help="The format of files with nodes and edges of several types: a folder of Neo4j admin CSV, or GraphML.",
        autocompletion=completion.one_of("neo4j", "graphml"),
    ),
]
ArrayDelimiter = Annotated[
    str,
    typer.Option(
        "--array-delimiter", metavar="CHAR", help="Separates the items of a list in a cell of Neo4j admin CSV."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Read and validate the records; write nothing.")]
JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id",
        metavar="ID",
        help="A second load with the same id does nothing and reports the result of the first.",
    ),
]


@dataclass(frozen=True)
class TableOptions:
    """The options of a load that concern tables."""

    delimiter: str | None = None
    null: Sequence[str] = ()
    date_format: str | None = None
    columns: Mapping[str, str | None] = field(default_factory=dict)
    skip_null_ends: bool = False
    format: str | None = None
    array_delimiter: str = ";"


@dataclass(frozen=True)
class LoadOptions:
    """The options of a load, checked."""

    mode: str
    missing: str
    branch: str
    rejects: str | None
    embed: str
    job_id: str | None
    message: str | None
    tables: TableOptions
    engine: str
    spark: SessionOptions | None
    from_branch: str | None = None
    dry_run: bool = False

    def __post_init__(self) -> None:
        check_load_words(self.mode, self.missing, self.embed)
        check_engine(self.engine)


def check_load_words(mode: str, missing: str, embed: str) -> None:
    """Reject values that `--mode`, `--missing` and `--embed` do not have."""
    if mode not in MODES:
        raise UsageFault(f"there is no load mode '{mode}'; the modes are {', '.join(MODES)}")
    if missing not in MISSING:
        raise UsageFault(f"--missing must be keep or null, not '{missing}'")
    if embed not in EMBED:
        raise UsageFault(f"--embed must be fill or off, not '{embed}'")


def input_files(run: Invocation, words: list[str] | None, data: list[str] | None) -> list[str]:
    """Return the files to load: those of --data, else the arguments; sets the graph from the last argument.

    The last argument is the graph unless it has the form of a data file.
    """
    words = list(words or ())
    if data:
        if len(words) > 1:
            raise UsageFault(f"unexpected argument '{words[0]}': with --data, the only argument is the graph")
        run.uri = words[0] if words else None
        return [typed_file(text) for text in data]
    if len(words) > 1 and run.uri_option is None and is_graph(words[0]) and not _is_data(words[0]):
        raise UsageFault(f"the graph comes last: omnigraph {run.command} {' '.join(words[1:])} {words[0]}")
    if words and not _is_data(words[-1]) and (is_graph(words[-1]) or len(words) > 1):
        run.uri = words.pop()
    if not words:
        raise UsageFault(f"no file was given; write: omnigraph {run.command} FILE {run.uri or '[URI]'}")
    return [typed_file(word) for word in words]


def _is_data(word: str) -> bool:
    """True if a word has the form of a data file: stdin, a pattern or a known suffix."""
    return word == STDIN or word.lower().endswith(_SUFFIXES) or any(sign in word for sign in "*?")


def load_files(
    run: Invocation, graph: Graph, files: Sequence[str], options: LoadOptions, *, as_json: bool
) -> LoadResult:
    """Load files, show progress, and print warnings and notes."""
    branch = {} if options.from_branch is None else {"from_branch": options.from_branch}
    load: Any = graph.load if options.from_branch is None else graph.ingest
    with (
        _branch_hints(options.branch),
        _readable(files) as sources,
        progress_bar(f"loading onto {options.branch}", wanted=not (as_json or run.options.quiet)) as watch,
    ):
        result: LoadResult = load(
            sources,
            mode=options.mode,
            missing=options.missing,
            branch=options.branch,
            message=options.message,
            rejects=options.rejects,
            embed=options.embed == "fill",
            job_id=options.job_id,
            **asdict(options.tables),
            dry_run=options.dry_run,
            engine=options.engine,
            spark=options.spark,
            watch=watch,
            **branch,
        )
    if result.rejected:
        records = (
            "1 invalid record was" if len(result.rejected) == 1 else f"{len(result.rejected)} invalid records were"
        )
        remark("warning", f"{records} set aside in {options.rejects}")
    for note in () if as_json or run.options.quiet else result.notes:
        remark("note", note)
    if result.pending_embeddings:
        rows = "1 row has" if result.pending_embeddings == 1 else f"{result.pending_embeddings} rows have"
        remark(
            "warning",
            f"{rows} no vector yet: no embedding provider is configured "
            "(set GEMINI_API_KEY or OPENAI_API_KEY, or OMNIGRAPH_EMBED_PROVIDER=local for offline vectors)",
        )
    return result


@contextmanager
def _branch_hints(branch: str) -> Iterator[None]:
    """Add to the error for a missing branch how a load creates it."""
    try:
        yield
    except BranchNotFound as error:
        near = f"{error.hint} " if (error.hint or "").startswith("did you mean") else ""
        error.hint = f"{near}--from main creates it, as do 'omnigraph ingest' and 'omnigraph branch create {branch}'"
        raise


@contextmanager
def _readable(files: Sequence[str]) -> Iterator[list[str]]:
    """Yield the files to load; stdin is copied to a temporary file, because a write can read its input twice."""
    if STDIN not in files:
        yield list(files)
        return
    import tempfile

    from omnigraph.text_files import NamedPath

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "stdin.jsonl"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [NamedPath(str(kept), kept.name) if name == STDIN else name for name in files]


_TYPED = re.compile(r"([A-Za-z][A-Za-z0-9_]*)=(.+)", re.DOTALL)


def typed_file(text: str) -> str:
    """Return the file of `TYPE=FILE` with its type; a text that is the name of a file is that file."""
    match = _TYPED.fullmatch(text)
    if match is None or Path(text).exists():
        return text
    if match[2] == STDIN:
        raise UsageFault(f"'{text}': stdin is JSONL, whose records name their types; write --data -")
    from omnigraph.text_files import NamedPath

    return NamedPath(match[2], match[2], match[1])


def embeds(graph: Graph, result: LoadResult) -> bool:
    """True if the schema of the loaded branch declares embeddings."""
    return graph.catalog(result.branch).declares_embeddings
