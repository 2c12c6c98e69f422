"""Tuning constants of the engine and of bulk operations: batch sizes, thresholds between algorithms and cache bounds.

The constants trade time for memory or choose between algorithms with equal results; no stored format depends on them.
Code reads them from `current` at the moment of use. Tests replace them with `replaced`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.fast_dataclass import dataclass


@dataclass(frozen=True)
class Tuning:
    """All tuning constants, with their defaults."""

    # Batches and cancellation
    batch_rows: int = 65_536
    """Rows processed between two checkpoints."""
    batch_values: int = 1 << 20
    """Numbers copied or expanded between two checkpoints: 8 MiB."""
    batch_bytes: int = 8 * 1024**2
    """Bytes of text that a scalar function produces between two checkpoints."""
    inline_call_rows: int = 1 << 18
    """A native call over fewer rows runs in the calling thread: it returns before a cancellation could matter."""
    poll_s: float = 0.02
    """Seconds between two checks of the limits while a thread waits for a native call or a lock."""

    # Execution
    lazy_result_rows: int = 65_536
    """A result with more rows fetches its properties batch by batch."""
    lazy_result_bytes: int = 64 * 1024**2
    """A result of about more bytes fetches its properties batch by batch; a batch has about a quarter of them."""
    result_batch_rows: int = 8192
    """Rows that are converted to Python or JSON values at a time."""
    result_batch_bytes: int = 1 << 20
    """Bytes of vectors that are converted to JSON values at a time; a number takes 32 bytes then."""
    merge_rows_min: int = 256
    """Binding tables with fewer rows are not deduplicated into weighted rows."""
    text_codes_rows_min: int = 1024
    """From this many rows on, texts are compared by the dictionary codes of the whole column."""
    python_sort_rows_max: int = 256
    """Up to this many ids are sorted in Python."""
    ranked_overfetch: int = 4
    """Candidates tried per wanted row when a rank is computed before the match, and the factor of each retry."""
    ranked_candidates_min: int = 64
    """Candidates tried at least."""
    match_parts_max: int = 64
    """Parts in which the matches of one execution run at most, each within the limit of its rows and bytes."""
    chain_rows_max: int = 10_000
    """A compiled chain returns to the executor above this many rows."""
    chain_steps_max: int = 500_000
    """Edges that one step of a compiled chain follows to a set of nodes; it holds their ends for a moment."""
    chain_bytes: int = 8 * 1024**2
    """Size of the row numbers that a compiled chain holds at most; a query with a lower limit takes the pipeline."""
    python_result_rows_max: int = 1_000
    """A compiled chain returns Python values up to this many rows, and Arrow above."""

    # Cycle counts
    cycle_expand_steps_max: int = 20_000
    """Up to this many steps, the far ends are expanded and tested one by one."""
    cycle_mark_cells: int = 1 << 24
    """Marks of one byte that the numpy fallback allocates at a time."""
    cycle_batch_steps: int = 1 << 22
    """Steps of the numpy fallback between two checkpoints."""
    cycle_kernel_batch_steps: int = 1 << 25
    """Steps of the compiled loop between two checkpoints. Each batch allocates one mark per node."""

    # Compiled kernels
    kernel_load_s: float = 0.05
    """Approximate time to load kernels that are already compiled. They load when the fallbacks would exceed it."""
    kernel_build_s: float = 0.02
    """Run time of the fallbacks after which another process compiles missing kernels for later processes."""
    kernel_compile_s: float = 0.5
    """Run time of the fallbacks after which a process that cannot keep compiled kernels compiles them for itself."""
    vector_fallback_s: float = 0.4e-9
    """Run time of the fallback of a vector comparison per element."""
    masked_sum_fallback_s: float = 1.5e-9
    """Seconds per value of the numpy fallback of a sum over a mask."""
    cycle_fallback_s: float = 8e-9
    """Run time of the fallback of a cycle count per step."""
    connected_fallback_s: float = 60e-9
    """Run time of the fallback of the test of a pair of nodes."""

    # Adjacency
    adjacency_disk_edges_min: int = 50_000
    """Adjacency of fewer edges is rebuilt faster than it is read from disk."""
    timeline_rows_min: int = 65_536
    """In tables of fewer rows, the rows that hold at an instant are found by a scan of all periods."""
    scans_before_timeline: int = 8
    """Scans of the periods of a table version before a timeline is built."""
    scans_before_compaction: int = 4
    """Scans of an adjacency with an overlay before the overlay is merged in."""
    joined_hop_edges: int = 1_000
    """Edges of several types that are combined into one CSR in the time that a hop over separate ones loses."""
    adjacency_sorted_edges: int = 8_000_000
    """Edges that are sorted at a time when a structure is built: about 250 MiB."""
    adjacency_ends_rows: int = 8_000_000
    """Edges whose ends are looked up at a time; each lookup hashes the ids of all nodes."""
    adjacency_divided_edges_min: int = 2_000_000
    """From this many edges on, the workers of a load build the adjacency: their jobs take half a second."""
    adjacency_sample_pairs: int = 4_096
    """Pairs of a sorted run of which one is a sample."""
    adjacency_log_edges_min: int = 2_000_000
    """From this many edges on, a build is logged."""
    adjacency_changed_edges_min: int = 50_000
    """Changed edges that an incremental update always accepts, beyond a share of the edges."""
    adjacency_overlay_share: float = 0.01
    """Share of the edges that may be in an overlay, which slows down every walk."""
    adjacency_update_share: float = 0.25
    """Share of the edges that may have changed for an update to be faster than a rebuild."""
    bfs_sources_first: int = 16
    """Sources of the first batch of a search from several nodes; later batches adapt to its cost."""
    bfs_sources_max: int = 65_536
    """Sources of one batch at most."""
    bfs_batch_steps: int = 1 << 18
    """Steps from several sources that are sorted between two checkpoints."""
    bfs_node_batch_steps: int = 1 << 22
    """Steps from one source between two checkpoints; they only set marks."""
    distinct_sort_rows: int = 8_192
    """So few nodes of a large table are made distinct by sorting, without marks for all nodes."""
    distinct_sort_nodes_min: int = 1_000_000
    """The nodes of a large table."""
    distinct_sort_cost: int = 16
    """Sorting a node takes about as long as allocating the marks of this many nodes."""
    bfs_small_frontier: int = 64
    """A frontier of at most this many nodes is expanded without batches."""
    checked_rows_min: int = 1_024
    """Hops between bound nodes of so many rows are checked with the adjacency that is cheapest, even if it is built."""

    # Paths
    path_batch_values: int = 1 << 20
    """Numbers in the simple paths that are extended between two checkpoints: 8 MiB."""
    shortest_batch_keys: int = 4_000_000
    """Entries (source, node) of the sources that a shortest-path search processes at a time."""
    bidirectional_pairs_max: int = 16
    """Up to this many pairs of ends are searched from both ends."""
    exact_weight_sum_max: float = 2.0**33
    """Multiples of 2⁻²⁰ add up exactly below this sum. A lower value is valid, a higher one is not."""

    # Statistics and plans
    statistics_change_share: float = 0.05
    """Statistics of an earlier version are kept while at most this share of the rows was added or removed."""
    statistics_rows_max: int = 8_192
    """Rows of a sample of numbers, dates or booleans, and of the ends of edges."""
    statistics_text_rows_max: int = 4_096
    """Rows of a sample of texts."""
    statistics_other_rows_max: int = 1_024
    """Rows of a sample of lists and vectors, of which only the presence is counted."""
    statistics_bytes_max: int = 4 << 20
    """Approximate size of a sample of texts, lists or vectors."""
    statistics_scan_bytes_max: int = 64 << 20
    """Columns of texts, lists and vectors are read as a whole only in tables of at most this stored size."""
    statistics_stored_rows_min: int = 1_000
    """Statistics of smaller tables are computed faster than they are read from disk."""
    statistics_load_rows_min: int = 400_000
    """Rows of a load for each table whose statistics it stores; with fewer they would take too much of its time."""
    plan_growth_max: float = 2.0
    """A plan is made again if a table became larger or smaller by more than this factor."""
    plan_growth_rows_min: int = 64
    """Tables of fewer rows count as this large."""
    search_states: int = 400
    """States that the search for an order extends at most; it is exhaustive for patterns of seven variables."""
    pattern_parts_max: int = 256
    """Operators of a pipeline whose order is chosen; a longer one runs in the order of its text."""
    nested_blocks_max: int = 4
    """Blocks inside each other that are compared in two forms; deeper ones run for each row."""
    seeded_rows_min: int = 20_000
    """Blocks that run once with fewer expected rows are not planned again for the nodes of their outer variables."""
    replan_factor: float = 50.0
    """The rest of a match is planned again if an operator has this many times the expected rows."""
    replan_rows_min: int = 20_000
    """Fewer rows are processed faster than a plan is made."""

    # Caches
    row_numbers_max: int = 2**31 - 1
    """Largest number of rows of a table or union: row numbers are 32-bit integers. A higher value is not valid."""
    cache_bytes_max: int = 2 * 1024**3
    cache_entries_max: int = 4_096
    table_versions_max: int = 16
    """Versions of a table whose fragments the cache remembers."""
    rank_characters: int = 64
    """Characters by which the texts of a column that does not fit the cache are ranked first."""
    complete_column_rows: int = 16_384
    """Columns of a table of at most this many rows are read in full on first use, if the table is small on disk."""
    complete_column_bytes: int = 1024**2
    """A column of at most this size is read in full on first use, however few of its rows are needed."""
    take_row_cost: int = 16
    """Reading a row by its number takes about as long as reading this many rows in order."""
    take_batch_rows: int = 8_192
    """Rows that are read by number between two checkpoints."""
    hot_column_share: float = 0.0625
    """A column that needs at most this share of the cache is read in full once its rows are read often."""
    hot_column_takes: float = 0.0625
    """Share of the time to read such a column in full that reading single rows takes before."""
    column_share_max: float = 0.25
    """Share of the cache that one column may need."""
    column_sample_rows: int = 64
    """Rows from which the size of a column is estimated."""
    joined_take_rows: int = 1_000
    """Rows of a column that is joined, of the members of a union or of an earlier version and later fragments, in the
    time that reading a few rows from the parts loses."""
    fragment_kept_rows: int = 1_024
    """Columns of added fragments of at most this many rows are kept for later versions."""
    codes_sample_rows: int = 2_000
    """Rows that are sampled to decide whether dictionary codes pay."""
    codes_max: int = 65_536
    """A column with more distinct values gets no dictionary codes."""
    id_segments_rows_min: int = 250_000
    """From this many rows on, ids are found by an index on disk, and the id column is not read."""
    id_lookups_before_index: int = 16
    """Scans of an id column that take about as long as building its index."""
    id_lookup_rows: int = 1_000
    """Rows that are compared with a list of ids in the time that the index of ids takes to find one."""
    visible_steps_min: int = 10_000
    """Edges that a hop follows and filters one by one, even if they are a large part of all edges."""
    rows_judged_before_mask: int = 8
    """Rows that are judged by a row condition on their own; then all rows are judged, if its columns are in memory."""
    mapped_rows_new_max: int = 20_000
    """New rows up to which a structure is updated by a row mapping, if there are more than the share below."""
    mapped_rows_new_share_max: float = 0.25
    segment_rows_min: int = 5_000
    """More new rows than this form a segment of their own."""
    segments_max: int = 8
    segment_part_rows_min: int = 100_000
    """Rows of a segment that a worker builds; more workers would spend their time on starting."""
    segment_live_share_min: float = 0.5
    """Segments are rebuilt if a smaller share of their rows is live."""
    disk_cache_large_bytes: int = 1 << 20
    """A smaller array of the disk cache is verified whenever its entry is opened."""
    disk_cache_tries: int = 3
    remote_cache_list_s: float = 60.0
    """Age up to which a listing of the cache of a bucket is used again."""
    remote_block_bytes: int = 1 << 16
    """Size of the blocks of arrays that other machines read by range. It must be a multiple of 8."""
    remote_ranged_bytes_min: int = 2 << 20
    """A structure of fewer bytes is downloaded completely."""
    build_wait_s: float = 30.0
    """Seconds that a process waits for another one that builds a large structure."""
    disk_cache_orphan_s: float = 24 * 3600.0
    """Age from which files of an interrupted write are removed."""

    # Search
    text_batch_chars: int = 65_536
    """Characters of a query text that are analyzed between two checkpoints."""
    edit_distance_words_min: int = 64
    """From this many words on, edit distances are computed for all words at once."""
    postings_chunk_bytes: int = 16_000_000
    """Bytes of text that are split at a time."""
    postings_partial_bytes: int = 160 << 20
    """Bytes of text and postings that form a partial index."""
    posting_bytes: int = 8
    """Bytes of a posting that is not encoded."""
    postings_runs_max: int = 2_000_000
    """Distinct runs of letters that are kept from one partial index to the next."""
    postings_merge_terms: int = 500_000
    """Terms of all partial indexes that are merged at a time."""
    postings_merge_words: int = 4_000_000
    """Words of posting lists that are copied at a time."""
    postings_compile_bytes: int = 64 << 20
    """A build waits for the compiler after this many bytes of text."""
    postings_fallback_s: float = 60e-9
    """Run time of the fallbacks per posting that is encoded, decoded or scored."""
    split_fallback_s: float = 50e-9
    """Run time of the fallback per byte of text that is split."""
    pruned_postings_min: int = 50_000
    """From this many postings on, the best rows are found without scoring all rows."""
    pruned_rows_share: float = 1 / 8
    """Rows are pruned while at most this share of them has a score."""
    pruned_first_share: float = 1 / 64
    """The rows of the rarest term are completed first if they are at most this share of all rows."""
    postings_dense_share: float = 1 / 32
    """Scores are added up in an array of all rows if the terms have at least this share of postings per row."""
    long_texts_disk_rows_min: int = 64
    """The inverted index of so many texts of more than a kibibyte on disk is kept on disk."""
    postings_disk_rows_min: int = 5_000
    """An inverted index of fewer rows is rebuilt faster than it is read from disk."""
    vector_batch_rows: int = 8192
    vector_batch_elements: int = 65_536
    """Elements of one matrix product. A larger product would use several threads, which slows it down."""
    vector_part_elements: int = 1 << 23
    """Codes that one thread compares at least: these take a few milliseconds, a thread starts in a tenth of one."""
    vector_exact_rows_max: int = 512
    """Up to this many vectors are compared in full, without codes."""
    vector_copy_bytes_max: int = 256 * 1024**2
    """Columns of vectors up to this size are copied beside their codes; others are read from the table."""
    vector_index_rows_min: int = 50_000
    """Tables of fewer rows are searched exactly; later segments of fewer rows are not clustered."""
    vector_index_new_share: float = 0.1
    """Share of the rows that may be added before they are clustered; they are scanned exactly until then."""
    vector_index_scan_share: float = 0.2
    """A search that would scan a larger share of the rows in clusters is exact: rows in order are scanned faster."""
    vector_sample_rows: int = 40
    """Rows per cluster from which the centroids are computed."""
    vector_sample_bytes: int = 256 * 1024**2
    """Largest size of the sample."""
    vector_cluster_rounds: int = 6
    """Rounds of k-means."""
    vector_product_elements: int = 1 << 22
    """Elements of the product of a batch of rows and all centroids: 16 MiB."""
    vector_assign_elements: int = 1 << 24
    """Elements of the vectors that are assigned to clusters at a time: 64 MiB. Products of few rows are slow."""
    vector_recall_queries: int = 96
    """Sample queries for which the probes are chosen, and with as many others the recall is measured."""
    vector_recommend_rows: int = 1_000_000
    """Above this number of rows, `explain` recommends the approximate search."""
    vector_disk_bytes_min: int = 8_000_000
    """Vectors with fewer bytes are converted faster than they are read from disk."""

    # Writes and input
    in_list_max: int = 2_000
    """Up to this many values are looked up by an IN list; more values scan the table."""
    record_bytes_max: int = 32 * 1024**2
    """Largest record of an input file, in any format."""
    jsonl_block_bytes: int = 1 << 20
    """Bytes of lines that the fast JSONL reader decodes at a time."""
    csv_batch_rows: int = 65_536
    csv_batch_chars: int = 16 << 20
    parquet_batch_rows: int = 65_536
    parquet_batch_bytes: int = 64 << 20
    """Approximate decoded size of a batch; a batch has at least one row."""
    parquet_chunk_bytes_max: int = 2 << 30
    """Largest column chunk, decompressed, that a row group may declare."""

    # Bulk operations
    memory_load_bytes_max: int = 32 << 20
    """Largest input that is loaded in memory. The peak is about 150 MB, and no intermediate files are written."""
    decoded_bytes_max: int = 256 << 20
    """Maximum size of the decoded tables of an input that is loaded in memory."""
    spark_bytes_min: int = 1 << 30
    """From this size on, starting Spark pays off on enough cores (`bench/pipeline.py`)."""
    spark_cores_min: int = 4
    gzip_ratio: int = 6
    """Assumed compression ratio of gzip."""
    split_bytes_max: int = 64 << 20
    split_bytes_min: int = 8 << 20
    bucket_bytes: int = 128 << 20
    """Approximate input per bucket. With it, validating a bucket needs no more memory than reading a split."""
    bucket_bytes_min: int = 8 << 20
    """Minimum input per bucket. Starting another worker costs more than validating less."""
    buckets_max: int = 4096
    staged_rows: int = 262_144
    """Number of held rows at which a task writes a fragment."""
    staged_bytes: int = 64 << 20
    """Number of held bytes at which a task writes a fragment."""
    fetched_rows: int = 64
    """Number of rows whose blobs are resolved together at first. Their size is known only afterwards."""
    fetched_bytes: int = 64 << 20
    """Approximate size of the resolved blobs in memory."""
    id_filter_rows_max: int = 4_000_000
    """Up to this number of written rows a task holds all their ids, about 80 bytes each, and shuffles only committed
    rows that have one of them."""
    scanned_rows_per_hit: int = 32
    """A fragment with fewer rows per matched row is scanned for the values that a merge keeps; in others they are read
    by row id."""


current = Tuning()


@contextmanager
def replaced(**changes: float) -> Iterator[Tuning]:
    """Replace some constants of `current` in this process until the block ends."""
    global current
    before = current
    current = replace(before, **changes)  # type: ignore[arg-type]
    try:
        yield current
    finally:
        current = before
