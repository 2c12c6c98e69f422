"""The commands `omnigraph audit …`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from omnigraph.server.audit import AuditLog
from support.audit_entries import entry
from support.commands import document


@pytest.fixture
def log(folder):
    log = AuditLog(folder / "audit")
    log.record(entry(request_id="r1", actor="ana", graph="kb", branch="main", rules=["editors"], commit="c1"))
    log.record(entry(request_id="r2", actor="bo", action="read", decision="deny", status=403, route="POST /query"))
    log.record(entry(request_id="r3\r\nforged \x1b[2J", actor="ana", action="export"))
    log.close()
    (path,) = (folder / "audit").glob("*.jsonl")
    return path


def ids(result) -> list[str]:
    return [record["request_id"][:2] for record in document(result)["records"]]


def test_list(log, cli):
    code, out, err = cli("audit", "list", "audit")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert [word.strip() for word in lines[0].split("|")] == [
        *("at", "actor", "action", "graph", "branch", "decision", "status", "route", "request_id")
    ]
    assert [word.strip() for word in lines[2].split("|")][1:] == [
        *("ana", "change", "kb", "main", "allow", "200", "POST /change", "r1")
    ]
    assert lines[4].endswith(r"r3\r\nforged \x1b[2J")
    assert len(lines) == 5


def test_the_word_list_can_be_left_out(log, cli):
    assert cli("audit", "audit") == cli("audit", "list", "audit")
    assert ids(cli("audit", "--decision", "deny", "audit", "--json")) == ["r2"]


def test_filters(log, cli):
    assert ids(cli("audit", "audit", "--json")) == ["r1", "r2", "r3"]
    assert ids(cli("audit", "audit", "--json", "--actor", "ana")) == ["r1", "r3"]
    assert ids(cli("audit", "audit", "--json", "--action", "read")) == ["r2"]
    assert ids(cli("audit", "audit", "--json", "--limit", "2")) == ["r2", "r3"]
    assert ids(cli("audit", "audit", "--json", "--since", "1h")) == ["r1", "r2", "r3"]
    assert ids(cli("audit", "audit", "--json", "--until", "1h")) == []
    assert ids(cli("audit", "audit", "--json", "--since", "2020-01-01", "--until", "2020-01-02T00:00:00+01:00")) == []


def test_list_document(log, cli):
    found = document(cli("audit", "audit", "--json", "-n", "1"))
    assert re.fullmatch(r"[0-9a-f]{16}-3", found["next"])
    (record,) = found["records"]
    assert re.fullmatch(r"[0-9a-f]{64}", record.pop("prev"))
    assert re.fullmatch(r"[\d-]{10}T[\d:.]{15}Z", record.pop("at"))
    assert record == {
        "seq": 3,
        "request_id": "r3\r\nforged \x1b[2J",
        "actor": "ana",
        "token_name": None,
        "remote": None,
        "route": "POST /change",
        "graph": None,
        "branch": None,
        "action": "export",
        "decision": "allow",
        "rules": [],
        "commit": None,
        "rows": None,
        "query_hash": None,
        "definer": None,
        "status": 200,
        "ms": 1.5,
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("audit", "audit", "--decision", "maybe"), "it must be allow or deny"),
        (("audit", "audit", "--since", "yesterday"), "--since: 'yesterday' is not a time"),
        (("audit", "audit", "--until", "2027-13-01"), "--until: '2027-13-01' is not a time"),
        (("audit", "audit", "--since", "xd"), "'xd' is not a duration"),
        (("audit", "audit", "--since", "9999999d"), "is before the year 1"),
        (("audit", "list"), "DIR"),
        (("audit", "verfy", "audit"), "audit"),
    ],
)
def test_wrong_arguments(log, cli, words, message):
    code, out, err = cli(*words)
    assert (code, out) == (2, "")
    assert message in err


def test_a_missing_folder(folder, cli):
    for words in (("audit", "none"), ("audit", "verify", "none")):
        code, _, err = cli(*words)
        assert code == 1
        assert "there is no audit folder 'none'" in err


def test_verify(log, cli):
    assert cli("audit", "verify", "audit") == (0, "audit audit: sound (1 chain, 1 file, 3 records)\n", "")
    assert document(cli("audit", "verify", "audit", "--json")) == {
        "dir": "audit",
        "sound": True,
        "chains": 1,
        "files": 1,
        "records": 3,
        "problems": [],
        "notes": [],
    }


def test_verify_of_a_broken_log(log, cli):
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(lines[0] + lines[2])
    code, out, _ = cli("audit", "verify", "audit")
    assert code == 1
    assert out == (
        f"problem  {log.name}:2: missing: record 2 is missing here\n"
        "audit audit: 1 problem (1 chain, 1 file, 2 records)\n"
    )
    found = document(cli("audit", "verify", "audit", "--json"), code=1)
    assert found["sound"] is False
    assert found["problems"] == [{"kind": "missing", "file": log.name, "line": 2, "what": "record 2 is missing here"}]


def test_a_torn_line_is_a_note(log, cli):
    with log.open("ab") as file:
        file.write(b'{"at"')
    code, out, err = cli("audit", "verify", "audit")
    assert (code, out) == (0, "audit audit: sound (1 chain, 1 file, 3 records)\n")
    assert err.startswith(f"note: {log.name}:4: the line is incomplete")
    assert document(cli("audit", "verify", "audit", "--json"))["notes"][0]["kind"] == "torn"
    assert cli("audit", "audit")[2].startswith("warning: 1 line cannot be read")


def test_help_imports_no_server_code():
    program = (
        "import sys; from omnigraph.cli.main import run; run(['audit', '--help']); "
        "sys.exit(any(name.startswith('omnigraph.server') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False).returncode == 0
