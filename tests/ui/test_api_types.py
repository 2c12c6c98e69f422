"""The documents of `web/src/api/*ypes.ts` are those of the server: every member exists, and is optional if it may miss.

The page lists only what it reads, so that a new member of a document changes nothing here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import omnigraph.server

ROOT = Path(__file__).parents[2]
TYPES = "".join(path.read_text("utf-8") for path in sorted((ROOT / "web" / "src" / "api").glob("*ypes.ts")))
SCHEMAS: dict[str, Any] = json.loads(
    (Path(omnigraph.server.__file__).parent / "api_description" / "openapi.json").read_text("utf-8")
)["components"]["schemas"]
INTERFACES = dict(re.findall(r"^export interface (\w+) \{\n(.*?)^\}", TYPES, re.MULTILINE | re.DOTALL))


def component(name: str) -> dict[str, Any]:
    assert name in SCHEMAS, f"the server has no document {name}"
    schema: dict[str, Any] = SCHEMAS[name]
    return schema


def test_the_types_are_read() -> None:
    assert len(INTERFACES) > 10


@pytest.mark.parametrize("name", INTERFACES)
def test_the_members_are_those_of_the_server(name: str) -> None:
    schema = component(name)
    for member, optional in re.findall(r"^  (\w+)(\??): ", INTERFACES[name], re.MULTILINE):
        assert member in schema["properties"], f"{name} has no member '{member}'"
        required = member in schema.get("required", ()) or "default" in schema["properties"][member]
        assert required or optional == "?", f"{name}.{member} may be absent"
