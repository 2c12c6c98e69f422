"""The commands `omnigraph policy …`."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import omnigraph as og
from support.commands import document, jsonl
from support.policies import CASES, EXAMPLE


@pytest.fixture
def policy(folder):
    (folder / "policy.yaml").write_text(EXAMPLE)
    (folder / "policy.tests.yaml").write_text(CASES)
    (folder / "omnigraph.yaml").write_text("policy: { file: policy.yaml }\n")
    return folder / "policy.yaml"


def test_validate(policy, cli):
    code, out, err = cli("policy", "validate")
    assert (code, out) == (0, "policy ok: policy.yaml, 3 actors, 5 rules\n")
    assert err.count("grants nothing; remove it") == 2
    assert document(cli("policy", "validate", "--json")) == {
        "valid": True,
        "path": "policy.yaml",
        "actors": 3,
        "groups": 3,
        "rules": 5,
    }


def test_validate_reports_all_problems(policy, cli):
    policy.write_text("version: 3\nrules:\n  - id: x\n    allow: { actors: { group: b }, actions: [read] }\n")
    code, out, err = cli("policy", "validate")
    assert (code, out) == (1, "")
    assert "line 1, version: unsupported version 3" in err
    assert "line 4, rules[0].allow.actors.group: rule 'x': there is no group 'b'" in err
    found = document(cli("policy", "validate", "--json"), code=1)
    assert (found["valid"], found["path"]) == (False, "policy.yaml")
    assert [(problem["path"], problem.get("rule")) for problem in found["errors"]] == [
        ("version", None),
        ("rules[0].allow.actors.group", "x"),
    ]


def test_validate_annotates_problems_and_warnings(policy, cli):
    code, out, err = cli("policy", "validate", "--format", "github")
    assert (code, err) == (0, "")
    assert [line.partition("::rule")[0] for line in out.splitlines()] == [
        "::warning file=policy.yaml,title=policy_warning",
    ] * 2
    policy.write_text("version: 3\nrules:\n  - id: x\n    allow: { actors: { group: b }, actions: [read] }\n")
    code, out, err = cli("policy", "validate", "--format", "github")
    assert (code, err) == (1, "")
    first, second = out.splitlines()
    assert first.startswith("::error file=policy.yaml,line=1,title=policy_invalid::version: unsupported version 3")
    assert second.startswith(
        "::error file=policy.yaml,line=4,title=policy_invalid::rules[0].allow.actors.group: rule 'x': there is no group"
    )
    code, out, _ = cli("policy", "validate", "--format", "sarif")
    assert (code, out.count('"startLine"')) == (1, 2)


def test_test(policy, cli):
    assert cli("policy", "test")[:2] == (0, "policy tests: 4 passed\n")
    found = document(cli("policy", "test", "--json"))
    assert (found["passed"], found["failed"]) == (4, 0)
    assert found["cases"][0] == {
        "id": "visitor-reads-main",
        "expect": "allow",
        "actual": "allow",
        "ok": True,
        "matched_rule": "everyone-reads",
    }


def test_failed_cases(policy, cli):
    (policy.parent / "wrong.yaml").write_text(CASES.replace("expect: deny", "expect: allow"))
    code, out, _ = cli("policy", "test", "--tests", "wrong.yaml")
    assert (code, out) == (
        1,
        "maren-cannot-edit-main: want allow, got deny (no rule allows it)\n"
        "stranger: want allow, got deny (no rule allows it)\n"
        "policy tests: 2 passed, 2 failed\n",
    )
    assert document(cli("policy", "test", "--tests", "wrong.yaml", "--json"), code=1)["failed"] == 2


def test_tests_file_of_the_configuration(policy, cli):
    (policy.parent / "other.yaml").write_text("version: 1\ncases: []\n")
    (policy.parent / "omnigraph.yaml").write_text("policy: { file: policy.yaml, tests: other.yaml }\n")
    assert cli("policy", "test")[:2] == (0, "policy tests: 0 passed\n")


def test_missing_tests_file(policy, cli):
    (policy.parent / "policy.tests.yaml").unlink()
    code, _, err = cli("policy", "test")
    assert code == 1
    assert "there is no file 'policy.tests.yaml'" in err


def test_explain(policy, cli):
    code, out, _ = cli(
        *("policy", "explain", "--actor", "act-idris", "--action", "branch-merge"),
        *("--branch", "x", "--target-branch", " main "),
    )
    assert code == 0
    assert [line.partition(":")[0] for line in out.splitlines()] == [
        "decision",
        "actor",
        "action",
        "branch",
        "target_branch",
        "matched_rule",
        "message",
    ]
    assert out.startswith("decision: allow\nactor: act-idris\naction: branch_merge\nbranch: x\ntarget_branch: main\n")
    code, out, _ = cli("policy", "explain", "--actor", "act-maren", "--action", "change", "-b", "main")
    assert code == 0
    assert out.startswith("decision: deny\n")
    assert "matched_rule" not in out
    assert out.endswith("allows 'change' on unprotected branches only; 'main' is protected\n")


def test_explain_as_json(policy, cli):
    found = document(cli("policy", "explain", "--actor", "act-visitor", "--action", "read", "--json"))
    assert list(found) == [
        *("decision", "actor", "action", "branch", "target_branch"),
        *("matched_rule", "message", "reasons", "considered"),
    ]
    assert (found["decision"], found["branch"], found["matched_rule"]) == ("allow", None, "everyone-reads")
    assert found["considered"][:2] == [
        {"rule": "everyone-reads", "matched": True, "why": "ok", "line": 11},
        {"rule": "curators-read", "matched": False, "why": "actor_not_in_group", "line": 16},
    ]


@pytest.mark.parametrize("words", [("--action", "reed"), ("--action", "read", "--branch", " ")])
def test_explain_rejects_invalid_requests(policy, cli, words):
    code, out, err = cli("policy", "explain", "--actor", "a", *words)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")


def test_broken_policy_is_an_error_object(policy, cli):
    policy.write_text("version: 7")
    found = document(cli("policy", "explain", "--actor", "a", "--action", "read", "--json"), code=1)
    assert (found["code"], found["reason"]) == ("bad_request", "policy_invalid")
    assert found["policy_problems"][0]["path"] == "version"


def test_no_policy_names_the_key(folder, cli):
    for words in (("validate",), ("test",), ("explain", "--actor", "a", "--action", "read")):
        code, _, err = cli("policy", *words)
        assert code == 1
        assert "'policy.file' is not set" in err


def test_paths_are_relative_to_the_configuration(policy, cli, monkeypatch):
    (policy.parent / "below").mkdir()
    monkeypatch.chdir(policy.parent / "below")
    assert cli("policy", "test", "--config", "../omnigraph.yaml")[0] == 0
    assert cli("policy", "validate", "--file", "../policy.yaml")[0] == 0


def test_init(folder, cli):
    code, out, err = cli("policy", "init", "--as", "ana")
    assert (code, out) == (0, "created policy.yaml\ncreated policy.tests.yaml\n")
    assert "policy: { file: policy.yaml }" in err
    assert cli("policy", "validate", "--file", "policy.yaml") == (
        0,
        "policy ok: policy.yaml, 3 actors, 3 rules\n",
        "",
    )
    assert cli("policy", "test", "--file", "policy.yaml")[:2] == (0, "policy tests: 8 passed\n")
    text = (folder / "policy.yaml").read_text()
    assert 'owners: ["ana"]' in text
    code, _, err = cli("policy", "init", "--file", "policy.yaml")
    assert code == 1
    assert "'policy.yaml' exists already" in err
    assert (folder / "policy.yaml").read_text() == text
    code, _, err = cli("policy", "init", "--file", "other.yaml")
    assert (code, (folder / "other.yaml").exists()) == (1, False)
    assert document(cli("policy", "init", "--file", "other.yaml", "--json"), code=1)["reason"] == "file_exists"
    (folder / "new").mkdir()
    assert document(cli("policy", "init", "--file", "new/p.yaml", "--json")) == {
        "policy_path": "new/p.yaml",
        "tests_path": "new/policy.tests.yaml",
    }
    assert cli("policy", "init", "--file", "absent/p.yaml")[0] == 1


def test_init_writes_the_configured_files(folder, cli):
    (folder / "omnigraph.yaml").write_text("policy: { file: rules.yaml, tests: cases.yaml }\n")
    assert cli("policy", "init") == (0, "created rules.yaml\ncreated cases.yaml\n", "")
    assert cli("policy", "test")[:2] == (0, "policy tests: 8 passed\n")


def test_missing_package_names_the_extra(policy):
    code = (
        "import sys; sys.modules['cedarpy'] = None\n"
        "from omnigraph.cli.main import run; sys.exit(run(['policy', 'validate']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=policy.parent)
    assert done.returncode == 1
    assert done.stderr == "error: 'cedarpy' is not installed\nhint: install it: pip install 'omnigraph[policy]'\n"


def test_program_and_help_do_not_import_policies():
    code = (
        "import sys; from omnigraph.cli.main import run; run(['--help']); import omnigraph\n"
        "assert not [name for name in sys.modules if name.startswith(('cedarpy', 'omnigraph.policy'))]"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


SERVER = "version: 1\ngroups: {ops: [ola]}\nrules:\n  - {id: r, allow: {actors: {group: ops}, actions: [audit_read]}}\n"
SERVER_CASES = "version: 1\ncases:\n  - {id: c, actor: ola, action: audit_read, expect: allow}\n"


def test_server_policy(folder, cli):
    assert "'server.policy.file' is not set" in cli("policy", "validate", "--server")[2]
    (folder / "server.yaml").write_text(SERVER)
    (folder / "server.tests.yaml").write_text(SERVER_CASES)
    (folder / "omnigraph.yaml").write_text("server: { policy: { file: server.yaml } }\n")
    assert cli("policy", "validate", "--server")[:2] == (0, "policy ok: server.yaml, 1 actor, 1 rule\n")
    assert cli("policy", "test", "--server")[:2] == (0, "policy tests: 1 passed\n")
    code, out, _ = cli("policy", "explain", "--server", "--actor", "ola", "--action", "audit-read")
    assert (code, out.splitlines()[0]) == (0, "decision: allow")
    code, _, err = cli("policy", "validate", "--file", "server.yaml")
    assert code == 1
    assert "rule 'r': 'audit_read' is an action of a server policy" in err


ENFORCED = """\
version: 1
groups: { readers: [rea], owners: [ola] }
protected_branches: [main]
rules:
  - { id: read, allow: { actors: { group: readers }, actions: [read] } }
  - { id: own, allow: { actors: { group: owners }, actions: [read, change, maintain] } }
"""


def test_the_command_line_enforces_a_policy_if_the_configuration_says_so(graph, folder, cli):
    (folder / "policy.yaml").write_text(ENFORCED)
    config = (folder / "omnigraph.yaml").read_text() + "\npolicy: { file: policy.yaml }\n"
    (folder / "omnigraph.yaml").write_text(config)
    load = ("load", "--mode", "merge", "--data", "people.jsonl")
    assert cli("--as", "rea", *load)[0] == 0
    assert "cli:" in config
    (folder / "omnigraph.yaml").write_text(config.replace("cli:", "cli:\n  policy: enforce", 1))
    code, _, err = cli("--as", "rea", *load)
    assert code == 1
    assert "no rule allows action 'change' on branch 'main' for actor 'rea'" in err
    assert cli("--as", "rea", "commit", "list")[0] == 0
    assert cli("--as", "ola", *load)[0] == 0
    assert cli("commit", "list")[2].endswith("is denied: no actor was given\nhint: name an actor: --as ACTOR\n")
    assert "'maintain'" in cli("--as", "rea", "recover")[2]
    assert cli("--as", "ola", "recover")[0] == 0
    (folder / "omnigraph.yaml").write_text(
        config.replace("policy: { file: policy.yaml }", "").replace("cli:", "cli:\n  policy: enforce", 1)
    )
    code, _, err = cli("--as", "ola", "commit", "list")
    assert (code, "'policy.file' is not set" in err) == (1, True)


# -- version 2 ---------------------------------------------------------------------------------------

TEAM = """\
version: 2
groups: { staff: [ana], owners: [olga] }
protected_branches: [main, "release/*"]
rules:
  - id: staff-work
    allow: { actors: { group: staff }, role: editor }
  - id: no-export
    deny: { actors: { any: true }, except: { group: owners }, actions: [export], branches: [main, "release/**"] }
"""


@pytest.fixture
def team(folder):
    place = folder / "rules"
    place.mkdir()
    (place / "policy.yaml").write_text(TEAM)
    (place / "more.cedar").write_text('permit (principal, action == Omnigraph::Action::"maintain", resource);\n')
    (place / "policy.tests.yaml").write_text(
        "version: 1\ncases:\n  - { id: a, actor: ana, action: maintain, expect: allow }\n"
    )
    (folder / "omnigraph.yaml").write_text("policy: { file: rules }\n")
    return place


def test_a_folder_is_a_policy(team, cli):
    assert cli("policy", "validate")[:2] == (0, "policy ok: rules, 2 actors, 2 rules\n")
    assert cli("policy", "test")[:2] == (0, "policy tests: 1 passed\n")
    code, out, _ = cli("policy", "explain", "--actor", "ana", "--action", "export", "--branch", "main")
    assert code == 0
    assert "message: rule 'no-export' denies action 'export' on branch 'main' for actor 'ana'\n" in out
    found = document(cli("policy", "explain", "--actor", "ana", "--action", "export", "--branch", "main", "--json"))
    assert {one["rule"]: one["why"] for one in found["considered"]} == {
        "staff-work": "scope",
        "no-export": "denies",
        "more.cedar:1": "action_not_listed",
    }


def test_show(team, cli):
    code, out, _ = cli("policy", "show")
    assert code == 0
    assert out.splitlines()[-2:] == [
        "no-export: deny everyone except group 'owners': export on branches that match 'main', 'release/**'",
        "more.cedar:1: allow Cedar policy: maintain",
    ]
    code, out, _ = cli("policy", "show", "--cedar")
    assert code == 0
    assert '@id("no-export")\nforbid (' in out
    assert 'unless { principal in Omnigraph::Group::"owners" }' in out
    found = document(cli("policy", "show", "--json"))
    assert (found["version"], [rule["rule"] for rule in found["rules"]]) == (
        2,
        ["staff-work", "staff-work", "staff-work", "no-export", "more.cedar:1"],
    )


def test_show_version_1(policy, cli):
    code, out, _ = cli("policy", "show")
    assert code == 0
    assert "curators-edit-drafts: allow group 'curators': change on unprotected branches\n" in out
    assert "permit(" in document(cli("policy", "show", "--cedar", "--json"))["cedar"]


ROW_RULES = """version: 2
groups: { owners: [ola] }
rows: { default: allow }
rules:
  - { id: read, allow: { actors: { any: true }, role: maintainer } }
  - { id: own, allow: { actors: { group: owners }, role: owner } }
  - { id: rows, allow: { actors: { any: true }, actions: [row_read], types: [Note], when: 'resource.name == "seen"' } }
"""
ROW_COMMANDS = (
    ("read", "-e", "match { $n: Note } return { $n.name, $n.text } order { $n.name }"),
    ("explain", "-e", "match { $n: Note } return { $n.name }"),
    ("status",),
    ("snapshot",),
    ("snapshot", "--json"),
    ("log",),
    ("commit", "list", "--json"),
    ("branch", "list"),
    ("tag", "list"),
    ("schema", "show"),
    ("export",),
    ("changes", "poll", "--start", "beginning", "--json"),
    ("diff", "1", "main"),
    ("history", "Note", "seen"),
    ("blame", "Note", "seen"),
    ("history", "Note", "zebraword"),
    ("verify",),
    ("optimize", "--json"),
)


@pytest.fixture
def limited(folder, cli):
    """A graph with hidden notes, and a configuration that enforces its policy."""
    (folder / "n.pg").write_text("node Note { name: String @key  text: String? }\nnode Other { name: String @key }\n")
    notes = [{"type": "Note", "data": {"name": name, "text": name}} for name in ("seen", "zebraword", "zebraword2")]
    (folder / "n.jsonl").write_text(jsonl(*notes))
    assert cli("init", "--schema", "n.pg", "n.omni")[0] == 0
    assert cli("load", "-d", "n.jsonl", "--mode", "merge", "n.omni")[0] == 0
    (folder / "policy.yaml").write_text(ROW_RULES)
    (folder / "omnigraph.yaml").write_text(
        "policy: { file: policy.yaml }\ngraphs: { notes: { uri: ./n.omni } }\ncli: { policy: enforce, graph: notes }\n"
    )
    return folder


@pytest.mark.parametrize("command", ROW_COMMANDS, ids=" ".join)
def test_the_command_line_enforces_rules_for_rows(limited, cli, command):
    code, out, err = cli("--as", "rea", *command)
    assert (code, err.partition(":")[0]) in {(0, ""), (0, "note"), (1, "error")}
    given = " ".join(command)
    assert "zebraword" in given or "zebraword" not in out + err
    code, _, err = cli("--as", "ola", *command)
    assert code == 0, err


def test_counts_of_commands_are_those_of_visible_rows(limited, cli):
    for actor, count in (("rea", 1), ("ola", 3)):
        found = document(cli("--as", actor, "snapshot", "--json"))
        assert {table["table_key"]: table["row_count"] for table in found["tables"]}["node:Note"] == count
        found = document(cli("--as", actor, "status", "--json"))
        assert {table["table_key"]: table["row_count"] for table in found["tables"]}["node:Note"] == count
        out = cli("--as", actor, "read", "-e", "match { $n: Note } return { $n.name }", "--format", "csv")[1]
        assert ("zebraword" in out) == (actor == "ola")


def test_previews_say_that_hidden_conflicts_prevent_the_merge(limited, cli):
    query = 'query set() {{ update Note set {{ text: "{}" }} where name = "{}" }}'
    assert cli("--as", "ola", "branch", "create", "side")[0] == 0
    for branch in ("main", "side"):
        text = query.format(branch, "zebraword")
        assert cli("--as", "ola", "change", "-e", text, "--branch", branch, "--quiet")[0] == 0
    for name in ("seen", "zebraword2"):
        text = query.format("x", name)
        assert cli("--as", "ola", "change", "-e", text, "--branch", "side", "--quiet")[0] == 0
    code, out, _ = cli("--as", "rea", "branch", "merge", "side", "--preview")
    assert code == 0
    assert out == (
        "merge preview side -> main: 1 conflict is hidden from you; would not merge\n"
        "  node:Note: 0 inserted, 1 updated, 0 deleted\n"
        "  other changes are hidden from you\n"
        "1 conflict is hidden from you; ask an actor who can read the rows to merge\n"
    )
    code, _, err = cli("--as", "rea", "branch", "merge", "side", "--quiet")
    assert code == 1
    assert "1 conflict is hidden from you; the target is unchanged" in err
    assert cli("--as", "ola", "propose", "side", "-m", "Side", "--quiet")[0] == 0
    number = document(cli("--as", "ola", "proposal", "list", "--json"))["proposals"][0]["id"]
    out = cli("--as", "rea", "proposal", "conflicts", str(number))[1]
    assert out.startswith("merge side -> main: 1 conflict is hidden from you; would not merge\n")


# -- rows and properties -----------------------------------------------------------------------------

NOTES = """\
version: 2
groups: { staff: [ana], hr: [cleo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme } }
protected_branches: [main]
rows: { default: allow }
rules:
  - id: staff-read
    allow: { actors: { group: staff }, role: viewer }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read], types: [Note], when: 'resource.tenant == principal.tenant' }
  - id: sealed
    deny: { actors: { any: true }, except: { group: hr }, actions: [row_read], types: [Note], when: 'resource.sealed' }
  - id: salary
    allow: { actors: { group: hr }, actions: [property_read], types: [Person], properties: [salary], otherwise: mask }
"""
NOTES_SCHEMA = """\
node Note { slug: String @key  tenant: String?  sealed: Bool }
node Person { name: String @key  salary: I64 }
"""
ROW_CASES = """\
version: 2
cases:
  - { id: own, actor: ana, type: Note, data: { tenant: acme, sealed: false }, expect: allow }
  - { id: other, actor: ana, type: Note, data: { tenant: beta, sealed: false }, expect: deny }
  - { id: token, actor: bo, groups: [staff], attributes: { tenant: beta }, type: Note,
      data: { tenant: beta, sealed: false }, expect: allow }
  - { id: pay, actor: ana, type: Person, data: { salary: 3 }, expect: allow, properties: { salary: mask, name: show } }
  - { id: branch, actor: ana, action: read, branch: main, expect: allow }
"""


@pytest.fixture
def notes(folder):
    (folder / "policy.yaml").write_text(NOTES)
    (folder / "notes.pg").write_text(NOTES_SCHEMA)
    (folder / "policy.tests.yaml").write_text(ROW_CASES)
    (folder / "omnigraph.yaml").write_text("policy: { file: policy.yaml }\n")
    return folder


def test_validate_with_a_schema(notes, cli):
    code, out, err = cli("policy", "validate")
    assert (code, out) == (0, "policy ok: policy.yaml, 2 actors, 4 rules\n")
    assert "are validated with --schema or --graph" in err
    assert cli("policy", "validate", "--schema", "notes.pg")[0] == 0
    (notes / "notes.pg").write_text(NOTES_SCHEMA.replace("tenant", "owner"))
    code, _, err = cli("policy", "validate", "--schema", "notes.pg")
    assert code == 1
    assert "rule 'own-tenant': 'Note' has no property 'tenant'" in err
    found = document(cli("policy", "validate", "--schema", "notes.pg", "--json"), code=1)
    assert [problem["rule"] for problem in found["errors"]] == ["own-tenant"]


def test_validate_with_a_graph(notes, cli):
    assert cli("init", "g.omni", "--schema", "notes.pg")[0] == 0
    (notes / "omnigraph.yaml").write_text(
        "policy: { file: policy.yaml }\ngraphs: { notes: { uri: ./g.omni } }\ncli: { policy: enforce }\n"
    )
    # The schema is read without the policy, which grants no right to read it.
    assert cli("policy", "validate", "--graph", "./g.omni")[:2] == (0, "policy ok: policy.yaml, 2 actors, 4 rules\n")
    assert cli("policy", "validate", "--graph", "notes")[0] == 0


def test_cases_on_rows(notes, cli):
    assert cli("policy", "test", "--schema", "notes.pg")[:2] == (0, "policy tests: 5 passed\n")
    code, _, err = cli("policy", "test")
    assert code == 1
    assert "case 'own' ('policy.tests.yaml', line 3): a case about rows of 'Note' needs the schema of the graph" in err
    changed = ROW_CASES.replace("beta, sealed: false }, expect: deny", "beta, sealed: false }, expect: allow")
    changed = changed.replace("salary: mask", "salary: show")
    (notes / "policy.tests.yaml").write_text(changed)
    code, out, _ = cli("policy", "test", "--schema", "notes.pg")
    assert (code, out) == (
        1,
        "other: want allow, got deny (no rule allows it)\npay: salary: want show, got mask\n"
        "policy tests: 3 passed, 2 failed\n",
    )


def test_a_failing_case_names_the_rule_that_decides(notes, cli):
    changed = ROW_CASES.replace("acme, sealed: false }, expect: allow", "acme, sealed: true }, expect: allow")
    (notes / "policy.tests.yaml").write_text(
        changed.replace("beta, sealed: false }, expect: allow", "beta, sealed: false }, expect: deny")
    )
    _, out, _ = cli("policy", "test", "--schema", "notes.pg")
    assert out == (
        "own: want allow, got deny (rule 'sealed')\ntoken: want deny, got allow (rule 'own-tenant')\n"
        "policy tests: 3 passed, 2 failed\n"
    )


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        (
            "actor: ana, type: Person",
            "actor: ana, type: Persn",
            "there is no type 'Persn'\nhint: did you mean 'Person'?",
        ),
        ("salary: mask", "salry: mask", "'Person' has no property 'salry'\nhint: did you mean 'salary'?"),
    ],
)
def test_errors_of_cases_have_a_place(notes, cli, old, new, wanted):
    (notes / "policy.tests.yaml").write_text(ROW_CASES.replace(old, new))
    code, _, err = cli("policy", "test", "--schema", "notes.pg")
    assert (code, err) == (1, f"error: case 'pay' ('policy.tests.yaml', line 7): {wanted}\n")


def test_names_that_the_policy_does_not_know_cause_warnings(notes, cli):
    explain = ("policy", "explain", "--actor", "zoe", "--action", "read", "--branch", "main")
    code, out, err = cli(*explain, "--group", "stff", "--attribute", "tennant=a")
    assert (code, out.splitlines()[0]) == (0, "decision: deny")
    assert err == (
        "warning: the policy names no group 'stff', which has no effect (did you mean 'staff'?)\n"
        "warning: the policy declares no attribute 'tennant', which has no effect (did you mean 'tenant'?)\n"
    )
    assert cli(*explain, "--group", "staff", "--attribute", "tenant=a")[2] == ""
    cases = ROW_CASES.replace("groups: [staff]", "groups: [stff]").replace("attributes: { tenant:", "attributes: { x:")
    (notes / "policy.tests.yaml").write_text(cases)
    err = cli("policy", "test", "--schema", "notes.pg")[2]
    assert "warning: case 'token' ('policy.tests.yaml', line 5): the policy names no group 'stff'" in err
    assert "the policy declares no attribute 'x', which has no effect\n" in err
    code, _, err = cli("token", "create", "--actor", "ana", "--group", "stff", "--attribute", "x=1", "t.json")
    assert code == 0
    assert "warning: the policy names no group 'stff', which has no effect (did you mean 'staff'?)\n" in err
    assert "the policy declares no attribute 'x'" in err
    assert "warning" not in cli("token", "create", "--actor", "bo", "--group", "staff", "t.json")[2]


@pytest.mark.parametrize(
    ("action", "kind"), [("row_read", "rows"), ("row-update", "rows"), ("property_read", "properties")]
)
def test_actions_on_rows_need_a_row(notes, cli, action, kind):
    code, _, err = cli("policy", "explain", "--actor", "ana", "--action", action, "--branch", "main")
    assert code == 2
    assert f"error: '{action}' is an action on {kind}\n" in err
    assert "hint: give --type, and --data or --id" in err


def test_diff_of_attributes(notes, cli):
    text = NOTES.replace("tenant: acme }", "tenant: beta }, zoe: { tenant: acme }")
    (notes / "new.yaml").write_text(text)
    code, out, err = cli("policy", "diff", "policy.yaml", "new.yaml")
    assert code == 0
    assert out == (
        'ana: attribute \'tenant\': "acme" -> "beta"\nzoe: attribute \'tenant\': none -> "acme"\n'
        "no decision differs; rules for rows and properties were not compared\n"
    )
    assert "are compared with --schema" in err
    found = document(cli("policy", "diff", "new.yaml", "policy.yaml", "--json"))
    assert found["attributes"] == [
        {"actor": "ana", "attribute": "tenant", "old": "beta", "new": "acme"},
        {"actor": "zoe", "attribute": "tenant", "old": "acme", "new": None},
    ]
    out = cli("policy", "diff", "policy.yaml", "new.yaml", "--schema", "notes.pg")[1]
    assert "ana: row_read of Note: " in out
    assert "no decision differs" not in out


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (
            "{ id: a, actor: ana, type: Note, expect: allow, properties: { x: gone } }",
            "must be one of show, mask",
        ),
        ("{ id: a, actor: ana, action: read, expect: allow, properties: { x: show } }", "in a case with a type"),
        ("{ id: a, actor: ana, action: read, type: Note, expect: allow }", "must be one of row_read"),
        ("{ id: a, actor: ana, action: row_read, expect: allow }", "type: is missing"),
        ("{ id: a, actor: ana, action: read, expect: allow, data: [1] }", "must be a map"),
    ],
)
def test_problems_of_cases_on_rows(notes, cli, case, wanted):
    (notes / "policy.tests.yaml").write_text(f"version: 2\ncases:\n  - {case}\n")
    code, _, err = cli("policy", "test", "--schema", "notes.pg")
    assert code == 1
    assert wanted in err


def test_version_1_of_the_tests_has_no_rows(notes, cli):
    (notes / "policy.tests.yaml").write_text(ROW_CASES.replace("version: 2", "version: 1"))
    code, _, err = cli("policy", "test", "--schema", "notes.pg")
    assert code == 1
    assert "unknown key 'type'" in err


def test_explain_a_row(notes, cli):
    given = ("policy", "explain", "--actor", "ana", "--schema", "notes.pg")
    code, out, _ = cli(*given, "--type", "Note", "--data", '{"tenant": "acme", "sealed": false}')
    assert code == 0
    assert out.splitlines() == [
        "decision: allow",
        "actor: ana",
        "action: row_read",
        "type: Note",
        "branch: main",
        'condition: (not row."sealed" and row."tenant" = String:"acme")',
        "rule own-tenant: allows",
        "rule sealed: its condition does not hold",
    ]
    code, out, _ = cli(*given, "--type", "Note", "--data", '{"sealed": true}')
    assert "decision: deny\n" in out
    assert "rule own-tenant: its condition does not hold (missing: resource.tenant)\n" in out
    assert "rule sealed: denies\n" in out
    found = document(cli(*given, "--type", "Person", "--data", '{"salary": 3}', "--json"))
    assert (found["decision"], found["rules"], found["properties"]["salary"]) == ("allow", ["rows.default"], "mask")


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        (("--actor", "ana"), "give --action, or --type and --data or --id"),
        (("--actor", "ana", "--id", "n1", "--action", "row_read"), "give --action, or --type and --data or --id"),
        (("--actor", "ana", "--type", "Note", "--id", "n1", "--data", "{}"), "omit --data"),
        (("--actor", "ana", "--type", "Note", "--id", "n1", "--schema", "notes.pg"), "omit --schema"),
        (("--actor", "ana", "--type", "Note", "--id", "n1"), "--id reads a row of a graph"),
        (("--actor", "ana", "--type", "Note", "--id", "n1", "--graph", "https://x.test"), "from storage"),
        (("--actor", "ana", "--type", "Note", "--action", "read"), "'read' is not an action on rows"),
        (("--actor", "ana", "--type", "Note", "--data", "["), "--data is not JSON"),
        (("--actor", "ana", "--type", "Note", "--data", "[]"), "--data must be a JSON object"),
        (("--actor", "ana", "--type", "Nte", "--schema", "notes.pg"), "there is no type 'Nte'"),
        (("--actor", "ana", "--type", "Note"), "rules for rows need the schema"),
    ],
)
def test_errors_of_explain(notes, cli, arguments, wanted):
    code, _, err = cli("policy", "explain", *arguments)
    assert code != 0
    assert wanted in err


LINKED_SCHEMA = NOTES_SCHEMA + "edge Mentions: Note -> Person { at: Date? }\n"
LINKED_ROWS = """\
{"type": "Note", "data": {"slug": "n1", "tenant": "acme", "sealed": false}}
{"type": "Note", "data": {"slug": "n2", "tenant": "beta", "sealed": false}}
{"type": "Person", "data": {"name": "Cy", "salary": 3}}
{"edge": "Mentions", "from": "n1", "to": "Cy", "data": {"id": "e1", "at": "2026-02-03"}}
{"edge": "Mentions", "from": "n2", "to": "Cy", "data": {"id": "e2"}}
"""


@pytest.fixture
def linked(notes, cli):
    (notes / "notes.pg").write_text(LINKED_SCHEMA)
    (notes / "rows.jsonl").write_text(LINKED_ROWS)
    assert cli("init", "g.omni", "--schema", "notes.pg")[0] == 0
    assert cli("load", "--data", "rows.jsonl", "--mode", "overwrite", "g.omni")[0] == 0
    assert cli("branch", "create", "draft", "g.omni")[0] == 0
    changed = """query give() { update Note set { tenant: "acme" } where slug = "n2" }"""
    assert cli("change", "-e", changed, "--branch", "draft", "g.omni")[0] == 0
    rules = (
        NOTES
        + """\
  - id: edits
    allow: { actors: { any: true }, actions: [row_update], types: [Note] }
  - id: old
    deny: { actors: { any: true }, actions: [row_read], types: [Mentions],
            when: 'resource.at < datetime("2020-01-01")' }
"""
    )
    (notes / "policy.yaml").write_text(rules)
    # An enforced policy does not limit what is explained.
    (notes / "omnigraph.yaml").write_text("policy: { file: policy.yaml }\ncli: { policy: enforce }\n")
    return notes


def test_explain_a_stored_row(linked, cli):
    given = ("policy", "explain", "--actor", "ana", "--graph", "./g.omni")
    code, out, err = cli(*given, "--type", "Note", "--id", "n2")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "decision: deny",
        "actor: ana",
        "action: row_read",
        "type: Note",
        "id: n2",
        "branch: main",
        'condition: (not row."sealed" and row."tenant" = String:"acme")',
        "rule own-tenant: its condition does not hold",
        "rule sealed: its condition does not hold",
    ]
    found = document(cli(*given, "--type", "Note", "--id", "n2", "--branch", "draft", "--json"))
    assert (found["decision"], found["rules"], found["id"], found["ends"]) == ("allow", ["own-tenant"], "n2", [])
    assert document(cli(*given, "--type", "Person", "--id", "Cy", "--json"))["properties"]["salary"] == "mask"
    code, _, err = cli(*given, "--type", "Note", "--id", "n3")
    assert code == 1
    assert "Note 'n3' does not exist on branch 'main'" in err


def test_explain_the_ends_of_a_stored_edge(linked, cli):
    given = ("policy", "explain", "--actor", "ana", "--graph", "./g.omni", "--type", "Mentions")
    code, out, _ = cli(*given, "--id", "e2")
    assert code == 0
    assert "decision: deny\n" in out
    assert "rule old: denies (missing: resource.at)\n" in out
    assert "from: the actor cannot read Note 'n2'\nto: the actor reads Person 'Cy'\n" in out
    found = document(cli(*given, "--id", "e1", "--json"))
    assert (found["decision"], found["rules"]) == ("allow", ["rows.default"])
    ends = [(end["end"], end["id"], end["decision"], end["rules"]) for end in found["ends"]]
    assert ends == [("from", "n1", "allow", ["own-tenant"]), ("to", "Cy", "allow", ["rows.default"])]


def test_an_update_of_a_stored_row_needs_the_right_to_read_it(linked, cli):
    given = ("policy", "explain", "--actor", "ana", "--graph", "./g.omni", "--type", "Note", "--action", "row_update")
    found = document(cli(*given, "--id", "n2", "--json"))
    assert (found["decision"], found["rules"], found["readable"]) == ("deny", ["edits"], False)
    assert "the actor cannot read the row\n" in cli(*given, "--id", "n2")[1]
    assert document(cli(*given, "--id", "n1", "--json"))["decision"] == "allow"


def test_show_the_cedar_policies_of_rows(notes, cli):
    code, out, err = cli("policy", "show", "--cedar")
    assert (code, "Node::Note" in out) == (0, False)
    assert "are printed with --schema" in err
    code, out, _ = cli("policy", "show", "--cedar", "--schema", "notes.pg")
    assert code == 0
    assert "resource is Node::Note" in out
    assert '@id("rows.default")' in out


def test_diff(notes, cli):
    changed = (
        NOTES.replace("role: viewer", "role: editor")
        .replace("acme", "beta")
        .replace("otherwise: mask", "otherwise: hide")
    )
    (notes / "new.yaml").write_text(changed)
    code, out, err = cli("policy", "diff", "policy.yaml", "new.yaml")
    assert code == 0
    assert "changed rule 'staff-read'\n" in out
    assert "ana: export on 'main': deny -> allow (rule 'staff-read')\n" in out
    assert "ana: change on 'main'" not in out
    assert "ana: change on 'any/other/branch': deny -> allow (rule 'staff-read')\n" in out
    assert "are compared with --schema" in err
    code, out, _ = cli("policy", "diff", "policy.yaml", "new.yaml", "--schema", "notes.pg")
    assert 'ana: row_read of Note: (not row."sealed" and row."tenant" = String:"acme") -> ' in out
    found = document(cli("policy", "diff", "new.yaml", "policy.yaml", "--json"))
    assert found["rules"]["added"] == []
    assert {"actor": "ana", "action": "export", "branch": None, "decision": "deny", "rule": "staff-read"} in found[
        "decisions"
    ]
    assert cli("policy", "diff", "policy.yaml", "policy.yaml")[1] == "no decision differs\n"


def test_diff_of_rows_on_mentioned_branches_and_of_stored_queries(notes, cli):
    old = """version: 2
groups: { staff: [ana] }
rows: { default: allow }
rules:
  - { id: calls, allow: { actors: { group: staff }, actions: [invoke_query], queries: ["report_*"] } }
  - { id: drafts, deny: { actors: { group: staff }, actions: [row_read], types: [Note], branches: ["draft/*"],
      when: 'resource.sealed' } }
"""
    (notes / "old.yaml").write_text(old)
    (notes / "new.yaml").write_text(
        old.replace("when: 'resource.sealed'", "when: '!resource.sealed'").replace("report_", "sum_")
    )
    found = document(cli("policy", "diff", "old.yaml", "new.yaml", "--schema", "notes.pg", "--json"))
    calls = {(one["query"], one["decision"]) for one in found["decisions"]}
    assert calls == {("report_x", "deny"), ("sum_x", "allow")}
    assert [(one["branch"], one["old"], one["new"]) for one in found["rows"]] == [
        ("draft/x", 'not row."sealed"', 'row."sealed"')
    ]
    _, out, _ = cli("policy", "diff", "old.yaml", "new.yaml", "--schema", "notes.pg")
    assert "ana: invoke_query of 'sum_x': deny -> allow (rule 'calls')" in out
    assert "ana: row_read of Note on 'draft/x': " in out
    one = document(cli("policy", "diff", "old.yaml", "new.yaml", "--schema", "notes.pg", "--branch", "main", "--json"))
    assert one["rows"] == []


def test_explain_calls_of_stored_queries(folder, cli):
    (folder / "policy.yaml").write_text("""version: 2
groups: { staff: [ana] }
rules:
  - { id: reads, allow: { actors: { group: staff }, actions: [invoke_query], when: '!resource.changes' } }
""")
    graph = og.init(folder / "g.omni", "node Note { name: String @key }", sync=False)
    graph.store_query('query add() { insert Note { name: "a" } }', "query all() { match { $n: Note } return { $n } }")
    ask = ("policy", "explain", "--file", "policy.yaml", "--actor", "ana", "--action", "invoke-query", "--query")
    assert "decision: allow\n" in cli(*ask, "add")[1], "without a graph it counts as a read"
    code, out, _ = cli(*ask, "add", "--graph", "./g.omni")
    assert (code, out.splitlines()[0], out.splitlines()[-2]) == (0, "decision: deny", "query: add")
    assert document(cli(*ask, "all", "--graph", "./g.omni", "--json"))["decision"] == "allow"
    assert "stored query" in cli(*ask, "missing", "--graph", "./g.omni")[2]
    assert cli(*ask[:-3], "--action", "read", "--query", "all")[0] == 2


CALLS = """version: 2
groups: { staff: [ana], bots: [importer] }
rules:
  - { id: reads, allow: { actors: { group: staff }, actions: [invoke_query], when: '!resource.changes' } }
  - { id: imports, allow: { actors: { group: bots }, actions: [invoke_query], queries: ["add*"] } }
"""


@pytest.fixture
def calls(folder):
    """A policy that reads the kind of a stored query, and a graph that stores one of each kind."""
    (folder / "policy.yaml").write_text(CALLS)
    graph = og.init(folder / "g.omni", "node Note { name: String @key }", sync=False)
    graph.store_query('query add() { insert Note { name: "a" } }', "query all() { match { $n: Note } return { $n } }")
    return folder


def test_cases_on_calls_of_stored_queries(calls, cli):
    def run(cases: str, *more: str) -> Any:
        (calls / "policy.tests.yaml").write_text(f"version: 2\ncases:\n{cases}")
        return cli("policy", "test", "--file", "policy.yaml", *more)

    case = "  - {{ id: {0}, actor: {1}, action: invoke_query, query: {2}, expect: {3} }}\n"
    named = case.format("one", "ana", "add", "deny") + case.format("two", "ana", "all", "allow")
    assert run(named, "--graph", "./g.omni")[:2] == (0, "policy tests: 2 passed\n")
    code, _, err = run(named)
    assert code == 1
    assert (
        "case 'one' ('policy.tests.yaml', line 3): the decision depends on whether the stored query 'add' changes"
        in err
    )
    given = named.replace("query: add", "query: add, changes: true").replace("query: all", "query: all, changes: false")
    assert run(given)[:2] == (0, "policy tests: 2 passed\n"), "the cases say what the queries are"
    assert run(given.replace("true", "false"), "--graph", "./g.omni")[1].startswith(
        "one: want deny, got allow (rule 'reads')\n"
    )
    assert run(case.format("one", "importer", "adding", "allow"))[0] == 0, "the rule reads the name alone"
    on_branch = case.format("one", "ana", "add, branch: nowhere", "deny")
    assert "the decision depends" in run(on_branch, "--graph", "./g.omni")[2]
    wrong = "  - { id: x, actor: ana, action: read, expect: allow, changes: true }\n"
    assert "cases[0].changes: is for a case with a 'query'" in run(wrong)[2]
    assert "must be true or false" in run(wrong.replace("true", "maybe"))[2]


def test_diff_of_calls_of_stored_queries(calls, cli):
    (calls / "new.yaml").write_text(
        CALLS.replace("'!resource.changes'", "'resource.definer || resource.name == \"all\"'").replace("add*", "load*")
    )
    lines = cli("policy", "diff", "policy.yaml", "new.yaml")[1].splitlines()
    assert [line for line in lines if line.startswith("ana")] == [
        "ana: invoke_query of 'addx' (a read without @definer): allow -> deny (rule 'reads')",
        "ana: invoke_query of 'addx' (a mutation with @definer): deny -> allow (rule 'reads')",
        "ana: invoke_query of 'all' (a mutation): deny -> allow (rule 'reads')",
        "ana: invoke_query of 'loadx' (a read without @definer): allow -> deny (rule 'reads')",
        "ana: invoke_query of 'loadx' (a mutation with @definer): deny -> allow (rule 'reads')",
        "ana: invoke_query of 'any_other_query' (a read without @definer): allow -> deny (rule 'reads')",
        "ana: invoke_query of 'any_other_query' (a mutation with @definer): deny -> allow (rule 'reads')",
    ]
    assert "importer: invoke_query of 'addx': allow -> deny (rule 'imports')" in lines
    stored = cli("policy", "diff", "policy.yaml", "new.yaml", "--graph", "./g.omni")[1].splitlines()
    assert not [line for line in stored if line.startswith("ana") and ("'all'" in line or "'add'" in line)]
    assert "importer: invoke_query of 'add': allow -> deny (rule 'imports')" in stored
    found = document(cli("policy", "diff", "policy.yaml", "new.yaml", "--json"))["decisions"]
    (one,) = (one for one in found if one.get("query") == "all")
    assert (one["changes"], one["decision"], "definer" in one) == (True, "allow", False)


def test_diff_names_queries_of_cedar_policies(calls, cli):
    rule = """permit(principal, action == Omnigraph::Action::"invoke_query", resource)
when { resource == Omnigraph::StoredQuery::"mine" };
permit(principal, action, resource == Omnigraph::StoredQuery::"ours");
permit(principal, action == Omnigraph::Action::"invoke_query", resource is Omnigraph::StoredQuery)
when { resource.name like "sum_*" };
"""
    for name, text in (("old", ""), ("new", rule)):
        (calls / name).mkdir()
        (calls / name / "policy.yaml").write_text(CALLS)
        (calls / name / "calls.cedar").write_text(text)
    lines = cli("policy", "diff", "old", "new")[1]
    assert "any other actor: invoke_query of 'mine': deny -> allow (rule 'calls.cedar:1')\n" in lines
    assert "any other actor: invoke_query of 'ours': deny -> allow (rule 'calls.cedar:2')\n" in lines
    assert "any other actor: invoke_query of 'sum_x': deny -> allow (rule 'calls.cedar:3')\n" in lines
    assert "ana: invoke_query of 'mine' (a mutation): deny -> allow (rule 'calls.cedar:1')\n" in lines


def test_diff_of_version_1_with_version_2(policy, team, cli):
    code, out, _ = cli("policy", "diff", "policy.yaml", "rules")
    assert code == 0
    assert "removed rule 'everyone-reads'\n" in out
    assert "act-visitor: read on 'main': allow -> deny (rule 'everyone-reads')\n" in out
    assert "any other actor: maintain on 'main': deny -> allow (rule 'more.cedar:1')\n" in out


def test_explain_with_groups_and_attributes_of_a_token(notes, cli):
    row = ("policy", "explain", "--actor", "vic", "--type", "Note", "--schema", "notes.pg")
    data = ("--data", '{"tenant": "beta", "sealed": false}')
    assert document(cli(*row, *data, "--json"))["decision"] == "deny"
    token = ("--group", "staff", "--attribute", "tenant=beta")
    assert document(cli(*row, *data, *token, "--json"))["decision"] == "allow"
    assert (
        document(cli(*row, *data, "--group", "staff", "--attribute", 'tenant="other"', "--json"))["decision"] == "deny"
    )
    branch = ("policy", "explain", "--actor", "vic", "--action", "read", "--branch", "main", "--json")
    assert [document(cli(*branch, *more))["decision"] for more in ((), ("--group", "staff"))] == ["deny", "allow"]
    for wrong in (("--attribute", "tenant"), ("--attribute", "a=1", "--attribute", "a=2")):
        code, _, err = cli(*row, *data, *wrong)
        assert (code, "--attribute" in err) == (2, True)


# -- changes of the schema ---------------------------------------------------------------------------


def test_a_schema_that_breaks_rules_is_reported_and_refused(notes, cli):
    assert cli("init", "g.omni", "--schema", "notes.pg")[0] == 0
    (notes / "new.pg").write_text(NOTES_SCHEMA.replace("sealed: Bool", "closed: Bool?"))
    broken = "rule 'sealed': 'Note' has no property 'sealed'"
    code, out, err = cli("schema", "plan", "new.pg", "./g.omni")
    assert (code, "supported: yes" in out) == (0, True)
    assert f"the policy becomes invalid: {broken}" in err
    assert document(cli("schema", "plan", "new.pg", "./g.omni", "--json"))["broken_rules"] == [broken]
    code, _, err = cli("schema", "apply", "new.pg", "./g.omni")
    assert code == 1
    assert f"the schema would break 1 rule of the policy: {broken}" in err
    code, out, err = cli("schema", "apply", "new.pg", "./g.omni", "--allow-policy-breakage")
    assert (code, "applied: yes" in out) == (0, True)
    assert broken in err
    # The policy is broken already: a further change breaks nothing.
    (notes / "more.pg").write_text((notes / "new.pg").read_text() + "node Tag { name: String @key }\n")
    code, out, err = cli("schema", "apply", "more.pg", "./g.omni")
    assert (code, err) == (0, "")


def test_a_merge_and_a_revert_that_break_rules_are_reported_and_refused(notes, cli):
    assert cli("init", "g.omni", "--schema", "notes.pg")[0] == 0
    graph = og.open(notes / "g.omni")
    graph.branch_create("draft")
    renamed = NOTES_SCHEMA.replace("sealed: Bool", 'closed: Bool @rename_from("sealed")')
    applied = graph.apply_schema(renamed, branch="draft")
    broken = "rule 'sealed': 'Note' has no property 'sealed'"
    merge = ("branch", "merge", "draft", "./g.omni")
    code, _, err = cli(*merge, "--preview")
    assert (code, f"the policy becomes invalid: {broken}" in err) == (0, True)
    assert document(cli(*merge, "--preview", "--json"))["broken_rules"] == [broken]
    code, _, err = cli(*merge)
    assert (code, f"the schema would break 1 rule of the policy: {broken}" in err) == (1, True)
    assert cli(*merge, "--allow-policy-breakage")[0] == 0
    (notes / "policy.yaml").write_text(
        (notes / "policy.yaml").read_text().replace("resource.sealed", "resource.closed")
    )
    revert = ("revert", applied.commit_id, "./g.omni")
    assert "the policy becomes invalid: rule 'sealed'" in cli(*revert, "--preview")[2]
    assert cli(*revert)[0] == 1
    assert cli(*revert, "--allow-policy-breakage")[0] == 0
    assert "sealed" in og.open(notes / "g.omni").schema


def test_a_schema_is_planned_between_files_under_a_policy(notes, cli):
    (notes / "new.pg").write_text(NOTES_SCHEMA.replace("node Note", "node Page"))
    code, _, err = cli("schema", "plan", "--from", "notes.pg", "--to", "new.pg")
    assert code == 0
    assert "rule 'own-tenant': there is no type 'Note'" in err
    (notes / "omnigraph.yaml").write_text("")
    assert "policy" not in cli("schema", "plan", "--from", "notes.pg", "--to", "new.pg")[2]


def test_a_policy_without_rules_for_rows_does_not_depend_on_the_schema(notes, cli):
    (notes / "policy.yaml").write_text(TEAM)
    assert cli("init", "g.omni", "--schema", "notes.pg")[0] == 0
    (notes / "new.pg").write_text(NOTES_SCHEMA.replace("sealed: Bool", "closed: Bool?"))
    code, _, err = cli("schema", "apply", "new.pg", "./g.omni")
    assert (code, "policy" in err) == (0, False)
    (notes / "policy.yaml").write_text("version: 1\nnonsense: 1\n")
    assert cli("schema", "plan", "notes.pg", "./g.omni")[0] == 0
