"""Creation of a table by exactly one of several concurrent creators."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.storage.lance.lance_errors import is_conflict, lance_errors
from omnigraph.storage.lance.lance_module import STORAGE_VERSION, lance


def create_once(uri: str, options: dict[str, str] | None, *fragments: pa.Table) -> None:
    """Write version 1 of a table, with these fragments. One of several creators succeeds; the others get
    `FileExistsError`.

    Lance's own create checks first and commits afterwards: the loser of a race replaces the winner's rows by a version
    2. A commit with read version 0 and without retries cannot replace anything.
    """
    try:
        written = [
            fragment
            for rows in fragments
            for fragment in lance.fragment.write_fragments(
                rows,
                uri,
                schema=rows.schema,
                mode="create",
                enable_stable_row_ids=True,
                data_storage_version=STORAGE_VERSION,
                storage_options=options,
            )
        ]
        operation = lance.LanceOperation.Overwrite(fragments[0].schema, written)
        lance.LanceDataset.commit(
            uri, operation, read_version=0, max_retries=0, enable_stable_row_ids=True, storage_options=options
        )
    except lance_errors() as error:
        text = str(error).lower()
        if is_conflict(error) or "already exists" in text or "_versions/0.manifest" in text:
            raise FileExistsError(uri) from error
        raise
