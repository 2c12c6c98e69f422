"""The import of Lance on first use."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from omnigraph.storage.lance.lance_module import lance

SLOW = ("lance", "pandas", "pyarrow.dataset")


@pytest.mark.parametrize("module", ["omnigraph.graph", "omnigraph.server.app", "omnigraph.cli.invocation"])
def test_modules_do_not_import_lance(module):
    code = f"import sys, {module}; print([name for name in {SLOW} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout == "[]\n"


def test_an_attribute_is_that_of_the_module():
    import lance as real  # noqa: PLC0415

    assert lance.LanceDataset is real.LanceDataset
    assert lance.file.LanceFileReader is real.file.LanceFileReader
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = lance.absent
    with pytest.raises(AttributeError):
        _ = lance.__absent__
