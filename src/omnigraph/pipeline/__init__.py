"""Bulk data as jobs: many workers read, check and write; one process publishes.

    plan      list the files, cut them into splits, pin the tables                   the driver
    stage     read a split, decode and check its records, write pieces of tables     a task per split
              that belong to no version yet, deal the keys into buckets
    scan      deal the keys of committed rows into the same buckets                  a task per stored piece
    judge     the rules that look across rows, a bucket at a time                    a task per bucket
    settle    leave out what was set aside, put upserts in place of what they meet   a task per piece concerned
    publish   one transaction, as for every write                                    the driver

A task is a function of a `Job` and a piece of work, both plain data; what it returns is plain data too. Rows
never pass through the driver, and tasks never talk to one another but through files in the job's folder. A
`Runner` executes tasks: `InlineRunner` in a loop, or one that hands them to a cluster (`omnigraph.spark`). So
there is one implementation of everything, and it needs no cluster to be tested.

The records are decoded by the readers and judged by the rules every other write uses (`engine.ingest.record_reader`,
`engine.write.constraints`): results and errors are those of a load in memory.

A task may run twice: it writes under fresh names only, and only what the driver gets back counts.
"""
