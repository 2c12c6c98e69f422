"""`Node` and `Edge`: bases of pydantic models that are types of a schema."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from omnigraph.errors import MissingPackage
from omnigraph.models.marks import Mark

try:
    from pydantic import BaseModel, ConfigDict, field_validator
except ImportError as error:
    raise MissingPackage("'pydantic' is not installed", hint="install it: pip install 'omnigraph[models]'") from error

A = TypeVar("A")
B = TypeVar("B")


class Node(BaseModel):
    """A node. `id` is that of a stored node; the id of a keyed node is its key."""

    model_config = ConfigDict(validate_default=False)
    __omnigraph__: ClassVar[tuple[Mark, ...]] = ()

    id: str | None = None


class Edge(BaseModel, Generic[A, B]):
    """An edge from an `A` to a `B`; its ends are ids, or nodes of which the id is taken."""

    __omnigraph__: ClassVar[tuple[Mark, ...]] = ()

    id: str | None = None
    src: str
    dst: str

    @field_validator("src", "dst", mode="before")
    @classmethod
    def _id_of(cls, end: Any) -> Any:
        """Return the id of an end."""
        from omnigraph.models.objects import id_of  # noqa: PLC0415 (it imports the descriptions of classes)

        return end if isinstance(end, str) else id_of(end)
