"""The pre-commit hooks and the GitHub action that the repository offers: their commands run as the files say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sysconfig
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from omnigraph.cli.program import build_program
from support.commands import SCHEMA
from support.policies import EXAMPLE

ROOT = Path(__file__).parents[1]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}
CLEAN = "query all() {\n    match { $p: Person }\n    return { $p.name }\n}\n"
WRONG = CLEAN.replace("Person", "Persn")
SCRIPTS = sysconfig.get_path("scripts")


@pytest.fixture
def project(tmp_path: Path, clean_environment: None) -> Path:
    """A git repository with a schema, query files in two folders, and a policy."""
    (tmp_path / "schema.pg").write_text(SCHEMA)
    (tmp_path / "all.gq").write_text(CLEAN)
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "clean.gq").write_text(f"// schema: ../schema.pg\n{CLEAN}")
    (tmp_path / "policy.yaml").write_text(EXAMPLE)
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(["git", *identity, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "change")


def execute(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, **variables, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )


# -- pre-commit ---------------------------------------------------------------------------------------


def run_hook(name: str, folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a hook as pre-commit does: entry, arguments, and the tracked files that it selects."""
    hook = HOOKS[name]
    files = [path for path in git(folder, "ls-files").splitlines() if re.search(hook["files"], path)]
    assert files
    given = files if hook.get("pass_filenames", True) else []
    return execute([*shlex.split(hook["entry"]), *(args or hook.get("args", [])), *given], folder)


def test_hooks_have_the_members_that_pre_commit_requires():
    assert list(HOOKS) == ["omnigraph-fmt", "omnigraph-lint", "omnigraph-policy"]
    for hook in HOOKS.values():
        assert {"id", "name", "entry", "language", "files"} <= set(hook)
        assert hook["language"] == "python"


def test_hook_of_the_policy_installs_its_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert HOOKS["omnigraph-policy"]["additional_dependencies"] == project["optional-dependencies"]["policy"]


@pytest.mark.parametrize("args", [(), ("--schema", "schema.pg")])
def test_lint_hook(project, args):
    clean = run_hook("omnigraph-lint", project, *args)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (project / "queries" / "wrong.gq").write_text(f"// schema: ../schema.pg\n\n{WRONG}")
    commit(project)
    failed = run_hook("omnigraph-lint", project, *args)
    assert failed.returncode == 1
    assert "there is no node type 'Persn'\n  --> queries/wrong.gq:4:17" in failed.stdout


def test_fmt_hook(project):
    assert run_hook("omnigraph-fmt", project).returncode == 0
    assert git(project, "status", "--porcelain") == ""  # pre-commit fails if a hook changes a file
    (project / "schema.pg").write_text(SCHEMA.replace("    name", "  name"))
    commit(project)
    assert run_hook("omnigraph-fmt", project).returncode == 0
    assert git(project, "status", "--porcelain") == " M schema.pg\n"
    assert (project / "schema.pg").read_text() == SCHEMA


def test_policy_hook(project):
    clean = run_hook("omnigraph-policy", project)
    assert clean.returncode == 0, clean.stdout + clean.stderr
    (project / "policy.yaml").write_text(f"{EXAMPLE}\nunknown: 1\n")
    failed = run_hook("omnigraph-policy", project)
    assert failed.returncode == 1
    assert f"line {EXAMPLE.count(chr(10)) + 2}, unknown: unknown key 'unknown'" in failed.stderr


# -- the action ---------------------------------------------------------------------------------------


def run_action(folder: Path, **inputs: str) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """Run the steps of the action as GitHub does, without the installation; yields the name and outcome of each."""
    values = {name: given["default"] for name, given in ACTION["inputs"].items()}
    values |= {"base": ""} | {name.replace("_", "-"): value for name, value in inputs.items()}
    temporary = folder / ".git"  # not part of the checkout
    for name, step in STEPS.items():
        needed = re.findall(r"inputs\.([\w-]+) != ''", step.get("if", ""))
        if name == "Install" or not all(values[one] for one in needed):
            continue
        variables = {
            variable: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
            for variable, text in step["env"].items()
        }
        runner = {"RUNNER_TEMP": str(temporary), "GITHUB_STEP_SUMMARY": str(temporary / "summary.md")}
        script = temporary / "step.sh"
        script.write_text(step["run"])
        shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        yield name, execute(shell, folder, **variables, **runner)


def test_action_has_the_schema_of_github():
    check = [f"{SCRIPTS}/check-jsonschema", "--builtin-schema", "vendor.github-actions", str(ROOT / "action.yml")]
    found = subprocess.run(check, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr


def test_action_uses_its_inputs():
    used = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text(encoding="utf-8")))
    assert used == set(ACTION["inputs"])


def test_options_of_hooks_and_action_exist():
    texts = [step["run"] for step in STEPS.values()]
    texts += [" ".join([hook["entry"], *hook.get("args", [])]) for hook in HOOKS.values()]
    calls = [call for text in texts for call in re.findall(r"\bomnigraph ([^|\n]+)", text)]
    assert len(calls) == 6
    for call in calls:
        command: Any = get_command(build_program())
        for word in call.split():
            if word.startswith("-") or not hasattr(command, "commands"):
                break
            command = command.commands[word]
        known = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<![\w-])--[\w-]+", call)) <= known, call


def test_action_passes_on_a_clean_project(project):
    outcomes = dict(run_action(project, policy="policy.yaml"))
    assert list(outcomes) == ["Lint", "Validate the policy"]
    for found in outcomes.values():
        assert found.returncode == 0, found.stdout + found.stderr
        assert "::error" not in found.stdout


@pytest.mark.parametrize("schema", ["", "schema.pg"])
def test_action_annotates_a_mistake(project, schema):
    (project / "queries" / "wrong one.gq").write_text(f"// schema: ../schema.pg\n\n{WRONG}")
    (project / "policy.yaml").write_text(f"{EXAMPLE}\nunknown: 1\n")
    commit(project)
    outcomes = dict(run_action(project, policy="policy.yaml", schema=schema))
    assert all(found.returncode for found in outcomes.values())
    place = "file=queries/wrong one.gq,line=4,col=17,title=T1"
    assert f"::error {place}::there is no node type 'Persn'%0A" in outcomes["Lint"].stdout
    line = EXAMPLE.count("\n") + 2
    assert (
        f"::error file=policy.yaml,line={line},title=policy_invalid::unknown: unknown key"
        in outcomes["Validate the policy"].stdout
    )


def test_action_shows_the_plan_of_a_schema_change(project):
    base = git(project, "rev-parse", "HEAD").strip()
    (project / "schema.pg").write_text(SCHEMA.replace("age: I32?", "age: I32?\n    email: String?"))
    commit(project)
    outcomes = dict(run_action(project, schema="schema.pg", base=base))
    assert outcomes["Plan the schema change"].returncode == 0, outcomes["Plan the schema change"].stderr
    summary = (project / ".git" / "summary.md").read_text()
    assert summary.startswith("```\nschema plan ")
    assert "supported: yes\n" in summary
    assert "email" in summary
    git(project, "mv", "schema.pg", "new.pg")
    outcomes = dict(run_action(project, schema="new.pg", base=base))
    assert outcomes["Plan the schema change"].returncode == 0
    assert (project / ".git" / "summary.md").read_text() == summary  # there is no old schema
