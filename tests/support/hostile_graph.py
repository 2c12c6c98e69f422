"""A graph whose texts attack the page that shows them: markup, script addresses, control and direction characters."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import omnigraph as og

NAME = "N" + "a" * 60
PROPERTY = "p" + "b" * 60
MARKUP = "<img src=x onerror=window.pwned=1>"
TEXTS = {
    "markup": MARKUP,
    "script-end": "</script><script>window.pwned=1</script>",
    "style-end": "</style><svg/onload=window.pwned=1>",
    "template": "{{constructor.constructor('window.pwned=1')()}}${window.pwned=1}",
    "address": "javascript:window.pwned=1",
    "data-address": "data:text/html,<script>window.pwned=1</script>",
    "web-address": "http://evil.example/" + MARKUP,
    "right-to-left": "invoice\u202efdp.exe\u2066\u2069\u200f",
    "zero-width": "ad\u200bmin\u2060\ufeff",
    "controls": "a\u0001\u0008\u001b[31mred\u007f\u0085",
    "quotes": "\"'`\\&amp;<!--",
    "surrogates": "😀👩‍👩‍👧‍👦 é ﷽",
    "long-word": "w" * 5_000,
    "long-text": "word " * 200_000,
    "formula": '=HYPERLINK("http://evil.example","x")',
    "empty": "",
    "spaces": " \t\n ",
    "__proto__": "__proto__",
}
SCHEMA = f"""
node {NAME} @description("{MARKUP}") {{
    slug: String @key
    {PROPERTY}: String @index
    big: I64
    real: F64?
    words: [String]?
    moment: DateTime?
    blob_: Blob?
    meaning: Vector(4)?
}}
edge Wrote: {NAME} -> {NAME} {{ note: String? }}
"""
COLUMNS = 10_000
WIDE_QUERY = f"match {{ $a: {NAME} }} return {{ {', '.join(f'$a.slug as c{at}' for at in range(COLUMNS))} }} limit 40"
DEEP_QUERY = (
    f"match {{ $a: {NAME} }} return {{ {'[' * 40}1{']' * 40} as deep, $a.words, $a.meaning, $a.real, $a.moment }}"
)
BRANCH = "constructor/prototype/" + "b" * 120
MESSAGE = f"{MARKUP} \u202e message"
MARKDOWN = f"""**{MARKUP}** *{MARKUP}* `{MARKUP}` [x](javascript:window.pwned=1) [{MARKUP}](https://evil.example/x)
- <script>window.pwned=1</script>
```
</pre><img src=x onerror=window.pwned=1>
```
\u202e{"w" * 3_000}"""
ACTOR = "<b>actor\u202e"


def build_hostile_graph(folder: Path) -> Path:
    """Create the graph with a branch, messages and actors of the same kind."""
    path = folder / "hostile.omni"
    graph = og.init(path, SCHEMA, sync=False, actor=ACTOR)
    keys = [f"{name} {MARKUP}" for name in TEXTS]
    nodes = [
        {
            "type": NAME,
            "data": {
                "slug": key,
                PROPERTY: value,
                "big": 2**63 - 1,
                "real": -1e308,
                "words": [value[:1_000]] * 3,
                "moment": "0001-01-01T00:00:00Z",
                "meaning": [0.5, -0.5, 0.0, 1.0],
                "blob_": "base64:" + b64encode(value[:1_000].encode()).decode(),
            },
        }
        for key, value in zip(keys, TEXTS.values(), strict=True)
    ]
    edges = [{"edge": "Wrote", "from": keys[0], "to": key, "data": {"note": MARKUP}} for key in keys[1:]]
    graph.load([*nodes, *edges], mode="append", message=MESSAGE)
    graph.store_query(
        f'query hostile($p: String) @description("{MARKUP}") '
        f"{{ match {{ $a: {NAME}  $a wrote $b }} return {{ $a, $b, $b.{PROPERTY} }} }}",
        message=MESSAGE,
    )
    graph.store_query(f"query deep() {{ {DEEP_QUERY} }}", message=MESSAGE)
    graph.branch_create(BRANCH)
    graph.mutate(
        f'update {NAME} set {{ big: 1 }} where slug = "{keys[0]}"', branch=BRANCH, message=MESSAGE, actor=ACTOR
    )
    # Both branches change one row: a merge has a conflict.
    graph.mutate(f'update {NAME} set {{ big: 2 }} where slug = "{keys[0]}"', message=MESSAGE, actor=ACTOR)
    title = f"{MARKUP} {'t' * 200}"
    proposal = graph.propose(BRANCH, title=title, body=MARKDOWN, labels=[MARKUP], reviewers=[MARKUP], actor=ACTOR)
    comment = proposal.comment(MARKDOWN, on={"table_key": f"node:{NAME}", "row_id": keys[0], "property": "big"})
    proposal.comment(TEXTS["script-end"] + TEXTS["right-to-left"], reply_to=comment.id)
    og.open(path, actor=f"{ACTOR} two").proposal(proposal.id).request_changes(MARKDOWN)
    return path
