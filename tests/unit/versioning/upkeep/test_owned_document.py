"""A document that one process at a time changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from omnigraph.errors import Damaged
from omnigraph.versioning.upkeep.owned_document import OwnedDocument, OwnershipLost
from support.store import repository_of
from support.writes import new_graph

FOLDER = "__webhooks/a"


@pytest.fixture
def repository(tmp_path):
    return repository_of(new_graph(tmp_path))


def test_the_first_process_owns_it_and_others_read_it(repository):
    one, other = OwnedDocument(repository, FOLDER), OwnedDocument(repository, FOLDER)
    assert other.read() is None
    assert one.take(lambda: {"n": 0}) == {"n": 0}
    assert other.take(lambda: {"n": 5}) is None
    one.write({"n": 1})
    assert (one.is_owned, other.is_owned, other.read()) == (True, False, {"n": 1})


def test_a_released_document_is_taken_with_its_content(repository):
    one, other = OwnedDocument(repository, FOLDER), OwnedDocument(repository, FOLDER)
    one.take(lambda: {"n": 0})
    one.release({"n": 7})
    assert other.take(lambda: {"n": 0}) == {"n": 7}
    with pytest.raises(OwnershipLost):
        one.write({"n": 8})
    assert one.read() == {"n": 7}


def test_only_its_newest_state_is_kept(repository):
    document = OwnedDocument(repository, FOLDER)
    document.take(lambda: {"n": 0})
    for number in range(20):
        document.write({"n": number})
    assert len(repository.objects.list(FOLDER)) == 1


def test_a_process_that_was_suspended_loses(repository):
    """Its successor is ahead, and removed the name that it would use next."""
    suspended, successor = OwnedDocument(repository, FOLDER), OwnedDocument(repository, FOLDER)
    suspended.take(lambda: {"n": 0})
    successor._number = suspended._number
    for number in range(3):
        successor.write({"n": number})
    with pytest.raises(OwnershipLost):
        suspended.write({"n": 100})
    assert not suspended.is_owned
    assert successor.read() == {"n": 2}
    successor.write({"n": 3})


def test_of_two_processes_that_take_it_at_once_one_succeeds(repository):
    one, other = OwnedDocument(repository, FOLDER), OwnedDocument(repository, FOLDER)
    one._number = other._number = 0
    one.write({"n": 1})
    with pytest.raises(OwnershipLost):
        other.write({"n": 2})


def test_the_document_of_a_killed_process_is_taken_over(repository):
    program = (
        "import os, sys, signal\n"
        "import omnigraph as og\n"
        "from omnigraph.graph_handle import context_of\n"
        "from omnigraph.versioning.upkeep.owned_document import OwnedDocument\n"
        f"document = OwnedDocument(context_of(og.open(sys.argv[1])).repository, {FOLDER!r})\n"
        "document.take(lambda: {'n': 0})\n"
        "document.write({'n': 42})\n"
        "print('owned', flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", program, repository.location.uri]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"owned\n"
        document = OwnedDocument(repository, FOLDER)
        assert document.take(lambda: {"n": 0}) is None, "its owner is alive"
        process.kill()
        process.wait(30)
        assert document.take(lambda: {"n": 0}) == {"n": 42}
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("data", [b"", b"[]", b'{"owner": 1, "content": {}}', json.dumps({"owner": None}).encode()])
def test_a_damaged_document_is_named(repository, data):
    repository.objects.write(f"{FOLDER}/{7:020}.json", data)
    with pytest.raises(Damaged, match="__webhooks/a/00000000000000000007"):
        OwnedDocument(repository, FOLDER).read()
