"""`omnigraph load` and `omnigraph ingest`: files in, one commit out."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, is_graph, takes_graph_by_option
from omnigraph.cli.io.files import STDIN
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.progress import working
from omnigraph.cli.io.spark_options import Conf, Engine, Master, Remote, check_engine, spark_options
from omnigraph.errors import BranchNotFound

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.load_result import LoadResult

MODES = ("overwrite", "append", "merge")
MISSING = ("keep", "null")

Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        "-d",
        metavar="FILE",
        help="A .jsonl, .csv, .parquet or .arrow file, a folder or glob; '-' reads JSONL from stdin; may be repeated.",
    ),
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[FILE]... [URI]", help="The files to load, instead of --data; and the graph.", show_default=False
    ),
]
_SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".gz")
Rejects = Annotated[
    str | None,
    typer.Option(
        "--rejects", metavar="FILE", help="Set wrong records aside in this file (.jsonl, .parquet) and load the rest."
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
Embed = Annotated[str, typer.Option("--embed", metavar="fill|off", help="Whether texts are embedded while loading.")]
Delimiter = Annotated[
    str | None,
    typer.Option("--delimiter", metavar="CHAR", help=r"What separates the cells of CSV files: ',' ';' '|' or '\t'."),
]
JobId = Annotated[
    str | None,
    typer.Option(
        "--job-id",
        metavar="ID",
        help="A second load with the same id does nothing and reports the result of the first.",
    ),
]


@takes_graph_by_option
def load_command(
    run: Invocation,
    words: Words = None,
    data: Data = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            metavar="MODE",
            help="merge (add or update), append (add only), overwrite (replace whole types).",
            autocompletion=completion.one_of(*MODES),
        ),
    ] = None,
    missing: Missing = "keep",
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="Create a missing branch from this one.")
    ] = None,
    rejects: Rejects = None,
    embed: Embed = "fill",
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    job_id: JobId = None,
    delimiter: Delimiter = None,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch as one commit: all of it or nothing.

    omnigraph load people.jsonl --mode merge ./my.omni
    """
    files = _files(run, words, data)
    if mode is None:
        raise UsageFault("say how to load: --mode merge (add or update), append (add only) or overwrite")
    _check_words(mode, missing, embed, engine)
    address = run.storage()
    on = run.branch(branch)
    if mode == "overwrite":
        run.consent(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    spark = spark_options(engine, master, remote, conf)
    where: dict[str, Any] = {"engine": engine, "spark": spark, "delimiter": delimiter}
    if from_branch is not None:
        where["from_branch"] = from_branch
    result = _load(run, graph, files, mode, missing, on, rejects, embed, job_id, message, where, as_json=as_json)
    counts = _counts(result)
    if as_json:
        document = {"uri": address.uri, "branch": on, "mode": mode, **counts, **_common(run, graph, result)}
        print_json(document)
        return
    nodes = f"{plural(counts['nodes_loaded'], 'node')} in {plural(counts['node_types_loaded'], 'type')}"
    edges = f"{plural(counts['edges_loaded'], 'edge')} in {plural(counts['edge_types_loaded'], 'type')}"
    print(f"load {address.uri} branch={on} mode={mode}: {nodes}, {edges}")


def _files(run: Invocation, words: list[str] | None, data: list[str] | None) -> list[str]:
    """The files to load: those of --data, else the words; the graph is the last word unless that names a data file."""
    words = list(words or ())
    if data:
        if len(words) > 1:
            raise UsageFault(f"--data names the files, and '{words[0]}' is one more word; the graph is the only other")
        run.uri = words[0] if words else None
        return data
    if len(words) > 1 and run.uri_option is None and is_graph(words[0]) and not _is_data(words[0]):
        raise UsageFault(f"the graph comes last: omnigraph {run.command} {' '.join(words[1:])} {words[0]}")
    if words and not _is_data(words[-1]) and (is_graph(words[-1]) or len(words) > 1):
        run.uri = words.pop()
    if not words:
        raise UsageFault(f"which file? write: omnigraph {run.command} FILE {run.uri or '[URI]'}")
    return words


def _is_data(word: str) -> bool:
    """True if a word has the form of a data file: stdin, a pattern or a known suffix."""
    return word == STDIN or word.lower().endswith(_SUFFIXES) or any(sign in word for sign in "*?")


@takes_graph_by_option
def ingest_command(
    run: Invocation,
    words: Words = None,
    data: Data = None,
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="Where a missing branch starts.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="merge, append or overwrite.")] = "merge",
    missing: Missing = "keep",
    rejects: Rejects = None,
    embed: Embed = "fill",
    engine: Engine = "auto",
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    job_id: JobId = None,
    delimiter: Delimiter = None,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch that is created if it is missing.

    omnigraph ingest may.jsonl --branch intake/may ./my.omni
    """
    files = _files(run, words, data)
    _check_words(mode, missing, embed, engine)
    address = run.storage()
    on, base = run.branch(branch), run.branch(from_branch)
    run.announce(address)
    graph = run.open(address)
    spark = spark_options(engine, master, remote, conf)
    where = {"engine": engine, "spark": spark, "delimiter": delimiter, "from_branch": base}
    result = _load(run, graph, files, mode, missing, on, rejects, embed, job_id, message, where, as_json=as_json)
    if as_json:
        tables = [{"table_key": key, "rows_loaded": rows} for key, rows in sorted(result.tables)]
        document = {"uri": address.uri, "branch": on, "base_branch": base, "branch_created": result.branch_created}
        print_json({**document, "mode": mode, "tables": tables, **_common(run, graph, result)})
        return
    life = "new branch" if result.branch_created else "existing branch"
    print(f"ingest {address.uri} branch={on} base={base} mode={mode} ({life})")
    for key, rows in sorted(result.tables):
        print(f"  {key} {plural(rows, 'row')}")
    if run.actor:
        print(f"actor: {run.actor}")


def _load(
    run: Invocation,
    graph: Graph,
    data: Sequence[str],
    mode: str,
    missing: str,
    branch: str,
    rejects: str | None,
    embed: str,
    job_id: str | None,
    message: str | None,
    where: dict[str, Any],
    *,
    as_json: bool,
) -> LoadResult:
    load = graph.ingest if "from_branch" in where else graph.load
    with (
        _hinting(branch),
        _sources(data) as sources,
        working(f"loading onto {branch}", wanted=not (as_json or run.options.quiet)) as watch,
    ):
        result = load(
            sources,
            mode=mode,
            missing=missing,
            branch=branch,
            message=message,
            rejects=rejects,
            embed=embed == "fill",
            job_id=job_id,
            watch=watch,
            **where,
        )
    if result.rejected:
        remark("warning", f"{len(result.rejected)} wrong records were set aside in {rejects}")
    for note in () if as_json or run.options.quiet else result.notes:
        remark("note", note)
    if result.pending_embeddings:
        remark(
            "warning",
            f"{result.pending_embeddings} rows wait for a vector: no embedding provider is configured "
            "(set GEMINI_API_KEY or OPENAI_API_KEY, or OMNIGRAPH_EMBED_PROVIDER=local for vectors made offline)",
        )
    return result


@contextmanager
def _hinting(branch: str) -> Iterator[None]:
    """Add how a load creates a missing branch."""
    try:
        yield
    except BranchNotFound as error:
        near = f"{error.hint} " if (error.hint or "").startswith("did you mean") else ""
        error.hint = f"{near}--from main creates it, as do 'omnigraph ingest' and 'omnigraph branch create {branch}'"
        raise


def _check_words(mode: str, missing: str, embed: str, engine: str) -> None:
    if mode not in MODES:
        raise UsageFault(f"there is no load mode '{mode}'; the modes are {', '.join(MODES)}")
    if missing not in MISSING:
        raise UsageFault("--missing is keep or null")
    if embed not in ("fill", "off"):
        raise UsageFault("--embed is fill or off")
    check_engine(engine)


@contextmanager
def _sources(data: Sequence[str]) -> Iterator[list[str]]:
    """The files to load; what comes on stdin is kept in one, because a write may have to read it again."""
    if STDIN not in data:
        yield list(data)
        return
    from omnigraph.storage.files.input_files import NamedPath

    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "stdin.jsonl"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [NamedPath(str(kept), kept.name) if name == STDIN else name for name in data]


def _counts(result: LoadResult) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind in ("node", "edge"):
        rows = [rows for key, rows in result.tables if key.startswith(f"{kind}:")]
        counts[f"{kind}s_loaded"] = sum(rows)
        counts[f"{kind}_types_loaded"] = len(rows)
    return counts


def _common(run: Invocation, graph: Graph, result: LoadResult) -> dict[str, Any]:
    """What `load` and `ingest` both tell."""
    commit = graph.commit(result.commit_id).to_json() if result.commit_id else None
    data = {
        "actor_id": run.actor,
        "commit": commit,
        "rejected": result.rejected_count,
        "repeated": result.repeated,
        "notes": list(result.notes),
    }
    if any(node.embeds for node in graph.catalog(result.branch).nodes.values()):
        data["embedded_rows"] = result.embedded_rows
        data["pending_embeddings"] = result.pending_embeddings
    return data
