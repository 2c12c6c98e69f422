"""The state of a server: modes and rights, digests, and reloads that keep the last good state."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import Denied, InputError, NotFound, OmniGraphError, PolicyInvalid
from omnigraph.server.auth.tokens import Principal
from omnigraph.server.deployment.reload import make_holder
from omnigraph.server.deployment.state import StateHolder
from omnigraph.server.deployment.state_builder import StartOptions, read_start_settings
from support.audit_entries import entry
from support.serving import POLICY, make_graph

TOKENS = {"ana": "token-of-ana", "bo": "token-of-bo"}
SERVER_POLICY = """version: 1
groups:
  team: [ana]
rules:
  - id: team-lists
    allow:
      actors: { group: team }
      actions: [graph_list]
"""
CASES = """version: 1
cases:
  - { id: ana-reads, actor: ana, action: read, branch: main, expect: EXPECT }
"""


class Site:
    """A folder with a configuration, a graph, tokens and a policy."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        make_graph(folder / "kb.omni", "Ana")
        self.environ: dict[str, str] = {}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        # Two writes within one tick of the file system's clock still differ in size or time for the test.
        found = path.stat()
        os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + len(text)))
        return path

    def tokens(self, tokens: Any = TOKENS) -> None:
        path = self.write("tokens.json", tokens if isinstance(tokens, str) else json.dumps(tokens))
        self.environ["OMNIGRAPH_SERVER_BEARER_TOKENS_FILE"] = str(path)

    def config(self, server: str = "", more: str = "") -> None:
        self.write("omnigraph.yaml", f"graphs: {{kb: {{uri: ./kb.omni}}}}\n{more}\nserver: {{graph: kb, {server}}}\n")

    def options(self, **flags: Any) -> StartOptions:
        return StartOptions((), str(self.folder / "omnigraph.yaml"), flags, None, self.environ)

    def holder(self, **flags: Any) -> StateHolder:
        return make_holder(self.options(**flags))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    found = Site(tmp_path)
    found.config()
    return found


ANA, BO = Principal("ana"), Principal("bo")


def test_open_mode_allows_everything_but_the_list_of_graphs(site: Site):
    state = site.holder().current
    assert (state.mode, state.tokens, state.audit) == ("open", None, None)
    assert state.graph_access(state.find_graph(None), None).check("change", "main").allowed
    assert state.server_access(None).check("admin").allowed
    with pytest.raises(Denied, match="the list of graphs requires a server policy"):
        state.server_access(None).check("graph_list")


def test_open_mode_off_loopback_denies_server_actions(site: Site):
    state = site.holder(bind="0.0.0.0:0", unauthenticated=True).current
    assert state.mode == "open"
    with pytest.raises(Denied):
        state.server_access(None).check("admin")


def test_tokens_without_a_policy_allow_reading(site: Site):
    site.tokens()
    state = site.holder().current
    access = state.graph_access(state.find_graph("kb"), ANA)
    assert (state.mode, access.check("read", "main").allowed) == ("default_deny", True)
    with pytest.raises(Denied, match="no policy is"):
        access.check("change", "main")
    with pytest.raises(Denied):
        state.server_access(ANA).check("graph_list")


def test_policies_decide(site: Site):
    site.tokens()
    site.write("policy.yaml", POLICY)
    site.write("server.yaml", SERVER_POLICY)
    site.config("policy: {file: server.yaml}", "policy: {file: policy.yaml}")
    state = site.holder().current
    kb = state.find_graph(None)
    assert state.mode == "policy"
    assert state.graph_access(kb, ANA).check("read", "main").matched_rule == "team-reads"
    assert state.server_access(ANA).check("graph_list").allowed
    for access, action in ((state.graph_access(kb, BO), "read"), (state.server_access(BO), "graph_list")):
        with pytest.raises(Denied):
            access.check(action)


def test_server_actions_without_a_server_policy_name_its_key(site: Site):
    site.tokens()
    site.write("policy.yaml", POLICY)
    site.config(more="policy: {file: policy.yaml}")
    for action in ("admin", "graph_list", "audit_read"):
        with pytest.raises(Denied, match=r"need a policy of the server: 'server\.policy\.file' is not set"):
            site.holder().current.server_access(ANA).check(action)


STATEMENTS = """version: 2
groups: { team: [ana] }
attributes: { declare: { level: Long } }
rules:
  - { id: team, allow: { actors: { group: team }, role: editor } }
  - { id: seniors, allow: { actors: { any: true }, actions: [maintain], when: 'principal.level > 2' } }
"""


def test_policies_of_version_2_decide(site: Site):
    site.tokens()
    (site.folder / "rules").mkdir()
    site.write("rules/policy.yaml", STATEMENTS)
    site.config(more="policy: {file: rules}")
    holder = site.holder()
    state = holder.current
    kb = state.find_graph(None)
    assert state.graph_access(kb, ANA).check("change", "draft").matched_rule == "team"
    assert not state.graph_access(kb, BO).decide("maintain").allowed
    senior = Principal("bo", attributes={"level": 3})
    assert state.graph_access(kb, senior).check("maintain").matched_rule == "seniors"
    freeze = 'forbid (principal, action == Omnigraph::Action::"change", resource);'
    site.write("rules/freeze.cedar", freeze)
    assert holder.due() is not None
    assert holder.reload("test") is not None
    state = holder.current
    assert state.graph_access(state.find_graph(None), ANA).decide("change", "draft").denied_by == ("freeze.cedar:1",)


def test_rules_for_rows_must_fit_the_schema(site: Site):
    site.tokens()
    rule = "  - { id: own, allow: { actors: { any: true }, actions: [row_read], types: [%s] } }\n"
    site.write("policy.yaml", STATEMENTS + rule % "Person" + "rows: { default: allow }\n")
    site.config(more="policy: {file: policy.yaml}")
    holder = site.holder()
    running = holder.current
    assert running.find_graph(None).has_row_rules
    site.write("policy.yaml", STATEMENTS + rule % "Persom" + "rows: { default: allow }\n")
    report = holder.reload("test")
    assert not report.ok
    assert report.code == "policy_invalid"
    assert "do not fit the schema of graph" in (report.error or "")
    assert "'Persom'" in (report.error or "")
    assert holder.current is running
    with pytest.raises(PolicyInvalid, match="do not fit the schema of graph"):
        site.holder()


def test_tests_on_rows_run_at_the_start(site: Site):
    site.tokens()
    rule = "  - { id: own, allow: { actors: { any: true }, actions: [row_read], types: [Person] } }\n"
    site.write("policy.yaml", STATEMENTS + rule + "rows: { default: allow }\n")
    case = "version: 2\ncases:\n  - {id: c, actor: ana, action: row_read, type: Person, data: {name: x}, expect: %s}\n"
    site.write("policy.tests.yaml", case % "allow")
    site.config(more="policy: {file: policy.yaml}")
    site.holder()
    site.write("policy.tests.yaml", case % "deny")
    with pytest.raises(InputError, match="fails 1 of its tests"):
        site.holder()


def test_tests_on_calls_read_the_stored_queries_of_the_graph(site: Site):
    site.tokens()
    rule = "  - { id: calls, allow: { actors: { any: true }, actions: [invoke_query], when: 'resource.changes' } }\n"
    site.write("policy.yaml", STATEMENTS + rule)
    case = "version: 2\ncases:\n  - {id: c, actor: ana, action: invoke_query, query: add, expect: %s}\n"
    site.write("policy.tests.yaml", case % "deny")
    site.config(more="policy: {file: policy.yaml}")
    site.holder()  # the query is not stored: whether the case holds is not known
    og.open(site.folder / "kb.omni").store_query('query add() { insert Person { name: "x" } }')
    with pytest.raises(InputError, match="fails 1 of its tests"):
        site.holder()
    site.write("policy.tests.yaml", case % "allow")
    site.holder()


def test_single_user_mode_accepts_the_generated_token_alone(site: Site):
    site.tokens()
    options = StartOptions((), str(site.folder / "omnigraph.yaml"), {"local": True}, "og_secret", site.environ)
    state = make_holder(options).current
    assert state.mode == "local"
    assert state.tokens is not None
    principal = state.tokens.find("Bearer og_secret")
    assert state.graph_access(state.find_graph(None), principal).check("change", "main").allowed
    assert state.server_access(principal).check("graph_list").allowed
    with pytest.raises(OmniGraphError, match="invalid bearer token"):
        state.tokens.find("Bearer token-of-ana")
    assert "og_secret" not in repr(options)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"bind": "0.0.0.0:0"}, "can be reached from other machines"),
        ({"graph": "nope"}, "there is no graph named 'nope'"),
        ({"workers": 0}, "'--workers' must be an integer of at least 1, not 0"),
        ({"tls.cert": "none.pem", "tls.key": "none.key"}, "there is no file 'none.pem'"),
    ],
)
def test_the_first_failure_is_raised(site: Site, flags: dict[str, Any], said: str):
    with pytest.raises(InputError) as caught:
        make_holder(StartOptions((), str(site.folder / "omnigraph.yaml"), flags, None, site.environ))
    assert said in caught.value.message


def test_a_policy_without_tokens_is_refused(site: Site):
    site.write("policy.yaml", POLICY)
    site.config(more="policy: {file: policy.yaml}")
    with pytest.raises(InputError, match="a policy is set and no token"):
        site.holder()


def test_a_configured_tests_file_must_exist(site: Site):
    site.tokens()
    site.write("policy.yaml", POLICY)
    site.config(more="policy: {file: policy.yaml, tests: cases.yaml}")
    with pytest.raises(InputError, match=r"'policy\.tests' names '.*cases\.yaml', and there is no such file"):
        site.holder()
    site.write("cases.yaml", CASES.replace("EXPECT", "allow"))
    assert site.holder().current.mode == "policy"


def test_a_policy_that_fails_its_tests_is_refused(site: Site):
    site.tokens()
    site.write("policy.yaml", POLICY)
    site.write("policy.tests.yaml", CASES.replace("EXPECT", "deny"))
    site.config(more="policy: {file: policy.yaml}")
    with pytest.raises(InputError, match=r"fails 1 of its tests .* 'ana-reads'; case 'ana-reads' expects deny"):
        site.holder()
    site.write("policy.tests.yaml", CASES.replace("EXPECT", "allow"))
    assert site.holder().current.mode == "policy"


def test_one_unreadable_graph_is_quarantined_unless_all_are_required(site: Site):
    site.write("omnigraph.yaml", "graphs: {kb: {uri: ./kb.omni}, gone: {uri: ./gone.omni}}")
    state = site.holder().current
    assert [graph.graph_id for graph in state.quarantined] == ["gone"]
    assert (state.default_graph, state.graph_list.single) == (None, False)
    with pytest.raises(NotFound, match="no default graph"):
        state.find_graph(None)
    with pytest.raises(NotFound, match="there is no graph 'other'"):
        state.find_graph("other")
    with pytest.raises(InputError, match="is not the id of a graph"):
        state.find_graph("../x")
    with pytest.raises(OmniGraphError, match=r"graph 'gone' cannot be opened: .*\(1 of 2 graphs cannot be opened\)"):
        site.holder(require_all_graphs=True)


def test_without_a_readable_graph_nothing_is_served(site: Site):
    with pytest.raises(OmniGraphError, match="graph 'default' cannot be opened"):
        make_holder(StartOptions((str(site.folder / "none.omni"),), environ={}))


def test_variables_of_the_env_file_are_read(site: Site):
    site.write(".env", "OMNIGRAPH_SERVER_WORKERS=3\nOMNIGRAPH_SERVER_BEARER_TOKEN=abc\n")
    site.config(more="auth: {env_file: .env}")
    assert read_start_settings(site.options()).workers == 3
    assert site.holder().current.mode == "default_deny"


def test_a_reload_without_tokens_does_not_open_the_server(site: Site):
    site.write(".env", "OMNIGRAPH_SERVER_BEARER_TOKEN=abc\n")
    site.config(more="auth: {env_file: .env}")
    holder = site.holder()
    state = holder.current
    site.write(".env", "# nothing\n")
    assert holder.due() is not None
    report = holder.reload("test")
    assert (report.ok, report.code) == (False, "unsafe_start")
    assert holder.current is state


def test_a_reload_replaces_tokens_policies_settings_and_graphs(site: Site):
    site.tokens()
    holder = site.holder()
    old = holder.current
    assert holder.due() is None
    site.tokens({"ana": "another-token"})
    site.write("policy.yaml", POLICY)
    make_graph(site.folder / "crm.omni")
    site.write(
        "omnigraph.yaml",
        "graphs: {kb: {uri: ./kb.omni}, crm: {uri: ./crm.omni}}\npolicy: {file: policy.yaml}\n"
        "server: {graphs: [kb, crm], graph: kb, hide_uri: true, workers: 2}\n",
    )
    reason = holder.due()
    assert reason is not None
    assert "changed" in reason
    report = holder.reload(reason)
    new = holder.current
    assert (report.ok, report.error, report.digests) == (True, None, new.digests)
    assert report.changed == (
        "server.graphs", "server.hide_uri", "tokens", "policies", "graph 'crm' added",
    )  # fmt: skip
    assert report.warnings[0] == "'server.workers' changed; the change takes effect at the next start"
    assert (new.mode, new.settings.hide_uri, new.settings.workers) == ("policy", True, 1)
    assert new.find_graph("kb").graph is old.find_graph("kb").graph
    assert old.tokens is not None
    assert old.tokens.find("Bearer token-of-ana").actor == "ana"
    assert holder.due() is None


BROKEN = {
    "tokens.json": "{",
    "policy.yaml": "version: 1\nrules: 3\n",
    "policy.tests.yaml": CASES.replace("EXPECT", "deny"),
    "omnigraph.yaml": "server: {workers: many}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_leaves_the_last_good_state_in_force(site: Site, name: str):
    site.tokens()
    good = {
        "tokens.json": json.dumps(TOKENS),
        "policy.yaml": POLICY,
        "policy.tests.yaml": CASES.replace("EXPECT", "allow"),
    }
    for file, text in good.items():
        site.write(file, text)
    site.config(more="policy: {file: policy.yaml}")
    good["omnigraph.yaml"] = (site.folder / "omnigraph.yaml").read_text(encoding="utf-8")
    holder = site.holder()
    state = holder.current
    site.write(name, BROKEN[name])
    assert name in str(holder.due())
    report = holder.reload("test")
    assert not report.ok
    assert report.error
    assert holder.last_reload is report
    assert holder.current is state
    assert holder.due() is None, "a broken file is not read again until it changes"
    site.write(name, good[name] + "\n")
    assert name in str(holder.due())
    assert holder.reload("test").ok
    assert holder.current is not state


def test_an_unchanged_policy_keeps_its_decisions(site: Site):
    site.tokens()
    site.write("policy.yaml", POLICY)
    site.config(more="policy: {file: policy.yaml}")
    holder = site.holder()
    policy = holder.current.find_graph(None).policy
    assert holder.reload("test").ok
    assert holder.current.find_graph(None).policy is policy
    site.write("policy.yaml", POLICY.replace("ana", "bo"))
    assert holder.reload("test").changed == ("policies",)
    assert holder.current.find_graph(None).policy is not policy


def test_a_quarantined_graph_is_served_after_a_reload(site: Site):
    site.write("omnigraph.yaml", "graphs: {kb: {uri: ./kb.omni}, late: {uri: ./late.omni}}")
    holder = site.holder()
    assert not holder.current.find_graph("late").is_ready
    make_graph(site.folder / "late.omni")
    assert holder.reload("retry").changed == ("graph 'late' opened",)
    assert holder.current.find_graph("late").is_ready


def test_digests_are_equal_in_equal_processes(site: Site):
    site.tokens()
    first, second = site.holder().current, site.holder().current
    assert first.digests == second.digests
    assert first.digests.policy is None
    assert first.digests.tokens is not None
    assert site.holder(hide_uri=True).current.digests.config != first.digests.config


def test_the_audit_log_is_kept_by_a_reload(site: Site):
    site.config("audit: {dir: audit, required: true}")
    holder = site.holder()
    audit = holder.current.audit
    assert audit is not None
    assert audit.required
    site.config("audit: {dir: audit, reads: all}")
    assert holder.reload("test").ok
    assert holder.current.audit is audit
    assert (audit.required, audit.reads) == (False, "all")
    audit.close()


def test_closed_audit_files_are_copied(site: Site):
    site.config(f"audit: {{dir: audit, bucket: '{site.folder / 'copies'}'}}")
    audit = site.holder().current.audit
    assert audit is not None
    audit.record(entry())
    audit.close()
    assert len([*(site.folder / "copies").rglob("*.jsonl")]) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("polcy: { file: policy.yaml }", "line 2: unknown key 'polcy' (did you mean 'policy'?)"),
        ("policy: { fil: policy.yaml }", "line 2: unknown key 'policy.fil' (did you mean 'file'?)"),
        ("server: { auth: { token: { file: tokens.json } } }", "'server.auth.token' (did you mean 'tokens'?)"),
        ("server: { aut: { tokens: { file: tokens.json } } }", "unknown key 'server.aut' (did you mean 'auth'?)"),
        ("auth: { env_fil: .env }", "unknown key 'auth.env_fil' (did you mean 'env_file'?)"),
        ("polcy: 1\ngrahs: 2", "line 2: unknown key 'polcy' (did you mean 'policy'?); line 3: unknown key 'grahs'"),
    ],
)
def test_a_server_refuses_unknown_keys(site: Site, text: str, said: str):
    path = site.write("omnigraph.yaml", f"graphs: {{kb: {{uri: ./kb.omni}}}}\n{text}\n")
    for start in (site.holder, lambda: read_start_settings(site.options())):
        with pytest.raises(InputError) as caught:
            start()
        assert caught.value.code == "bad_config"
        assert caught.value.message.startswith(f"'{path}', line 2: unknown key ")
        assert said in caught.value.message


def test_a_server_refuses_unknown_keys_of_a_graph(site: Site):
    site.write("omnigraph.yaml", "graphs:\n  kb:\n    uri: ./kb.omni\n    polcy: { file: policy.yaml }\n")
    with pytest.raises(InputError, match=r"line 4: unknown key 'graphs.kb.polcy' \(did you mean 'policy'\?\)"):
        site.holder()


def test_unknown_keys_of_commands_are_warnings_of_a_server(site: Site):
    site.config(more="cli: { grahp: kb }")
    assert "unknown key 'cli.grahp'" in site.holder().current.warnings[0]


def test_a_reload_with_an_unknown_key_keeps_the_state(site: Site):
    holder = site.holder()
    running = holder.current
    site.config(more="polcy: { file: policy.yaml }")
    report = holder.reload("test")
    assert (report.ok, report.code, holder.current) == (False, "bad_config", running)
    assert report.error is not None
    assert "unknown key 'polcy'" in report.error
