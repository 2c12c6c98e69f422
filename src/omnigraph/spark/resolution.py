"""Candidates for `unify` on Spark: the blocks, scores and pairs of `operations.resolution`.

Tasks read the table and replace words by numbers. The tokens of two or more rows are sent to all tasks; a token of one
row forms no block and is shared by no pair, so only its weight counts. Rows are shuffled by the keys of their blocks. A
pair of rows that shares several blocks is scored in the one with the least key. Only pairs from the threshold on reach
the driver.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.hashing import mix
from omnigraph.operations.resolution.candidates import block_pairs, blocks_of, token_keys, vector_keys
from omnigraph.operations.resolution.resolve import (
    Matches,
    PairScores,
    Resolution,
    ResolveRequest,
    VectorScores,
    describe_matches,
    find_matches,
    unit_vectors,
)
from omnigraph.operations.resolution.tokens import (
    Numbers,
    Scores,
    TokenRows,
    TokenScores,
    common_entries,
    distinct,
    token_rows,
    token_weights,
)
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.schema.catalog import NodeType
from omnigraph.spark.arrow_interop import from_wire, spark_ddl, to_wire
from omnigraph.spark.cancellable_action import Actions
from omnigraph.spark.runner import prepare_worker
from omnigraph.spark.scans import FragmentRefs, task_inputs
from omnigraph.storage.lance.fragments import read_fragment, stored_fragments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS_PER_TASK = 1 << 17
"""Rows of the table for each task that forms blocks."""
_PAIRS_AT_ONCE = 1 << 18
_COUNTS = pa.schema([("column", pa.int32()), ("word", pa.utf8()), ("count", pa.int64())])
_STEP = np.uint64(0x9E3779B97F4A7C15)


def resolve_on_spark(
    spark: SparkSession, job: Job, node: NodeType, request: ResolveRequest, watch: Watch | None = None
) -> Resolution:
    """Find the nodes of a type that may be one; the result is that of the process."""
    return _Resolving(spark, job, node, request, watch).run()


class _Resolving:
    """One resolution."""

    def __init__(
        self, spark: SparkSession, job: Job, node: NodeType, request: ResolveRequest, watch: Watch | None
    ) -> None:
        from pyspark.sql import functions  # noqa: PLC0415

        self._f: Any = functions
        self._spark, self._job, self._node, self._request, self._watch = spark, job, node, request, watch
        fragments = stored_fragments(job.table(node.table_key))
        self._inputs = task_inputs(fragments, 0)
        self._count = sum(rows for _, rows in fragments)
        self._vectors = [node.properties[name].type.scalar == "Vector" for name in request.by]

    def run(self) -> Resolution:
        """Find the pairs, and read the rows that they need."""
        vocabulary = self._vocabulary()
        matches, compared = self._matches(self._encoded(vocabulary), vocabulary)
        needed = distinct(np.concatenate([matches.left, matches.right]))
        rows = self._rows(needed)
        return replace(describe_matches(self._node, self._request, matches, needed, rows, compared), engine="spark")

    def _tasks(self, names: Sequence[str], task: _RowTask, schema: pa.Schema) -> DataFrame:
        """Run a task on the rows of each fragment."""
        tasks = _TableTasks(pickle.dumps((self._job, self._node.table_key, list(names), task)), self._inputs)
        numbers = self._spark.range(0, len(self._inputs), 1, max(len(self._inputs), 1))
        return numbers.mapInArrow(tasks, spark_ddl(schema))

    def _actions(self, step: str) -> Actions:
        return Actions(self._spark, step, self._watch)

    def _vocabulary(self) -> list[_Vocabulary]:
        """Return the tokens of two or more rows, for each property."""
        names = [name for name, vector in zip(self._request.by, self._vectors, strict=True) if not vector]
        f, found = self._f, pa.table({name: [] for name in _COUNTS.names}, _COUNTS)
        if names:
            by_word = self._tasks(names, _count_tokens, _COUNTS).groupBy("column", "word")
            counted = by_word.agg(f.sum("count").alias("count")).filter("count > 1")
            found = self._actions("tokens").to_arrow(counted.select(*_COUNTS.names))
        of_column = {}
        for number, name in enumerate(names):
            own = found.filter(pc.equal(found["column"], number))
            own = own.take(pc.sort_indices(own["word"]))
            of_column[name] = _Vocabulary(one_array(own["word"]), own["count"].to_numpy(), self._count)
        empty = _Vocabulary(pa.array([], pa.utf8()), np.zeros(0, np.int64), self._count)
        return [of_column.get(name, empty) for name in self._request.by]

    def _encoded(self, vocabulary: Sequence[_Vocabulary]) -> DataFrame:
        """Return number, keys of blocks and compared values of each row that has a key."""
        fields = [("n", pa.int64()), ("keys", pa.list_(pa.int64()))]
        for number, vector in enumerate(self._vectors):
            fields += [(f"x{number}", pa.list_(pa.float32()))] if vector else _text_fields(number)
        encode = _Encode(self._vectors, vocabulary)
        return self._actions("rows").checkpoint(self._tasks(self._request.by, encode, pa.schema(fields)))

    def _matches(self, encoded: DataFrame, vocabulary: Sequence[_Vocabulary]) -> tuple[Matches, int]:
        """Score the pairs of all blocks; return those from the threshold on, and the number of all."""
        f, parts = self._f, max(1, -(-self._count // ROWS_PER_TASK))
        entries = encoded.select("n", f.explode("keys").alias("key")).repartition(parts, "key")
        shared = entries.mapInArrow(_SharedKeys(self._request.block), "n bigint, key bigint")
        keys = shared.groupBy("n").agg(f.collect_list("key").alias("keys"))
        rows = encoded.drop("keys").join(keys.hint("shuffle_hash"), "n")
        placed = rows.select(*rows.columns, f.explode("keys").alias("key")).repartition(parts, "key")
        score = _ScoreBlocks(self._request, self._vectors, [one.weights for one in vocabulary])
        names = [f"s{number}" for number in range(len(self._request.by))]
        ddl = ", ".join(["a bigint", "b bigint", *(f"{name} double" for name in ("score", *names))])
        found = self._actions("pairs").to_arrow(placed.mapInArrow(score, ddl))
        left, right, scores, *by_property = (found[name].to_numpy() for name in ("a", "b", "score", *names))
        pairs = left >= 0
        columns = dict(zip(self._request.by, (one[pairs] for one in by_property), strict=True))
        return Matches(left[pairs], right[pairs], scores[pairs], columns), int(right[~pairs].sum())

    def _rows(self, needed: Numbers) -> pa.Table:
        """Return the id and the properties of some rows, in order of their numbers."""
        names = list(dict.fromkeys(["id", *self._request.by]))
        stored = pa.schema([self._job.table(self._node.table_key).schema.field(name) for name in names])
        schema = pa.schema([pa.field("#", pa.int64()), *stored])
        found = self._actions("values").to_arrow(self._tasks(names, _TakeRows(needed), schema)).sort_by("#")
        return pa.table([from_wire(found[field.name], field.type) for field in stored], stored)


@dataclass(frozen=True)
class _Vocabulary:
    """The tokens of two or more rows in order of their UTF-8 bytes, and the number of rows of each."""

    words: pa.Array
    frequencies: Numbers
    count: int
    """The number of rows of the table."""

    @property
    def weights(self) -> Scores:
        """The weight of each token."""
        return token_weights(self.frequencies, self.count)

    def places(self, words: pa.Array) -> Numbers:
        """Return the number of each word; -1 for a word of one row."""
        found = pc.fill_null(pc.index_in(words, value_set=self.words), -1)
        numbers: Numbers = found.to_numpy(zero_copy_only=False).astype(np.int64)
        return numbers


_RowTask = Callable[[pa.Table, int], Iterator[pa.RecordBatch]]
"""(rows of a fragment, number of the first row) → rows of a DataFrame."""


class _TableTasks:
    """A pickled task, run by Spark tasks on the fragments of their number."""

    def __init__(self, task: bytes, inputs: Sequence[FragmentRefs]) -> None:
        self._task = task
        self._inputs = inputs

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that the task returns."""
        prepare_worker()
        job, key, names, task = pickle.loads(self._task)  # noqa: S301 (made by the driver of this job)
        table = job.table(key)
        schema = pa.schema([table.schema.field(name) for name in names])
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for fragment, first in self._inputs[number]:
                    rows = pa.Table.from_batches(read_fragment(table, fragment, names), schema)
                    yield from task(rows, first)


def _count_tokens(rows: pa.Table, _: int) -> Iterator[pa.RecordBatch]:
    """Yield column and word of the tokens of a fragment, and the number of rows that contain each."""
    for number, name in enumerate(rows.column_names):
        column = token_rows(rows[name])
        columns = [pa.array(np.full(len(column.words), number, np.int32)), column.words, pa.array(column.frequencies)]
        yield pa.record_batch(columns, schema=_COUNTS)


class _TakeRows:
    """Reads rows by their numbers."""

    def __init__(self, needed: Numbers) -> None:
        self._needed = needed

    def __call__(self, rows: pa.Table, first: int) -> Iterator[pa.RecordBatch]:
        """Yield number and values of the rows of a fragment that are needed."""
        start, end = np.searchsorted(self._needed, [first, first + rows.num_rows])
        numbers = self._needed[start:end]
        if len(numbers):
            found = rows.take(pa.array(numbers - first))
            columns = [pa.array(numbers), *(to_wire(one_array(column)) for column in found.columns)]
            yield pa.record_batch(columns, names=["#", *found.column_names])


class _Encode:
    """Replaces values by numbers, and finds the keys of the blocks of each row."""

    def __init__(self, vectors: Sequence[bool], vocabulary: Sequence[_Vocabulary]) -> None:
        self._vectors = vectors
        self._vocabulary = vocabulary

    def __call__(self, rows: pa.Table, first: int) -> Iterator[pa.RecordBatch]:
        """Yield number, keys and values of each row with keys."""
        keys: list[tuple[np.ndarray[Any, Any], Numbers]] = []
        columns: dict[str, pa.Array] = {}
        for number, (values, vector) in enumerate(zip(rows.columns, self._vectors, strict=True)):
            if vector:
                found = unit_vectors(one_array(values))
                known = np.flatnonzero(found.known)
                keys += [
                    (_tagged(key, number, 3 + at), known) for at, key in enumerate(vector_keys(found.vectors[known]))
                ]
                columns[f"x{number}"] = _lists(found.vectors, found.known)
            else:
                tokens = token_rows(values)
                places = self._vocabulary[number].places(tokens.words)
                keys += _text_keys(tokens, places, self._vocabulary[number], number)
                columns |= _text_columns(tokens, places, self._vocabulary[number], number)
        owners = np.concatenate([owner for _, owner in keys])
        order = np.argsort(owners, kind="stable")
        counts = np.bincount(owners, minlength=rows.num_rows)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        listed = pa.ListArray.from_arrays(offsets, np.concatenate([key for key, _ in keys])[order])
        numbers = pa.array(np.arange(first, first + rows.num_rows))
        batch = pa.record_batch([numbers, listed, *columns.values()], names=["n", "keys", *columns])
        yield batch.filter(pa.array(counts > 0))


def _tagged(keys: np.ndarray[Any, Any], column: int, kind: int) -> Numbers:
    """Return keys that differ from those of other properties and kinds."""
    spread = mix(keys.astype(np.uint64)) + np.uint64(1 + column * 64 + kind) * _STEP
    return mix(spread).view(np.int64)


def _text_keys(
    tokens: TokenRows, places: Numbers, vocabulary: _Vocabulary, column: int
) -> list[tuple[Numbers, Numbers]]:
    """Return the keys of equal values, of tokens and of two tokens, each with its row."""
    count = len(vocabulary.words)
    frequencies = np.append(vocabulary.frequencies, 1)[places]
    single, two = token_keys(
        tokens.rows, np.where(places < 0, count, places)[tokens.tokens], frequencies[tokens.tokens], max(count, 1)
    )
    # A value with a token of one row equals no other value.
    split = pc.split_pattern(tokens.texts, " ")
    words = vocabulary.places(split.flatten())
    starts = np.asarray(split.offsets).astype(np.int64)
    lengths = np.diff(starts)
    position = np.arange(len(words)) - np.repeat(starts[:-1], lengths)
    mixed = mix(words.astype(np.uint64) * _STEP + position.astype(np.uint64))
    whole = np.zeros(len(lengths), bool)
    hashes = np.zeros(len(lengths), np.uint64)
    if len(lengths):
        # A normalised value has at least one word.
        whole = np.minimum.reduceat(words, starts[:-1]) >= 0
        hashes = np.add.reduceat(mixed, starts[:-1])
    rows = np.flatnonzero(tokens.values >= 0)
    rows = rows[whole[tokens.values[rows]]]
    values = _tagged(hashes[tokens.values[rows]], column, 0)
    return [(values, rows), (_tagged(single[0], column, 1), single[1]), (_tagged(two[0], column, 2), two[1])]


def _text_fields(number: int) -> list[tuple[str, pa.DataType]]:
    return [(f"t{number}", pa.list_(pa.int32())), (f"w{number}", pa.float64())]


def _text_columns(tokens: TokenRows, places: Numbers, vocabulary: _Vocabulary, number: int) -> dict[str, pa.Array]:
    """Return the tokens of each row that other rows have, and the weight of all; NaN without a value."""
    weights = np.append(vocabulary.weights, token_weights(np.ones(1, np.int64), vocabulary.count))[places]
    totals = np.bincount(tokens.rows, weights[tokens.tokens], minlength=tokens.count).astype(np.float64)
    found = places[tokens.tokens]
    counts = np.bincount(tokens.rows[found >= 0], minlength=tokens.count)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    listed = pa.ListArray.from_arrays(offsets, found[found >= 0].astype(np.int32))
    return {f"t{number}": listed, f"w{number}": pa.array(np.where(tokens.values >= 0, totals, np.nan))}


def _lists(vectors: np.ndarray[Any, Any], known: np.ndarray[Any, Any]) -> pa.Array:
    """Return vectors as lists; an empty list if there is none."""
    offsets = np.concatenate([[0], np.cumsum(known * vectors.shape[1])]).astype(np.int32)
    return pa.ListArray.from_arrays(offsets, vectors[known].ravel())


class _SharedKeys:
    """Keeps the keys of blocks of two or more rows, up to the limit."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows and keys of the blocks of a partition."""
        prepare_worker()
        parts = [
            np.zeros((2, 0), np.int64),
            *(np.stack([column.to_numpy() for column in batch.columns]) for batch in batches),
        ]
        rows, keys = np.concatenate(parts, axis=1)
        order, starts, sizes = blocks_of(keys, self._most)
        chosen = order[np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))]
        yield pa.record_batch([pa.array(rows[chosen]), pa.array(keys[chosen])], names=["n", "key"])


class _ScoreBlocks:
    """Scores the pairs of the blocks of a partition."""

    def __init__(self, request: ResolveRequest, vectors: Sequence[bool], weights: Sequence[Scores]) -> None:
        self._request, self._vectors, self._weights = request, vectors, weights

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the pairs from the threshold on, and a last row with -1 and the number of pairs that were compared."""
        prepare_worker()
        held = list(batches)
        names = ["a", "b", "score", *(f"s{number}" for number in range(len(self._vectors)))]
        if not held:
            return
        rows = pa.Table.from_batches(held).combine_chunks()
        numbers, keys = rows["n"].to_numpy(), rows["key"].to_numpy()
        starts, of_row = _list_parts(rows["keys"])
        names_of_keys, ranks = np.unique(of_row, return_inverse=True)
        own = np.searchsorted(names_of_keys, keys)
        columns = self._columns(rows)
        order, firsts, sizes = blocks_of(keys, self._request.block)
        compared = 0
        for left, right in block_pairs(firsts, sizes):
            for first in range(0, len(left), _PAIRS_AT_ONCE):
                a, b = order[left[first : first + _PAIRS_AT_ONCE]], order[right[first : first + _PAIRS_AT_ONCE]]
                pairs, common = common_entries(starts, ranks, a, b)
                # A pair is scored in the block with the least of its common keys.
                least = common[np.flatnonzero(np.diff(pairs, prepend=-1))]
                kept = least == own[a]
                a, b = a[kept], b[kept]
                compared += len(a)
                swap = numbers[a] > numbers[b]
                found = find_matches(self._request, columns, np.where(swap, b, a), np.where(swap, a, b))
                values = [numbers[found.left], numbers[found.right], found.scores, *found.by_property.values()]
                yield pa.record_batch([pa.array(one) for one in values], names=names)
        last: list[Any] = [[-1], [compared], *([0.0] for _ in names[2:])]
        yield pa.record_batch([pa.array(one) for one in last], names=names)

    def _columns(self, rows: pa.Table) -> Mapping[str, PairScores]:
        """Return the compared values in the form of the process."""
        found: dict[str, PairScores] = {}
        for number, (name, vector) in enumerate(zip(self._request.by, self._vectors, strict=True)):
            if vector:
                starts, values = _list_parts(rows[f"x{number}"])
                known = np.diff(starts) > 0
                size = int(np.diff(starts).max())
                vectors = np.zeros((rows.num_rows, size), np.float32)
                vectors[known] = values.reshape(-1, size) if size else 0
                found[name] = VectorScores(vectors, known)
            else:
                starts, tokens = _list_parts(rows[f"t{number}"])
                totals = rows[f"w{number}"].to_numpy()
                known = ~np.isnan(totals)
                found[name] = TokenScores(starts, tokens, self._weights[number], np.where(known, totals, 0.0), known)
        return found


def _list_parts(column: pa.ChunkedArray) -> tuple[Numbers, np.ndarray[Any, Any]]:
    """Return the offsets and the items of lists."""
    lists = one_array(column)
    return np.asarray(lists.offsets).astype(np.int64), lists.values.to_numpy(zero_copy_only=False)
