"""`omnigraph sql`, and exports to a database file."""

from __future__ import annotations

import json


def test_sql_runs_text_and_files(graph, folder, cli):
    code, out, _ = cli(
        "sql", "-e", "select name from Person where age > $n order by name", "-p", "n=30", "--json", str(graph)
    )
    assert code == 0
    rows = json.loads(out)["rows"]
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows)
    (folder / "count.sql").write_text("select count(*) as n from Person where name = $name")
    code, out, _ = cli("sql", "-q", "count.sql", "-p", f"name={rows[0]['name']}", "-f", "csv", str(graph))
    assert (code, out) == (0, "n\n1\n")


def test_sql_refuses_what_is_not_one_select(graph, cli):
    assert cli("sql", str(graph))[0] == 2
    assert cli("sql", "-e", "select 1", "-p", "n", str(graph))[0] == 2
    code, _, err = cli("sql", "-e", "delete from Person", str(graph))
    assert code != 0
    assert "SQL reads the graph; DELETE is not accepted" in err
    assert "omnigraph change" in err


def test_export_writes_a_database_file(graph, folder, cli):
    assert cli("export", "--format", "duckdb", str(graph))[0] == 2
    code, _, err = cli("export", "--format", "duckdb", "--out", "all.duckdb", str(graph))
    assert code == 0
    assert "rows written to all.duckdb" in err
    assert (folder / "all.duckdb").stat().st_size
