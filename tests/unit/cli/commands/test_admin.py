"""Maintenance and configuration commands."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import document, set_age


def test_snapshot(graph, cli):
    cli("branch", "create", "x")
    cli("change", "-q", "q.gq", "-n", "birthday", "-p", "name=Bo", "-p", "age=18", "-b", "x")
    code, out, _ = cli("snapshot", "-b", "x")
    assert code == 0
    assert out.splitlines()[0].startswith("branch x, manifest version ")
    assert "edge:Knows  version=2  branch=main  rows=1" in out
    assert "node:Person  version=3  branch=x  rows=3" in out
    answer = document(cli("snapshot", "-b", "x", "--json"))
    assert [table["table_branch"] for table in answer["tables"]] == [None, "x"]
    assert answer["internal_schema_version"] >= 1001


def test_optimize_cleanup_recover_and_verify(graph, cli):
    for age in range(18, 22):
        set_age(cli, "Bo", age, "main")
    code, out, _ = cli("optimize", "--quiet")
    assert code == 0
    assert out.splitlines()[0] == "optimize g.omni: 2 tables"
    assert document(cli("optimize", "--json"))["tables"][0]["committed"] is False
    assert cli("cleanup", "--quiet")[0] == 2
    code, out, err = cli("cleanup", "--keep", "2", "--older-than", "0s")
    assert (code, out) == (0, "")
    assert err.startswith("cleanup preview for g.omni: keep 2 commits of each branch, remove versions older than 0s; ")
    assert err.endswith("run again with --confirm\n")
    preview = document(cli("cleanup", "--keep", "2", "--json"))
    assert (preview["confirmed"], preview["tables"], preview["keep_versions"]) == (False, [], 2)
    done = document(cli("cleanup", "--keep", "2", "--older-than", "2w", "--confirm", "--json"))
    assert (done["confirmed"], done["older_than_secs"], len(done["tables"])) == (True, 1_209_600, 2)
    assert cli("recover") == (0, "recover g.omni: 0 unfinished writes\n", "")
    assert cli("verify") == (0, "verify g.omni: sound\n", "")
    assert document(cli("verify", "--json"))["sound"] is True


def test_verify_deep_names_a_damaged_file(graph, cli):
    assert cli("verify", "--deep") == (0, "verify g.omni: sound; every recorded digest matches\n", "")
    sound = document(cli("verify", "--deep", "--json"))
    assert (sound["sound"], sound["problems"], sound["remarks"]) == (True, [], [])
    path = next(Path("g.omni").glob("nodes/*/data/*.lance"))
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    code, out, _ = cli("verify", "--deep")
    assert code == 1
    assert path.name in out
    assert "1 problem" in out


@pytest.mark.parametrize("text", ["", "d", "5", "1.5", "-1d", "1h30m", "7 d", "7D", "9" * 19 + "w"])
def test_invalid_durations(graph, cli, text):
    code, _, err = cli("cleanup", "--older-than", text)
    assert code == 2
    assert "s, m, h, d, w" in err


def test_config_shows_origins(graph, cli, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_ACTOR", "ana")
    found = {row["key"]: row for row in document(cli("config", "--json"))["settings"]}
    assert found["graph"] == {"key": "graph", "value": "g.omni", "origin": "cli.graph"}
    assert found["actor"]["origin"] == "OMNIGRAPH_ACTOR"
    assert found["cli.branch"]["origin"] == "omnigraph.yaml"
    assert {row["key"]: row["origin"] for row in document(cli("config", "--json", "x.omni"))["settings"]}[
        "graph"
    ] == "the URI"
    assert "cli.output_format" in cli("config")[1]


def test_operator_file(graph, cli):
    Path("home").mkdir()
    Path("home/config.yaml").write_text(
        f"operator: {{actor: maren}}\ndefaults: {{output: csv, store: {graph}}}\nprofile: {{x: {{url: y}}}}\n"
    )
    Path("omnigraph.yaml").rename("other.yaml")
    code, out, err = cli("read", "-q", "q.gq", "-n", "adults", "-p", "least=18")
    assert (code, out) == (0, "p.name,p.age\nAna,41\n")
    unknown = f"unknown key 'profile' in {Path('home').absolute()}/config.yaml (did you mean 'profiles'?)"
    assert err == f"warning: {unknown}\n"
    settings = {row["key"]: row for row in document(cli("config", "--json"))["settings"]}
    assert (settings["actor"]["value"], settings["cli.output_format"]["value"]) == ("maren", "csv")
    assert settings["graph"]["origin"].endswith("home/config.yaml")
    Path("other.yaml").rename("omnigraph.yaml")
    assert cli("read", "-q", "q.gq", "-n", "adults", "-p", "least=18")[1].startswith("1 row from branch main")


def test_configuration_warnings_are_printed_once(graph, cli):
    with Path("omnigraph.yaml").open("a") as file:
        file.write("colour: red\n")
    assert cli("branch", "list") == (0, "main\n", "warning: unknown key 'colour' in omnigraph.yaml\n")


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run"], "omnigraph branch merge"),
        (["run", "list"], "omnigraph branch merge"),
        (["run", "publish", "01ABC", "g.omni"], "omnigraph branch merge"),
        (["run", "begin", "--branch", "x", "--operation-hash", "h"], "omnigraph branch create"),
        (["repair"], "omnigraph recover"),
        (["repair", "--confirm", "--force", "g.omni"], "omnigraph verify"),
    ],
)
def test_a_retired_command_names_its_replacement(folder, cli, words, hint):
    code, out, err = cli(*words)
    assert (code, out) == (1, "")
    assert hint in err.split("hint: ")[1]
    answer = document(cli(*words, "--json"), code=1)
    assert (answer["code"], answer["reason"]) == ("bad_request", "retired_command")


def test_retired_commands_are_not_listed(folder, cli):
    listed = [line.split()[0] for line in cli("--help")[1].splitlines() if line.startswith("  ")]
    assert not {"run", "repair"} & set(listed)


def test_a_purge_whose_certificate_cannot_be_written_removes_nothing(graph, cli):
    words = ("purge", "run", "Person", "--id", "Bo", "--edges", "--confirm", "--reason", "a test", "--certificate")
    code, _, err = cli(*words, "missing/bo.json")
    assert (code, "missing/bo.json" in err) == (1, True)
    assert document(cli("purge", "list", "--json"))["purges"] == []
    assert cli(*words, "bo.json", "--quiet")[0] == 0
    assert "purge_id" in Path("bo.json").read_text()
