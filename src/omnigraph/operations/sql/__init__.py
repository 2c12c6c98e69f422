"""SQL over a snapshot, by DuckDB.

table_source    a table or the result of a query as an Arrow dataset that DuckDB scans
connection      connections with one view per type
select          one SELECT as a `Result`
database_file   a snapshot as a DuckDB database file

Only this package imports DuckDB.
"""
