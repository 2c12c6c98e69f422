"""The memory of the machine or control group, and the budget of an opened graph."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from omnigraph.config_keys import MIB, parse_memory, parse_size
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass

MEMORY = "OMNIGRAPH_MEMORY"
"""Environment variable: the memory budget of every graph that is opened without one."""
_DEFAULT = "50%"
_UNKNOWN_TOTAL = 8 * 1024**3
"""Assumed memory of a system that does not tell it."""
_LEAST = 64 * 1024**2
_FORMS = (
    "a size is a number of bytes or a text such as '4GiB', with the units KiB, MiB, GiB and TiB; "
    "a share is a text such as '50%'"
)
_OTHER_UNIT = re.compile(r"([0-9]{1,15})\s*([kmgt])b?", re.IGNORECASE)
_PROCESS = Path("/proc/self")
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class MemoryBudget:
    """The memory that a graph may use. Structures that are mapped from files do not count."""

    total: int

    @classmethod
    def of(cls, value: int | str | None, environ: Mapping[str, str]) -> MemoryBudget:
        """Return the budget for a size such as '4GiB', a share such as '50%', or the default."""
        given = environ.get(MEMORY, "").strip() or None if value is None else value
        size = parse_memory(_DEFAULT if given is None else given)
        if isinstance(size, str):
            size = int((total_memory() or _UNKNOWN_TOTAL) * float(size.removesuffix("%")) / 100)
            size = max(size, _LEAST) if given is None else size
        if size is None or size < _LEAST:
            what = "memory" if value is not None else MEMORY
            too_small = size is not None or parse_size(given) == 0
            raise InputError(
                f"{what} must be a size of at least {_LEAST:,} bytes or a share of the memory, not '{str(given)[:40]}'",
                code="bad_setting",
                hint=f"use at least {_LEAST // MIB}MiB" if too_small else _form_hint(given),
            )
        return cls(size)

    @property
    def cache_bytes(self) -> int:
        """The largest size of the columns and structures in memory."""
        return self.total // 2

    @property
    def query_bytes(self) -> int:
        """The largest size of the rows of an operator, or of a column that a query reads in full."""
        return self.total // 2

    @property
    def build_bytes(self) -> int:
        """The largest size of the buffers of a load or of the construction of a structure."""
        return self.total // 4


def _form_hint(given: object) -> str:
    """Return how to write a size or a share that is written in another form."""
    found = _OTHER_UNIT.fullmatch(str(given).strip())
    if found is not None:
        return f"write '{found[1]}{found[2].upper()}iB'; {_FORMS}"
    if isinstance(given, float) and 0 < given <= 1:
        return f"write '{given * 100:.4g}%'; {_FORMS}"
    return _FORMS


def total_memory(process: Path = _PROCESS, cgroups: Path = _CGROUPS) -> int | None:
    """Return the bytes of the control group, or of the machine if it has less; None if both are unknown."""
    known = [*_cgroup_limits(process, cgroups), *_machine_memory()]
    return min(known, default=None)


def _machine_memory() -> list[int]:
    try:
        return [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, ValueError, OSError):
        return []


def _cgroup_limits(process: Path, cgroups: Path) -> list[int]:
    """Return the memory limits of the control groups of the process, of version 2 or 1, and of their ancestors."""
    try:
        lines = (process / "cgroup").read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
    found: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers == "":
            found += _limits(cgroups, name, "memory.max")
        elif "memory" in controllers.split(","):
            found += _limits(cgroups / "memory", name, "memory.limit_in_bytes")
    return found


def _limits(root: Path, name: str, file: str) -> list[int]:
    """Return the limits of a group and of those above it. In a container the group can be the root."""
    group = Path(name.lstrip("/"))
    texts = (_text(root / part / file) for part in (group, *group.parents))
    return [int(text) for text in texts if re.fullmatch("[0-9]{1,19}", text)]


def _text(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
