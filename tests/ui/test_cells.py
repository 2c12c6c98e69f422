"""The cells of every property type: an Arrow stream of the server, stored for the unit tests of the page.

`web/tests/cells.json` holds the stream as text. `OMNIGRAPH_UPDATE_GOLDEN=1` writes it again; then `make web`.
"""

from __future__ import annotations

import base64
import io
import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

import omnigraph as og
from support.server import serving

STORED = Path(__file__).parents[2] / "web" / "tests" / "cells.json"
SCALARS = {
    "text": ("String", "Grüße 😀"),
    "yes": ("Bool", True),
    "small": ("I32", -(2**31)),
    "large": ("I64", 2**63 - 1),
    "count": ("U32", 2**32 - 1),
    "huge": ("U64", 2**64 - 1),
    "single": ("F32", 0.5),
    "double": ("F64", -1.5e300),
    "day": ("Date", "1969-12-31"),
    "moment": ("DateTime", "2026-02-28T23:59:59.125Z"),
    "uuid": ("Uuid", "123e4567-e89b-12d3-a456-426614174000"),
    "state": ("enum(open, closed)", "closed"),
}
VALUES = {
    **{name: (f"{kind}?", value) for name, (kind, value) in SCALARS.items()},
    **{f"{name}_list": (f"[{kind}]?", [value]) for name, (kind, value) in SCALARS.items() if name != "state"},
    "meaning": ("Vector(4)?", [0.5, -1.0, 0.0, 2.0]),
}


def make_stream(folder: Path) -> bytes:
    """Return the answer of a server to a query for two rows: one with all values, one without any."""
    properties = "\n".join(f"    {name}: {kind}" for name, (kind, _) in VALUES.items())
    graph = og.init(folder / "cells.omni", f"node Everything {{\n    slug: String @key\n{properties}\n}}", sync=False)
    filled = {name: value for name, (_, value) in VALUES.items()}
    graph.load(
        [{"type": "Everything", "data": {"slug": "a", **filled}}, {"type": "Everything", "data": {"slug": "b"}}],
        mode="append",
    )
    returned = ", ".join(f"$e.{name} as {name}" for name in VALUES)
    text = f"match {{ $e: Everything }} return {{ {returned}, $e }} order {{ $e.slug }}"
    with serving(Path(str(graph.uri))) as server:
        reply = server.request(
            "POST", "/query", {"query": text}, headers={"Accept": "application/vnd.apache.arrow.stream"}
        )
        assert reply.status == 200, reply.body
        return reply.body


def read(stream: bytes) -> pa.Table:
    return pyarrow.ipc.open_stream(io.BytesIO(stream)).read_all().replace_schema_metadata(None)


def test_the_stored_stream_is_that_of_the_server(tmp_path: Path) -> None:
    stream = make_stream(tmp_path)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN") == "1":
        STORED.write_text(json.dumps({"stream": base64.b64encode(stream).decode()}) + "\n", encoding="utf-8")
    stored = read(base64.b64decode(json.loads(STORED.read_text(encoding="utf-8"))["stream"]))
    made = read(stream)
    assert stored.schema.equals(made.schema)
    assert stored.drop_columns(["e"]).equals(made.drop_columns(["e"]))
