"""Bulk operations as jobs: many workers read, check and write; one process publishes.

    plan      list the files, cut them into splits, pin the tables                   the driver
    stage     read a split, decode and check its records, write fragments that       one task per split
              belong to no version, shuffle the keys into buckets
    scan      shuffle the keys of committed rows into the same buckets               one task per stored fragment
    validate  apply the rules that compare rows                                      one task per bucket
    finalize  rewrite fragments without the rows that were set aside, delete the     one task per affected fragment
              rows that are replaced
    publish   one transaction, as for every write                                    the driver

A task is a function of a `Job` and a unit of work. Both are plain data, and so is its result. Rows never pass through
the driver. Tasks exchange data only through files in the job's folder. A `Runner` executes tasks: `InlineRunner` in a
loop, `omnigraph.spark` on a cluster. All runners use the same task functions, so the tests need no cluster.

Records are decoded by the readers (`engine.ingest.record_reader`) and validated by the rules
(`engine.write.constraints`) that every other write uses. Results and errors equal those of a load in memory.

A task may run twice. It writes only under new names, and only results that the driver receives are used.
"""
