"""Tables of files, named after the files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.errors import InputError
from omnigraph.operations.load.record_sources import input_files, is_paths


def tables_by_file(files: Sequence[str | os.PathLike[str]], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the files of paths and patterns by the names of their tables: the file names up to the first dot."""
    found: dict[str, Any] = {}
    for given in files:
        if not is_paths(given):
            raise InputError(
                f"a table without a name is the path of a file, not {type(given).__name__}",
                hint="give the table a name: infer_schema(people=frame)",
            )
        for file in input_files(os.fspath(given), environ) or ():
            if file.stem in found:
                raise InputError(f"two files are named '{file.stem}'", hint="give each table a name: people='a/x.csv'")
            found[file.stem] = file.name
    return found
