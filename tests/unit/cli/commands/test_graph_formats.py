"""`load`, `init --from` and `export` with the formats of other graph programs."""

from __future__ import annotations

import json

NODES = "personId:ID,name,tags:string[],:LABEL\na,Ana,x|y,Person\nb,Bo,,Person\n"
EDGES = ":START_ID,:END_ID,:TYPE\na,b,KNOWS\na,c,KNOWS\n"


def test_init_load_and_export(folder, cli):
    (folder / "in").mkdir()
    (folder / "in" / "nodes.csv").write_text(NODES)
    (folder / "in" / "edges.csv").write_text(EDGES)
    code, out, err = cli("init", "--from", "neo4j:in", "--array-delimiter", "|", "--yes", "--no-scaffold", "new.omni")
    assert (code, "loaded 2 rows of node:Person" in out) == (0, True), err
    assert "1 invalid record set aside in rejects.jsonl" in err
    assert json.loads((folder / "rejects.jsonl").read_text())["line"] == 3
    load = ("load", "--format", "neo4j", "--array-delimiter", "|", "in", "--mode", "merge", "new.omni")
    code, _, err = cli(*load)
    assert code != 0
    assert "edges.csv, line 3" in err
    code, out, _ = cli(*load, "--rejects", "r.jsonl")
    assert (code, "2 nodes in 1 type, 1 edge in 1 type" in out) == (0, True)
    for format_ in ("neo4j", "graphml", "gexf"):
        assert cli("export", "--format", format_, "new.omni")[0] == 2
        code, _, err = cli("export", "--format", format_, "--out", f"out.{format_}", "new.omni")
        assert (code, f"4 rows written to out.{format_}" in err) == (0, True)
    code, out, _ = cli("init", "--from", "out.graphml", "--dry-run", "--json", "other.omni")
    assert (code, "edge Knows: Person -> Person" in json.loads(out)["schema"]) == (0, True)
    code, out, _ = cli("load", "out.graphml", "--mode", "merge", "new.omni")
    assert (code, "2 nodes in 1 type, 2 edges in 1 type" in out) == (0, True)
    code, _, err = cli("load", "--format", "gexf", "out.gexf", "--mode", "merge", "new.omni")
    assert code != 0
    assert "there is no format 'gexf' of files to load" in err
