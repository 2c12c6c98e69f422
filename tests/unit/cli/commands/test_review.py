"""Commands on branches, commits, tags and changes."""

from __future__ import annotations

import json
from pathlib import Path

from support.commands import SCHEMA, document, set_age


def test_branches(graph, cli):
    assert cli("branch", "create", "review/x", "g.omni", "--quiet") == (0, "branch review/x created at main\n", "")
    assert document(cli("branch", "list", "--json")) == {"branches": ["main", "review/x"]}
    answer = document(cli("branch", "create", "a", "--from", "review/x", "--json", "--as", "bo"))
    assert {key: answer[key] for key in ("uri", "from", "name", "actor_id")} == {
        "uri": "g.omni", "from": "review/x", "name": "a", "actor_id": "bo",
    }  # fmt: skip
    assert cli("branch", "list")[1] == "a\nmain\nreview/x\n"
    assert cli("branch", "delete", "a", "--quiet") == (0, "branch a deleted\n", "")
    assert cli("branch", "delete", "a")[0] == 1
    assert cli("branch", "create", "main")[0] == 1
    assert cli("branch", "create", "review/x")[0] == 1


def test_a_branch_has_a_description_and_an_expiry(graph, cli):
    assert cli("branch", "create", "x", "--description", "a trial", "--expires", "14d", "--as", "bo")[0] == 0
    shown = document(cli("branch", "show", "x", "--json"))
    assert (shown["name"], shown["owner"], shown["description"]) == ("x", "bo", "a trial")
    assert shown["expires_at"] > shown["head"]["created_at"]
    text = cli("branch", "show", "x")[1]
    assert text.startswith("branch x at ")
    assert "\nowner: bo\ndescription: a trial\nexpires: " in text
    changed = document(cli("branch", "update", "x", "--expires", "never", "--description", "", "--json"))
    assert (changed["description"], changed["expires_at"]) == (None, None)
    assert cli("branch", "update", "x")[0] == 2
    assert cli("branch", "update", "x", "--expires", "soon")[0] == 2
    assert cli("branch", "update", "main", "--expires", "1d")[0] == 1
    assert cli("branch", "show", "none")[0] == 1


def test_diff_and_merge(graph, cli):
    cli("branch", "create", "x")
    set_age(cli, "Bo", 18, "x")
    assert cli("diff", "main", "x") == (0, "update node Person Bo\n  age: 17 -> 18\n1 change\n", "")
    assert cli("diff", "main", "x", "--stat")[1] == "node:Person  +0 ~1 -0\n1 change\n"
    code, _, refused = cli("diff", "main", "x", "--stat", "--limit", "1")
    assert code == 2
    assert "--limit" in refused
    assert cli("diff", "main", "x", "--op", "insert")[1] == "0 changes\n"
    (change,) = document(cli("diff", "main", "x", "--json"))["changes"]
    assert (change["op"], change["before"]["age"], change["after"]["age"]) == ("update", 17, 18)
    assert cli("diff", "main", "x", "--kind", "row")[0] == 2
    assert cli("diff", "main")[0] == 2
    set_age(cli, "Ana", 42, "main")
    assert cli("diff", "main..x", "--stat")[1] == "node:Person  +0 ~2 -0\n2 changes\n"
    assert cli("diff", "main...x", "g.omni") == (0, "update node Person Bo\n  age: 17 -> 18\n1 change\n", "")
    assert cli("diff", "x...")[1] == "update node Person Ana\n  age: 41 -> 42\n1 change\n"
    answer = document(cli("diff", "main...x", "--json"))
    assert (answer["from"], answer["to"], len(answer["changes"])) == ("main", "x", 1)
    assert cli("diff", "main...x", "g.omni", "more")[0] == 2
    code, _, err = cli("diff", "main", "99")
    assert code == 1
    assert "branch 'main' has no version 99; its versions are 1 to " in err
    assert cli("branch", "merge", "x", "--into", "main", "--quiet", "--delete-branch") == (
        0, "merge x -> main: merged\n", "",
    )  # fmt: skip
    assert cli("branch", "list")[1] == "main\n"


def test_branch_with_own_commits_requires_force(graph, cli):
    cli("branch", "create", "x")
    set_age(cli, "Bo", 18, "x")
    code, _, err = cli("branch", "delete", "x", "--quiet")
    assert code == 1
    assert err.startswith(
        "error: branch 'x' has 1 commit that is on no other branch and under no tag; it was not deleted"
    )
    assert "--force" in err
    assert cli("branch", "delete", "x", "--force", "--quiet") == (0, "branch x deleted\n", "")


def test_conflict_is_shown_and_resolved(graph, cli):
    cli("branch", "create", "x")
    set_age(cli, "Bo", 18, "x")
    set_age(cli, "Bo", 19, "main")
    preview = cli("branch", "merge", "x", "--preview")
    assert preview[0] == 0
    assert preview[1].startswith("merge preview x -> main: 1 conflict; would not merge\n")
    assert "conflict  node:Person:Bo (divergent_update)" in preview[1]
    assert preview[1].endswith("1 conflict; --resolve ours|theirs resolves it\n")
    code, out, err = cli("branch", "merge", "x", "--json", "--quiet")
    assert code == 1
    (conflict,) = json.loads(out)["merge_conflicts"]
    assert (conflict["table_key"], conflict["row_id"], conflict["kind"]) == ("node:Person", "Bo", "divergent_update")
    assert "node:Person:Bo (divergent_update)" in err
    assert err.endswith("hint: --resolve ours|theirs resolves it\n")
    assert cli("branch", "merge", "x", "--resolve", "mine")[0] == 2
    assert cli("branch", "merge", "x", "--resolve", "ours", "--resolve", "theirs")[0] == 2
    assert cli("branch", "merge", "x", "--resolve", "Person=1")[0] == 2
    assert "did you mean 'Person'?" in cli("branch", "merge", "x", "--resolve", "Persn=ours")[2]
    unknown = cli("branch", "merge", "x", "--resolve", "node:Person:Bo=ours", "--resolve", "node:Person:Zo=ours")[2]
    assert unknown.endswith("there is no conflict 'node:Person:Zo'\nhint: --preview lists the conflicts\n")
    chosen = cli("branch", "merge", "x", "--preview", "--resolve", 'node:Person:Bo={"age": 20}')
    assert (chosen[0], "conflict" in chosen[1]) == (0, False)
    answer = document(cli("branch", "merge", "x", "--resolve", "Person=theirs", "--json", "-m", "theirs"))
    assert (answer["outcome"], answer["source"], answer["target"], answer["actor_id"]) == ("merged", "x", "main", None)
    assert cli("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n18\n"
    commits = document(cli("commit", "list", "--json"))["commits"]
    shown = cli("commit", "show", commits[0]["graph_commit_id"])[1].splitlines()
    assert shown[0] == f"graph_commit_id: {commits[0]['graph_commit_id']}"
    assert f"merged_parent_commit_id: {commits[0]['merged_parent_commit_id']}" in shown
    line = cli("commit", "list", "--limit", "1")[1]
    assert line.startswith(f"{commits[0]['graph_commit_id']}  20")
    assert line.endswith("  theirs\n")


def test_revert(graph, cli):
    set_age(cli, "Bo", 18, "main")
    first = document(cli("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    preview = cli("revert", first, "--preview")
    assert preview[1].startswith(f"revert preview {first} on main: merged; nothing was written\n  node:Person: ")
    answer = document(cli("revert", first, "--json", "--quiet", "--as", "ana"))
    assert (answer["reverted_commit_id"], answer["branch"], answer["actor_id"]) == (first, "main", "ana")
    assert cli("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n17\n"
    set_age(cli, "Bo", 19, "main")
    code, _, err = cli("revert", answer["commit_id"], "--quiet")
    assert code == 1
    assert "node:Person:Bo" in err
    assert "--resolve ours|theirs resolves it" in err
    preview = cli("revert", answer["commit_id"], "--preview")[1]
    assert preview.startswith(f"revert preview {answer['commit_id']} on main: 1 conflict; would not revert\n")
    assert cli("revert", answer["commit_id"], "--resolve", "theirs", "--quiet")[0] == 0
    assert cli("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv")[1] == "p.age\n18\n"
    Path("named.gq").write_text("query named() { match { $p: Person } return { $p.name } }")
    cli("queries", "push", "named.gq", "--quiet")
    assert cli("revert", "main", "--preview")[1].endswith("\n  1 stored query changes\n")


def test_unknown_points_and_schema_steps(graph, cli):
    assert cli("tag", "create", "v1")[0] == 0
    assert cli("branch", "create", "rev")[0] == 0
    for command in (["diff", "main", "rve"], ["export", "--at", "rve"], ["commit", "show", "rve"]):
        err = cli(*command)[2]
        assert err.startswith("error: there is no branch, tag or commit 'rve'\nhint: did you mean 'rev'? a point is a ")
    commit_id = document(cli("commit", "show", "v1", "--json"))["graph_commit_id"]
    assert document(cli("revert", "v1", "--preview", "--json"))["reverted_commit_id"] == commit_id
    Path("more.pg").write_text(SCHEMA + "\nnode Place {\n    name: String @key\n}\n")
    assert cli("schema", "apply", "--schema", "more.pg", "--branch", "rev")[0] == 0
    assert cli("diff", "main", "rev")[1] == "schema: add node type Place\n0 changes\n"
    assert document(cli("diff", "main", "rev", "--json"))["schema_steps"] == ["add node type Place"]
    assert cli("branch", "merge", "rev")[1].splitlines()[1:] == ["  schema: add node type Place"]


def test_tags(graph, cli):
    code, out, _ = cli("tag", "create", "first", "--quiet", "-m", "as it began", "--as", "ana")
    head = document(cli("commit", "list", "--json", "--limit", "1"))["commits"][0]["graph_commit_id"]
    assert (code, out) == (0, f"tag first names {head}\n")
    set_age(cli, "Bo", 18, "main")
    assert cli("diff", "first", "main")[1] == "update node Person Bo\n  age: 17 -> 18\n1 change\n"
    assert cli("read", "-q", "q.gq", "-n", "one", "-p", "name=Bo", "-f", "csv", "--at", "first")[1] == "p.age\n17\n"
    line = cli("tag", "list")[1]
    assert line.startswith(f"first  {head}  20")
    assert line.endswith("  ana  as it began\n")
    assert [tag["name"] for tag in document(cli("tag", "list", "--json"))["tags"]] == ["first"]
    assert cli("tag", "create", "first")[0] == 1
    assert document(cli("tag", "create", "zero", "--at", "1", "--json"))["name"] == "zero"
    assert cli("branch", "create", "again", "--at", "first", "--quiet")[1] == "branch again created at first\n"
    assert cli("tag", "delete", "first", "--quiet") == (0, "tag first deleted\n", "")
    assert cli("tag", "delete", "first")[0] == 1


def test_history_and_blame(graph, cli):
    set_age(cli, "Bo", 18, "main")
    cli("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=19", "--as", "ana", "-m", "a year on")
    lines = cli("history", "Person", "Bo")[1].splitlines()
    assert [line for line in lines if line.startswith("  ")] == [
        "  age: 18 -> 19",
        "  age: 17 -> 18",
        "  + age: 17",
        "  + name: Bo",
    ]
    assert lines[0].endswith("  update  ana  a year on")
    answer = document(cli("history", "Person", "Bo", "g.omni", "--json"))
    assert [change["op"] for change in answer["changes"]] == ["update", "update", "insert"]
    blamed = {row["property"]: row for row in document(cli("blame", "Person", "Bo", "--json"))["properties"]}
    assert (blamed["age"]["value"], blamed["age"]["actor_id"], blamed["name"]["actor_id"]) == (19, "ana", None)
    (line,) = [line for line in cli("blame", "Person", "Bo")[1].splitlines() if line.startswith("age ")]
    assert line.endswith("  ana  a year on  19")
    first = answer["changes"][-1]["graph_commit_id"]
    then = {
        row["property"]: row["value"]
        for row in document(cli("blame", "Person", "Bo", "--at", first, "--json"))["properties"]
    }
    assert then["age"] == 17
    code, _, err = cli("history", "Person", "Nobody")
    assert code == 1
    assert "Person 'Nobody' does not exist" in err
    assert "did you mean 'Person'?" in cli("blame", "Persn", "Bo")[2]


def test_commit_changes(graph, cli):
    set_age(cli, "Bo", 18, "main")
    first, second, _ = (c["graph_commit_id"] for c in document(cli("commit", "list", "--json"))["commits"])
    out = cli("commit", "changes", first)[1]
    assert out.startswith(f"commit: {first}\nbranch: main\nparent: {second}\nauthored_at: 20")
    assert out.endswith("update node Person Bo\n  age: 17 -> 18\n")
    answer = document(cli("commit", "changes", second, "--json", "--limit", "1"))
    assert (len(answer["changes"]), answer["cause"]["graph_commit_id"]) == (1, second)
    rest = document(cli("commit", "changes", second, "--json", "--limit", "10", "--page-token", answer["page"]))
    assert (len(rest["changes"]), rest["page"]) == (3, None)
    assert len(document(cli("commit", "changes", second, "--kind", "edge", "--json"))["changes"]) == 1


def test_change_feed(graph, cli):
    out = cli("changes", "poll")[1].splitlines()
    assert out[0] == "(no new commits)"
    assert out[2] == "caught_up: true"
    cursor = out[1].removeprefix("cursor: ")
    set_age(cli, "Bo", 18, "main")
    answer = document(cli("changes", "poll", "--cursor", cursor, "--json"))
    assert [change["id"] for block in answer["blocks"] for change in block["changes"]] == ["Bo"]
    assert answer["caught_up"] is True
    answer = document(cli("changes", "poll", "--start", "beginning", "--limit", "2", "--json"))
    seen = 0
    for _ in range(10):
        seen += sum(len(block["changes"]) for block in answer["blocks"])
        if answer["caught_up"]:
            break
        answer = document(cli("changes", "poll", "--cursor", answer["cursor"], "--limit", "2", "--json"))
    assert (seen, answer["caught_up"]) == (5, True)
    code, _, err = cli("changes", "poll", "--cursor", cursor[:-3] + "xyz")
    assert code == 1
    assert err.startswith("error: change cursor rejected: ")
    assert cli("changes", "poll", "--cursor", cursor, "--start", "now")[0] == 2
    baseline = document(cli("changes", "baseline", "--out", "b.jsonl", "--json"))
    assert baseline["rows"] == len(Path("b.jsonl").read_text().splitlines()) == 4
    assert document(cli("changes", "poll", "--cursor", baseline["resume_cursor"], "--json"))["blocks"] == []
    assert cli("changes", "baseline", "--out", "b.jsonl")[1].startswith("baseline b.jsonl: 4 rows of branch main at 0")


def test_limited_diff_shows_the_total(graph, cli):
    init = document(cli("commit", "list", "--json"))["commits"][-1]["graph_commit_id"]
    code, out, _ = cli("diff", init, "main", "--limit", "1")
    assert (code, out.splitlines()[-1]) == (0, "1 of 4 changes")
    shown = document(cli("diff", init, "main", "--limit", "1", "--json"))
    assert (len(shown["changes"]), shown["truncated"]) == (1, True)
    assert document(cli("diff", init, "main", "--limit", "99", "--json"))["truncated"] is False


def test_rows_events_and_comments_of_a_proposal(graph, cli, tmp_path):
    check = "query young() @check(empty) { match { $p: Person $p.age < 18 } return { $p.name as name, $p.age as age } }"
    Path("checks.gq").write_text(check)
    assert cli("queries", "push", "checks.gq", "g.omni")[0] == 0
    for name in ("x", "y"):
        cli("branch", "create", name)
        set_age(cli, "Bo", 3, name)
        assert cli("propose", name, "-m", name, "--as", "ana")[0] == 0
    found = document(cli("proposal", "rows", "x", "--check", "young", "--json"))
    assert (found["name"], found["rows"], found["total"]) == ("young", [{"name": "Bo", "age": 3}], 1)
    assert cli("proposal", "rows", "x", "--check", "young")[1].endswith("Bo   |   3\n1 row\n")
    assert cli("proposal", "rows", "x", "--check", "none")[0] == 1
    comment = document(cli("proposal", "comment", "x", "-m", "How old?", "--as", "bo", "--json"))["id"]
    assert cli("proposal", "edit-comment", "x", comment)[0] == 2
    edited = cli("proposal", "edit-comment", "x", comment, "-m", "What age?", "--resolved", "--as", "bo")
    assert edited[1] == f"comment {comment} (resolved): What age?\n"
    shown = document(cli("proposal", "show", "x", "--json"))
    assert [(one["text"], one["resolved"]) for one in shown["comment_list"]] == [("What age?", True)]
    assert (shown["comments"], shown["hidden_comments"]) == (1, 0)
    reopened = document(cli("proposal", "edit-comment", "x", comment, "--unresolved", "--json", "--as", "bo"))
    assert (reopened["text"], reopened["resolved"]) == ("What age?", False)
    events = document(cli("proposal", "events", "x", "--json"))["events"]
    assert [event["number"] for event in events] == list(range(1, len(events) + 1))
    assert cli("proposal", "events", "x", "--after", str(len(events) - 1))[1].split()[0] == str(len(events))
    first = document(cli("proposal", "list", "--limit", "1", "--json"))
    assert [one["source"] for one in first["proposals"]] == ["y"]
    rest = document(cli("proposal", "list", "--after", first["next"], "--json"))
    assert ([one["source"] for one in rest["proposals"]], rest["next"]) == (["x"], None)
