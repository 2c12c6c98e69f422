"""The parameters of a load, shared by the load in memory and the load as a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from omnigraph.errors import InputError
from omnigraph.table_format import PLAIN, TableFormat
from omnigraph.values import Fetch
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.transaction import WriteOptions

if TYPE_CHECKING:
    from omnigraph.query.write_guard import WriteGuard
    from omnigraph.versioning.model.snapshot import Snapshot

    GuardOf = Callable[[Snapshot], WriteGuard | None]

Mode = Literal["overwrite", "append", "merge"]
MODES: tuple[Mode, ...] = ("overwrite", "append", "merge")
Missing = Literal["keep", "null"]
MISSING: tuple[Missing, ...] = ("keep", "null")
_INPUT_COPIES = 5
"""A load in memory needs about this many times the size of its decoded input."""


@dataclass(frozen=True)
class LoadRequest:
    """A load onto a branch, without its input."""

    mode: Mode
    options: WriteOptions = field(default_factory=WriteOptions)
    missing: Missing = "keep"
    """In a merge, whether a property that is absent from a record keeps its value or is set to null."""
    set_aside: bool = False
    """True if wrong records are set aside and the others are loaded; otherwise a wrong record ends the load."""
    from_branch: str | None = None
    """If the branch does not exist, it is created from this one."""
    embed: bool = True
    """True if vectors are filled from their texts."""
    fetch: Fetch | None = None
    """Resolves references to blobs."""
    format: TableFormat = PLAIN
    """The format of tables: their columns, and the cells of CSV files."""
    dry_run: bool = False
    """True if the records are read and validated, and nothing is written."""
    memory: int | None = None
    """Bytes that the buffers of the load may use; None does not limit them."""
    guard_of: GuardOf | None = field(default=None, repr=False)
    """Returns the rules for rows and properties of the caller on a snapshot; None if there are none."""
    check_base: Callable[[Snapshot], None] | None = field(default=None, repr=False)
    """Raises `Denied` if the caller would see more on the new branch than on a snapshot of `from_branch`."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables: credentials of object stores and settings of embeddings."""

    @property
    def keyed_options(self) -> WriteOptions:
        """The options of the write, with the hash of the request. The job id covers the branch and the mode."""
        return replace(self.options, kind="load", request_hash=hash_request("load", self.options.branch, self.mode))

    def guard(self, snapshot: Snapshot) -> WriteGuard | None:
        """Return the rules for rows and properties that limit the load; None if there are none."""
        return None if self.guard_of is None else self.guard_of(snapshot)

    @property
    def input_bytes_max(self) -> int | None:
        """The size of the largest input that is converted at once; None does not limit it."""
        return None if self.memory is None else self.memory // _INPUT_COPIES

    @property
    def keeps(self) -> bool:
        """True if a property that is absent from a record keeps its value."""
        return self.missing == "keep"


def check_mode(mode: str | None) -> Mode:
    """Return one of the modes, or raise `InputError`."""
    if mode is None:
        raise InputError(
            "a load needs a mode",
            hint="write mode='merge' (add or update), mode='append' (add only) or mode='overwrite' (replace all)",
        )
    for known in MODES:
        if mode == known:
            return known
    raise InputError(f"there is no load mode '{mode}'", hint=f"the modes are {', '.join(MODES)}")


def check_missing(missing: str) -> Missing:
    """Return one of the choices for absent properties, or raise `InputError`."""
    for known in MISSING:
        if missing == known:
            return known
    raise InputError(
        f"'{missing}' is not a valid choice for missing properties", hint=f"the choices are {', '.join(MISSING)}"
    )
