"""The command line: arguments in, text and exit codes out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cli.main import run
from omnigraph.version import STORAGE_FORMAT, __version__

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n\nedge Knows: Person -> Person\n"
GOOD = "query adults($n: I32) {\n    match { $p: Person }\n    return { $p.name }\n}\n"
BAD = "query wrong() {\n    match { $p: Persn }\n    return { $p.name }\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "good.gq").write_text(GOOD)
    (tmp_path / "bad.gq").write_text(BAD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_lint_of_a_valid_file(folder, capsys):
    assert run(["lint", "--schema", "s.pg", "--query", "good.gq"]) == 0
    assert capsys.readouterr().out == "ok     adults (read)\nlint: 1 query, 0 errors, 0 warnings, 0 infos\n"


@pytest.mark.parametrize("words", [["lint"], ["check"], ["query", "lint"], ["query", "check"]])
def test_lint_of_a_file_with_an_error(folder, capsys, words):
    assert run([*words, "--schema", "s.pg", "--query", "bad.gq"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("error  wrong: type error: T1: there is no node type 'Persn'\n  --> bad.gq:2:17")
    assert "hint: did you mean 'Person'?" in out
    assert out.endswith("lint: 1 query, 1 error, 0 warnings, 0 infos\n")


def test_lint_as_json(folder, capsys):
    assert run(["lint", "--schema", "s.pg", "--query", "bad.gq", "--json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["status"] == "error"
    assert report["schema_source"] == {"kind": "file", "path": "s.pg"}
    assert report["results"][0]["error"] == "type error: T1: there is no node type 'Persn'"
    assert report["results"][0]["diagnostics"][0]["line"] == 2


def test_lint_of_a_file_with_syntax_errors(folder, capsys):
    (folder / "broken.gq").write_text("query x( {\n")
    assert run(["lint", "--schema", "s.pg", "--query", "broken.gq"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("error  Q000 parse error: expected a parameter")
    assert out.count("expected a parameter") == 1


def test_schema_error_has_a_position(folder, capsys):
    (folder / "s.pg").write_text("node A { x: Strin }")
    assert run(["schema", "check", "s.pg"]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: parse error: expected a type, found 'Strin'\n  --> s.pg:1:13\n")


def test_json_error_is_an_object_on_stdout(folder, capsys):
    assert run(["schema", "check", "none.pg", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {
        "error": "there is no file 'none.pg'",
        "code": "bad_request",
        "reason": "no_such_file",
    }
    assert printed.err == "error: there is no file 'none.pg'\n"


def test_schema_check(folder, capsys):
    assert run(["schema", "check", "s.pg"]) == 0
    assert capsys.readouterr().out == "ok     s.pg: 1 node type, 1 edge type, 0 interfaces\n"


def test_schema_plan(folder, capsys):
    (folder / "t.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    town: String?"))
    assert run(["schema", "plan", "--from", "s.pg", "--to", "t.pg"]) == 0
    assert capsys.readouterr().out == (
        "schema plan s.pg -> t.pg\nsupported: yes\n- add property Person.town: String?\n"
    )
    assert run(["schema", "plan", "--from", "s.pg", "--to", "s.pg"]) == 0
    assert capsys.readouterr().out.endswith("nothing to change\n")


def test_unsupported_plan_exits_with_0(folder, capsys):
    (folder / "t.pg").write_text(SCHEMA.replace("age: I32?", "age: I64?"))
    assert run(["schema", "plan", "--from", "s.pg", "--to", "t.pg", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert (plan["supported"], plan["step_count"]) == (False, 1)
    assert plan["steps"][0]["kind"] == "unsupported_change"
    assert plan["steps"][0]["code"] == "OG-MF-106"


def test_explain(folder, capsys):
    assert run(["explain", "--schema", "s.pg", "--query", "good.gq"]) == 0
    assert "scan    $p: Person" in capsys.readouterr().out
    assert run(["explain", "--schema", "s.pg", "--query", "good.gq", "--name", "adult"]) == 1
    assert "did you mean 'adults'?" in capsys.readouterr().err


def test_fmt_writes_in_place_and_is_idempotent(folder, capsys):
    path = folder / "messy.pg"
    path.write_text("// kept\nnode  A{x:I32 // too\n}")
    path.chmod(0o640)
    assert run(["fmt", "messy.pg"]) == 0
    assert path.read_text() == "// kept\nnode A {\n    x: I32  // too\n}\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert capsys.readouterr().out == "formatted messy.pg\n"
    assert run(["fmt", "--check", "."]) == 0


@pytest.mark.parametrize("flag", ["--check", "--diff"])
def test_fmt_check_and_diff_write_nothing(folder, capsys, flag):
    path = folder / "messy.gq"
    path.write_text("query a(){match{$x:Person}return{$x}}")
    assert run(["fmt", flag, "messy.gq"]) == 1
    assert path.read_text() == "query a(){match{$x:Person}return{$x}}"
    assert "messy.gq" in capsys.readouterr().out


def test_fmt_reports_syntax_errors_and_formats_the_rest(folder, capsys):
    (folder / "a.pg").write_text("node {")
    (folder / "b.pg").write_text("node B{}")
    assert run(["fmt", "a.pg", "b.pg", "c.txt"]) == 1
    assert (folder / "a.pg").read_text() == "node {"
    assert (folder / "b.pg").read_text() == "node B {}\n"
    err = capsys.readouterr().err
    assert "expected a node type name" in err
    assert "there is no file 'c.txt'" in err
    assert err.endswith("fmt: 3 files, 1 changed, 2 failed\n")


def test_file_must_be_utf8(folder, capsys):
    (folder / "latin.pg").write_bytes(b"node A { } // caf\xe9")
    assert run(["schema", "check", "latin.pg"]) == 1
    assert "not UTF-8 text: invalid byte at offset 17" in capsys.readouterr().err


def test_usage_errors_exit_with_2(folder, capsys):
    assert run(["lint", "--schema", "s.pg"]) == 2
    assert "no file was given; write: omnigraph lint FILE" in capsys.readouterr().err
    assert run(["no-such-command"]) == 2
    assert run(["fmt", "--lang", "sql", "-"]) == 2


@pytest.mark.parametrize("words", [["version"], ["--version"], ["-v"]])
def test_version(capsys, words):
    assert run(words) == 0
    assert capsys.readouterr().out == f"omnigraph {__version__}\ninternal-schema {STORAGE_FORMAT}\n"


def test_stdin_closed_pipe_and_short_name(folder):
    bin_ = Path(sys.executable).parent
    command = [bin_ / "og", "fmt", "--lang", "pg", "-"]
    done = subprocess.run(command, input=b"node  A{}", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"node A {}\n")
    many = "".join(GOOD.replace("adults", f"q{n}") for n in range(5000))
    (folder / "many.gq").write_text(many)
    command = [sys.executable, "-m", "omnigraph", "lint", "--schema", "s.pg", "--query", "many.gq"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) == 141


def test_commands_import_only_what_they_need(folder):
    libraries = ("pyarrow", "lance", "numpy", "rich", "yaml", "msgspec", "prompt_toolkit")
    heavy = (*libraries, "omnigraph.query", "omnigraph.graph", "omnigraph.wire.document")
    code = f"import sys, omnigraph.cli.main; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout == "[]\n"
